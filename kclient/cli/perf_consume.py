"""`kclient perf consume`: how many records can be read."""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Collection
from datetime import datetime, timedelta

import attrs

from kclient.cli.common import add_client_arguments, client_settings, closing, complain, pattern, positive
from kclient.cli.perf_common import (
    MIB,
    PROGRESS_EVERY_S,
    add_reporting_arguments,
    print_metrics,
    progress_bar,
    warn_if_embedded,
)
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener, KafkaConsumer
from kclient.utils.text import counted

_POLL_MS = 100
_COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, "
    "fetch.nMsg.sec"
)
_EPILOG = """\
Checksums are checked unless -X check.crcs=false says otherwise; kafka-consumer-perf-test.sh never checks them.
Sizes are those of keys and values, MB are 1024 x 1024 bytes.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--topic", help="the topic to read")
    what.add_argument("--include", type=pattern, metavar="REGEX", help="read every topic that matches")
    parser.add_argument("--num-records", "--messages", type=positive, required=True, help="how many to read")
    parser.add_argument("--group", help="read as a member of this group (default: a new one)")
    parser.add_argument(
        "--timeout",
        type=positive,
        default=10_000,
        metavar="MS",
        help="give up without records (default 10000)",
    )
    parser.add_argument(
        "--from-latest", action="store_true", help="start at the end where the group has committed nothing"
    )
    parser.add_argument(
        "--fetch-size", type=positive, metavar="BYTES", help="max.partition.fetch.bytes (default 1048576)"
    )
    parser.add_argument(
        "--socket-buffer-size", type=positive, metavar="BYTES", help="receive.buffer.bytes (default 2097152)"
    )
    parser.add_argument(
        "--columns", action="store_true", help="read with poll_columns(), without an object for each record"
    )
    parser.add_argument(
        "--show-detailed-stats",
        action="store_true",
        help="a line for each --reporting-interval, not one for all",
    )
    parser.add_argument(
        "--reporting-interval", type=positive, default=5000, metavar="MS", help="between lines (default 5000)"
    )
    parser.add_argument("--hide-header", action="store_true", help="print the figures alone")
    add_reporting_arguments(parser)
    add_client_arguments(parser, "consumer")
    parser.add_argument(
        "--consumer.config", dest="command_config", metavar="FILE", help="the same as --command-config"
    )


def run(options: argparse.Namespace) -> int:
    settings = client_settings(
        options,
        client_id="perf-consumer-client",
        group_id=f"perf-consumer-{uuid.uuid4().hex[:8]}",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=MIB,
        receive_buffer_bytes=2 * MIB,
    )
    for name, value in (
        ("group.id", options.group),
        ("max.partition.fetch.bytes", options.fetch_size),
        ("receive.buffer.bytes", options.socket_buffer_size),
        ("auto.offset.reset", "latest" if options.from_latest else None),
    ):
        if value is not None:
            settings[name] = value
    warn_if_embedded(settings)
    detailed = options.show_detailed_stats
    if not options.hide_header:
        print(("time, threadId, " if detailed else "start.time, end.time, ") + _COLUMNS)
    with progress_bar(options.no_progress) as progress, closing(KafkaConsumer(settings)) as consumer:
        task = progress.add_task("reading", total=options.num_records)
        take = _take_columns if options.columns else _take_records
        reading = Reading()
        consumer.subscribe(options.include or [options.topic], reading)
        report_s = reading.last_s + options.reporting_interval / 1000
        progress_s = reading.last_s + PROGRESS_EVERY_S
        while reading.records < options.num_records:
            records, size = take(consumer)
            now_s = reading.count(records, size)
            if now_s - reading.last_s > options.timeout / 1000:
                break
            if now_s >= progress_s:
                progress.update(task, completed=reading.records)
                progress_s = now_s + PROGRESS_EVERY_S
            if detailed and now_s >= report_s:
                print(reading.window(), flush=True)
                report_s = now_s + options.reporting_interval / 1000
        figures = reading.window() if detailed else reading.total()
        metrics = consumer.metrics() if options.print_metrics else None
    print(figures)
    if metrics is not None:
        print_metrics(metrics)
    if reading.records < options.num_records:
        complain(
            "error",
            f"{reading.records} of {counted(options.num_records, 'record')} came: none for {options.timeout} ms "
            "(--timeout)",
        )
        return 1
    return 0


def _take_records(consumer: KafkaConsumer[bytes, bytes]) -> tuple[int, int]:
    """One poll: how many records, and the bytes of their keys and values."""
    size = 0
    records = consumer.poll(_POLL_MS)
    for record in records:
        if record.key is not None:
            size += len(record.key)
        if record.value is not None:
            size += len(record.value)
    return len(records), size


def _take_columns(consumer: KafkaConsumer[bytes, bytes]) -> tuple[int, int]:
    """The same of one poll for columns: sizes are where the last string of a column ends."""
    count = size = 0
    for columns in consumer.poll_columns(_POLL_MS).values():
        count += columns.count
        size += columns.keys.offsets[columns.count] + columns.values.offsets[columns.count]
    return count, size


@attrs.frozen
class _Mark:
    """The progress at one moment."""

    at_s: float
    records: int
    bytes: int
    joining_s: float


class Reading(ConsumerRebalanceListener):
    """Counts what is read, and the time in which there was nothing assigned to read, from when it is made."""

    def __init__(self) -> None:
        self.records = 0
        self.last_s = time.perf_counter()
        self._bytes = 0
        self._joining_s = 0.0
        self._unassigned_s: float | None = self.last_s  # what comes first is joining the group
        self._begun = self._window = self._mark()
        self._wall = datetime.now().astimezone()

    def count(self, records: int, size: int) -> float:
        """Count the records of one poll; return the time now, in seconds of `time.perf_counter`."""
        now_s = time.perf_counter()
        if records:
            self.records += records
            self._bytes += size
            self.last_s = now_s
        return now_s

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:  # noqa: ARG002
        if self._unassigned_s is not None:
            self._joining_s += time.perf_counter() - self._unassigned_s
            self._unassigned_s = None

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:  # noqa: ARG002
        self._unassigned_s = time.perf_counter()

    def total(self) -> str:
        """The line about everything until now."""
        begun, now = self._begun, self._mark()
        ended = self._wall + timedelta(seconds=now.at_s - begun.at_s)
        return f"{_clock_text(self._wall)}, {_clock_text(ended)}, {self._line(begun, now, begun)}"

    def window(self) -> str:
        """A line about the time since the last one; as Java's, with all that was read until now."""
        before, self._window = self._window, self._mark()
        return (
            f"{_clock_text(datetime.now().astimezone())}, 0, {self._line(before, self._window, self._begun)}"
        )

    def _line(self, start: _Mark, end: _Mark, counted_from: _Mark) -> str:
        seconds = max(end.at_s - start.at_s, 1e-9)
        joining_s = end.joining_s - start.joining_s
        fetching_s = max(seconds - joining_s, 1e-9)
        records, mebibytes = end.records - start.records, (end.bytes - start.bytes) / MIB
        return ", ".join(
            (
                f"{(end.bytes - counted_from.bytes) / MIB:.4f}",
                f"{mebibytes / seconds:.4f}",
                f"{end.records - counted_from.records}",
                f"{records / seconds:.4f}",
                f"{joining_s * 1000:.0f}",
                f"{fetching_s * 1000:.0f}",
                f"{mebibytes / fetching_s:.4f}",
                f"{records / fetching_s:.4f}",
            )
        )

    def _mark(self) -> _Mark:
        now_s = time.perf_counter()
        waiting_s = 0.0 if self._unassigned_s is None else now_s - self._unassigned_s
        return _Mark(now_s, self.records, self._bytes, self._joining_s + waiting_s)


def _clock_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}:{at.microsecond // 1000:03d}"
