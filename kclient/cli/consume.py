"""`kclient consume`: prints records; the options of kafka-console-consumer.sh, formats as kcat has them, and JSON."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from itertools import islice
from typing import TypeAlias

from kclient.cli.common import (
    add_client_arguments,
    add_output_argument,
    add_pairs,
    client_settings,
    closing,
    error_console,
    json_bytes,
    natural,
    pattern,
    properties,
    unescape,
)
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer import ConsumerRecord, ConsumerRecords, KafkaConsumer
from kclient.errors import ConfigError, KafkaTimeoutError, UnknownTopicOrPartitionError
from kclient.record.record import TimestampType
from kclient.utils.text import counted

_POLL_MS = 500
_FORMATTER = {
    "print.timestamp": "false",
    "print.partition": "false",
    "print.offset": "false",
    "print.headers": "false",
    "print.key": "false",
    "print.value": "true",
    "key.separator": "\t",
    "line.separator": "\n",
    "headers.separator": ",",
    "null.literal": "null",
}
_EPILOG = """\
--format takes text with these marks:
  %t topic     %p partition   %o offset    %T timestamp (ms)
  %k key       %s or %v value %h headers   %S value size   %K key size
and escapes such as \\n and \\t, for example: --format '%p:%o %k = %v\\n'
"""

Record: TypeAlias = ConsumerRecord[bytes, bytes]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--topic", action="append", help="a topic; may be repeated")
    what.add_argument(
        "--include", type=pattern, metavar="REGEX", help="every topic that matches; needs --group"
    )
    parser.add_argument("--partition", type=natural, help="only this partition of --topic; excludes --group")
    parser.add_argument("--offset", help="with --partition: earliest, latest, or an offset to start from")
    parser.add_argument(
        "--from-beginning", action="store_true", help="start at the first record where nothing is committed"
    )
    parser.add_argument(
        "--group", help="read as a member of this group, committing (default: alone, no commits)"
    )
    parser.add_argument("--max-messages", type=natural, help="end after so many records")
    parser.add_argument(
        "--timeout-ms", type=natural, help="end when no record came for so long (default: never)"
    )
    parser.add_argument("--isolation-level", choices=["read_uncommitted", "read_committed"])
    add_output_argument(parser)
    parser.add_argument("--format", help="text with marks for each record; see below")
    add_pairs(
        parser,
        "--formatter-property",
        "--property",
        dest="formatter",
        help=f"what a text line holds: {', '.join(_FORMATTER)}; may be repeated",
    )
    add_client_arguments(parser, "consumer")


def run(options: argparse.Namespace) -> int:
    settings = client_settings(options)
    if options.from_beginning:
        settings["auto.offset.reset"] = "earliest"
    if options.isolation_level:
        settings["isolation.level"] = options.isolation_level
    if options.group:
        settings["group.id"] = options.group
    elif "group.id" not in settings:
        settings["enable.auto.commit"] = "false"
    if options.offset is not None and options.partition is None:
        raise ConfigError("--offset needs --partition")
    out = _Output(_writer(options), options.max_messages)
    with closing(KafkaConsumer(settings)) as consumer:
        try:
            _start(consumer, options, in_group="group.id" in settings)
            _read(consumer, out, options.timeout_ms)
        except KeyboardInterrupt:
            out.settle(consumer)
            raise
        out.settle(consumer)
    error_console().print(counted(out.count, "record"), highlight=False)
    return 1 if out.limit is not None and out.count < out.limit else 0


def _partitions(
    consumer: KafkaConsumer[bytes, bytes], topic: str, timeout_ms: int | None
) -> list[PartitionInfo]:
    try:
        return consumer.partitions_for(topic, timeout_ms=timeout_ms)
    except KafkaTimeoutError as error:
        if timeout_ms is None:
            raise
        raise KafkaTimeoutError(
            f"no broker told of {topic} within --timeout-ms {timeout_ms}: {error}"
        ) from error


def _read(consumer: KafkaConsumer[bytes, bytes], out: _Output, timeout_ms: int | None) -> None:
    idle_ms = 0
    while not out.full:
        wait_ms = _POLL_MS if timeout_ms is None else min(_POLL_MS, timeout_ms - idle_ms)
        records = consumer.poll(max(wait_ms, 0))
        if records:
            idle_ms = 0
            out.show(records)
            continue
        idle_ms += max(wait_ms, 1)
        if timeout_ms is not None and idle_ms >= timeout_ms:
            return


class _Output:
    """Shows records, at most `limit`, and has the consumer commit what was shown: all of it, and no other."""

    def __init__(self, write: Callable[[Record], bytes], limit: int | None) -> None:
        self.count = 0
        self.limit = limit
        self._write = write
        self._to = sys.stdout.buffer
        self._polled: ConsumerRecords[bytes, bytes] = ConsumerRecords({})
        self._shown = 0

    @property
    def full(self) -> bool:
        """True if the limit is reached."""
        return self.limit is not None and self.count >= self.limit

    def show(self, records: ConsumerRecords[bytes, bytes]) -> None:
        """Show what a poll gave, as far as the limit allows."""
        self._shown = 0
        self._polled = records
        for record in records if self.limit is None else islice(records, self.limit - self.count):
            self._to.write(self._write(record))
            self._shown += 1
            self.count += 1
        self._to.flush()

    def settle(self, consumer: KafkaConsumer[bytes, bytes]) -> None:
        """Put the consumer behind what was shown of the last poll, before it closes and commits that."""
        self._to.flush()
        ends = {record.topic_partition: record.offset + 1 for record in islice(self._polled, self._shown)}
        assigned = consumer.assignment()
        for tp, fetched in self._polled.by_partition().items():
            if tp in assigned:
                consumer.seek(tp, ends.get(tp, fetched[0].offset))


def _start(consumer: KafkaConsumer[bytes, bytes], options: argparse.Namespace, in_group: bool) -> None:
    if options.include:
        if not in_group:
            raise ConfigError("--include needs --group", name="group.id")
        consumer.subscribe(options.include)
        return
    if options.partition is None and in_group:
        consumer.subscribe(options.topic)
        return
    if options.partition is not None and (options.group or len(options.topic) > 1):
        raise ConfigError("--partition goes with one --topic and without --group")
    partitions = [
        TopicPartition(topic, info.partition)
        for topic in options.topic
        for info in _partitions(consumer, topic, options.timeout_ms)
        if options.partition in (None, info.partition)
    ]
    if not partitions:
        wanted = ", ".join(options.topic)
        suffix = "" if options.partition is None else f" with a partition {options.partition}"
        raise UnknownTopicOrPartitionError(f"There is no topic {wanted}{suffix}")
    consumer.assign(partitions)
    if options.from_beginning or options.offset == "earliest":
        consumer.seek_to_beginning(partitions)
    elif options.offset is None or options.offset == "latest":
        consumer.seek_to_end(partitions)
    else:
        try:
            consumer.seek(partitions[0], int(options.offset))
        except ValueError:
            raise ConfigError(f"--offset {options.offset} is not earliest, latest or a number >= 0") from None


def _writer(options: argparse.Namespace) -> Callable[[Record], bytes]:
    if options.output == "json":
        return to_json
    if options.format is not None:
        return formatted(unescape(options.format))
    return _text(properties(options.formatter, _FORMATTER, "--formatter-property"))


def to_json(record: Record) -> bytes:
    """One record as a line of JSON; what is not UTF-8 comes as base64 under `key_base64`, `value_base64`."""
    shown: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **json_bytes(record.key, "key"),
        **json_bytes(record.value, "value"),
        "headers": [{"name": name, **json_bytes(value, "value")} for name, value in record.headers],
    }
    return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def formatted(text: str) -> Callable[[Record], bytes]:
    """A writer of `text` with its %-marks filled in. Raises ConfigError for a mark that does not exist."""
    marks: dict[str, Callable[[Record], bytes]] = {
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
        "T": lambda record: b"%d" % record.timestamp_ms,
        "k": lambda record: record.key or b"",
        "s": lambda record: record.value or b"",
        "v": lambda record: record.value or b"",
        "h": lambda record: b",".join(
            name.encode() + b"=" + (value or b"") for name, value in record.headers
        ),
        "S": lambda record: b"%d" % record.serialized_value_size,
        "K": lambda record: b"%d" % record.serialized_key_size,
        "%": lambda _record: b"%",
    }
    pieces = re.findall(r"([^%]+)|%(.?)", text)
    for plain, mark in pieces:
        if not plain and mark not in marks:
            raise ConfigError(f"--format has no mark %{mark}; there are: {' '.join('%' + m for m in marks)}")
    return lambda record: b"".join(plain.encode() or marks[mark](record) for plain, mark in pieces)


def _text(properties: dict[str, str]) -> Callable[[Record], bytes]:
    null = properties["null.literal"].encode()
    separator = properties["key.separator"].encode()
    between = properties["headers.separator"].encode()
    end = properties["line.separator"].encode()
    parts: dict[str, Callable[[Record], bytes]] = {
        "print.timestamp": lambda record: (
            f"{TimestampType(record.timestamp_type).label}:{record.timestamp_ms}".encode()
        ),
        "print.partition": lambda record: b"Partition:%d" % record.partition,
        "print.offset": lambda record: b"Offset:%d" % record.offset,
        "print.headers": lambda record: (
            between.join(n.encode() + b":" + (null if v is None else v) for n, v in record.headers)
            or b"NO_HEADERS"
        ),
        "print.key": lambda record: null if record.key is None else record.key,
        "print.value": lambda record: null if record.value is None else record.value,
    }
    shown = [part for name, part in parts.items() if properties[name].lower() == "true"]
    return lambda record: separator.join(part(record) for part in shown) + end
