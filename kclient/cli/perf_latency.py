"""`kclient perf latency`: how long a record takes from `send()` until it is read."""

from __future__ import annotations

import argparse
import time

import attrs

from kclient.admin import KafkaAdminClient, NewTopic
from kclient.cli.common import add_client_arguments, client_settings, closing, natural, positive
from kclient.cli.perf_common import (
    Latencies,
    add_reporting_arguments,
    print_metrics,
    progress_bar,
    warn_if_embedded,
)
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, KafkaConsumer
from kclient.errors import ConfigError, KafkaError
from kclient.producer import KafkaProducer
from kclient.utils.text import counted

_TIMEOUT_S = 60
_REPORT_EVERY = 1000
_ACKS = ("1", "all")
_POSITIONS = ("bootstrap_server", "topic", "num_records", "producer_acks", "record_size", "command_config")
_FILLER = bytes(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[byte % 26] for byte in range(256))
_EPILOG = """\
The short form of kafka-e2e-latency.sh is understood as well:
  kclient perf latency BROKERS TOPIC NUM_RECORDS PRODUCER_ACKS RECORD_SIZE [COMMAND_CONFIG]
A topic that does not exist is made, with one partition. Settings are for producer and consumer alike.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("position", nargs="*", metavar="ARGUMENT", help="the short form, see below")
    parser.add_argument("--topic", help="the topic to use")
    parser.add_argument("--num-records", type=positive, help="how many, one after the other")
    parser.add_argument("--producer-acks", choices=_ACKS, help="1 or all (default all)")
    parser.add_argument("--record-size", type=positive, metavar="BYTES", help="of the value (default 100)")
    parser.add_argument(
        "--record-key-size", type=natural, default=0, metavar="BYTES", help="0, the default, is no key"
    )
    parser.add_argument("--num-headers", type=natural, default=0, help="for each record (default 0)")
    parser.add_argument(
        "--record-header-key-size",
        type=natural,
        default=0,
        metavar="BYTES",
        help="of a header's name (default 0)",
    )
    parser.add_argument(
        "--record-header-size",
        type=int,
        default=0,
        metavar="BYTES",
        help="of a header's value (default 0); -1 is null",
    )
    add_reporting_arguments(parser)
    add_client_arguments(parser, "client")


def run(options: argparse.Namespace) -> int:
    _take_positions(options)
    if options.topic is None or options.num_records is None:
        raise ConfigError("--topic and --num-records are needed")
    if options.record_header_size < -1:
        raise ConfigError(f"--record-header-size {options.record_header_size} is not a size, nor -1 for null")
    settings = client_settings(options)
    warn_if_embedded(settings)
    message = _message(options)
    with (
        progress_bar(options.no_progress) as progress,
        closing(
            KafkaConsumer({**settings, "enable.auto.commit": "false", "fetch.max.wait.ms": 0})
        ) as consumer,
        closing(
            KafkaProducer({**settings, "acks": options.producer_acks or "all", "linger.ms": 0})
        ) as producer,
    ):
        with KafkaAdminClient(settings) as admin:
            if options.topic not in admin.list_topics():
                admin.create_topics([NewTopic(options.topic, 1, 1)])
        _start_at_end(consumer, options.topic)
        task = progress.add_task("round trips", total=options.num_records)
        taken_s: list[float] = []
        for number in range(options.num_records):
            started_s = time.perf_counter()
            producer.send(options.topic, message.value, key=message.key, headers=message.headers).result(
                _TIMEOUT_S
            )
            read = _read_one(consumer)
            taken_s.append(time.perf_counter() - started_s)
            _check(read, message)
            if number % _REPORT_EVERY == 0:
                print(f"{number}\t{taken_s[-1] * 1000:.3f}", flush=True)
                progress.update(task, completed=number)
        metrics = {**producer.metrics(), **consumer.metrics()} if options.print_metrics else None
    latencies = Latencies.of_seconds(taken_s)
    print(f"Avg latency: {latencies.average:.4f} ms\n")
    print(
        f"Percentiles: 50th = {latencies.percentile(0.5):.3f}, 99th = {latencies.percentile(0.99):.3f}, "
        f"99.9th = {latencies.percentile(0.999):.3f}"
    )
    if metrics is not None:
        print_metrics(metrics)
    return 0


@attrs.frozen
class _Message:
    """The message that is sent each time, and has to come back."""

    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes | None], ...]


def _message(options: argparse.Namespace) -> _Message:
    header_size = options.record_header_size
    header = (
        _filler(options.record_header_key_size).decode(),
        None if header_size < 0 else _filler(header_size),
    )
    return _Message(
        _filler(options.record_key_size) or None,
        _filler(options.record_size or 100),
        (header,) * options.num_headers,
    )


def _filler(size: int) -> bytes:
    return (_FILLER * (size // len(_FILLER) + 1))[:size]


def _take_positions(options: argparse.Namespace) -> None:
    """Let the short form fill in what it stands for."""
    given = options.position
    if not given:
        return
    if not len(_POSITIONS) - 1 <= len(given) <= len(_POSITIONS):
        raise ConfigError(
            f"the short form takes {len(_POSITIONS) - 1} or {len(_POSITIONS)} arguments, not {len(given)}"
        )
    for name, text in zip(_POSITIONS, given, strict=False):
        option = f"--{name.replace('_', '-')}"
        if getattr(options, name) is not None:
            raise ConfigError(f"{option} is given twice, by its name and in the short form")
        value: object = text
        if name in {"num_records", "record_size"}:
            try:
                value = positive(text)
            except argparse.ArgumentTypeError as error:
                raise ConfigError(f"{option}: {error}") from None
        elif name == "producer_acks" and text not in _ACKS:
            raise ConfigError(f"{option} {text} is not one of {', '.join(_ACKS)}")
        setattr(options, name, value)


def _start_at_end(consumer: KafkaConsumer[bytes, bytes], topic: str) -> None:
    partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
    consumer.assign(partitions)
    consumer.seek_to_end(partitions)
    for tp in partitions:
        consumer.position(tp)  # looked up now, not with the first record


def _read_one(consumer: KafkaConsumer[bytes, bytes]) -> ConsumerRecord[bytes, bytes]:
    records = consumer.poll(_TIMEOUT_S * 1000)
    if len(records) != 1:
        raise KafkaError(
            f"{counted(len(records), 'record')} came within {_TIMEOUT_S} s where the one that was sent should have"
            + (": does anybody else write to this topic?" if records else "")
        )
    return next(iter(records))


def _check(read: ConsumerRecord[bytes, bytes], sent: _Message) -> None:
    for name in ("key", "value", "headers"):
        if getattr(read, name) != getattr(sent, name):
            raise KafkaError(
                f"{read.topic_partition}, offset {read.offset}: the {name} read is not what was sent"
            )
