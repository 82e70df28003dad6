"""Reads one range of offsets, on an executor."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from kclient.spark import clients
from kclient.spark.arrow import BatchMaker
from kclient.spark.client_settings import admin_settings, reader_settings
from kclient.spark.clients import BytesConsumer
from kclient.spark.column_sizes import columns_bytes
from kclient.spark.data_loss import created_again, report_data_loss
from kclient.spark.options import SourceOptions
from kclient.spark.output import OutputColumn
from kclient.spark.ranges import OffsetRange
from kclient.utils.time import SYSTEM_TIME

_POLL_MS = 50
"""Time that one poll waits. If the range ends with what is no record, the poll goes on waiting for one."""
_STALL_MS = 1000
"""The time without progress after which the broker is asked whether the rest of the range is still there."""


@attrs.define(eq=False)
class ReadTally:
    """Counts of a task that reads."""

    records: int = 0
    bytes: int = 0
    """Size of keys, values and headers, as they were fetched: a last fetch may go beyond the range."""
    fetch_ns: int = 0
    """Time that was waited for records."""


def read_range(
    options: SourceOptions,
    output: Sequence[OutputColumn],
    wanted: OffsetRange,
    tally: ReadTally | None = None,
) -> Iterator[Any]:
    """The records of the range as Arrow record batches with the columns `output`.

    Ends when the consumer's position has reached the end of the range, as the last offsets may belong to no record:
    markers of transactions, aborted records, and what compaction removed. Raises DataLossError, KafkaTimeoutError after
    kafkaConsumer.pollTimeoutMs without progress, and what the consumer raises.
    """
    maker = BatchMaker(output, wanted.tp.topic)
    with clients.leased_consumer(reader_settings(options.settings)) as consumer:
        yield from _RangeReader(options, wanted, tally or ReadTally()).batches(consumer, maker)


@attrs.define(eq=False)
class _RangeReader:
    _options: SourceOptions
    _wanted: OffsetRange
    _tally: ReadTally
    _position: int = attrs.field(init=False)
    _end: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._position, self._end = self._wanted.start, self._wanted.end

    @property
    def _tp(self) -> TopicPartition:
        return self._wanted.tp

    def batches(self, consumer: BytesConsumer, maker: BatchMaker) -> Iterator[Any]:
        tp = self._tp
        self._go_to_position(consumer)
        patience = SYSTEM_TIME.timer(self._options.poll_timeout_ms)
        stall = SYSTEM_TIME.timer(_STALL_MS)
        while self._position < self._end:
            asked_ns = SYSTEM_TIME.monotonic_ns()
            try:
                columns = consumer.poll_columns(timeout_ms=_POLL_MS).get(tp)
                self._tally.fetch_ns += SYSTEM_TIME.monotonic_ns() - asked_ns
                position = consumer.position(tp)
            except (OffsetOutOfRangeError, NoOffsetForPartitionError):
                # It is not in the log, or the topic is another one by now, in which there is no position.
                if patience.is_expired():
                    raise
                self._skip_what_is_gone()
                self._go_to_position(consumer)
                continue
            if position >= self._end:
                # Or the consumer would ask for more, in vain, for as long as the last records are in use.
                consumer.pause([tp])
            if columns is not None:
                offsets = columns.offsets
                beyond = offsets[columns.count - 1] >= self._end
                count = bisect_left(offsets, self._end) if beyond else columns.count
                self._tally.records += count
                self._tally.bytes += columns_bytes(columns)
                if count:
                    yield maker.make(columns, count)
            if position > self._position:
                self._position = position
                patience.reset(self._options.poll_timeout_ms)
                stall.reset(_STALL_MS)
            elif patience.is_expired():
                raise KafkaTimeoutError(
                    f"{tp}: no record came within {self._options.poll_timeout_ms} ms (kafkaConsumer.pollTimeoutMs) "
                    f"while offset {self._position} of the range up to {self._end} was read"
                )
            elif stall.is_expired():
                self._skip_what_is_gone()
                stall.reset(_STALL_MS)

    def _go_to_position(self, consumer: BytesConsumer) -> None:
        """Read on from the position, in the topic that the range is of and no other."""
        tp, topic_id = self._tp, self._wanted.topic_id
        consumer.assign([tp if topic_id is None else TopicIdPartition(topic_id, tp.topic, tp.partition)])
        consumer.seek(tp, self._position)

    def _skip_what_is_gone(self) -> None:
        """Narrow the range to what the broker still has; reports what it has not."""
        fail = self._options.fail_on_data_loss
        try:
            if self._is_another_topic():
                return
            first, last = self._bounds()
        except UnknownTopicOrPartitionError:
            report_data_loss(fail, f"{self._tp} was deleted while offset {self._position} was to be read.")
            self._position = self._end
            return
        if first > self._position:
            report_data_loss(
                fail,
                f"{self._tp}: offsets {self._position} to {min(first, self._end) - 1} are not there any more.",
            )
            self._position = min(first, self._end)
        if last < self._end:
            report_data_loss(
                fail,
                f"{self._tp}: offsets {max(last, self._position)} to {self._end - 1} were there and are not any more.",
            )
            self._end = max(last, self._position)

    def _is_another_topic(self) -> bool:
        """Give up the range if its topic was deleted and another one has its name, and report that."""
        before, topic = self._wanted.topic_id, self._tp.topic
        if before is None:
            return False
        admin = clients.shared_admin(admin_settings(self._options.settings))
        now = admin.describe_topics([topic])[topic].topic_id
        if now in (before, Uuid.ZERO):
            return False
        report_data_loss(
            self._options.fail_on_data_loss,
            f"{created_again(topic, before, now)} Offsets {self._position} to {self._end - 1} of {self._tp} were to "
            "be read of the old one.",
        )
        self._position = self._end
        return True

    def _bounds(self) -> tuple[int, int]:
        # Here, as few tasks ever ask.
        from kclient.admin import OffsetSpec

        admin = clients.shared_admin(admin_settings(self._options.settings))
        tp, level = self._tp, self._options.isolation_level
        earliest = admin.list_offsets({tp: OffsetSpec.EARLIEST}, isolation_level=level)[tp].offset
        latest = admin.list_offsets({tp: OffsetSpec.LATEST}, isolation_level=level)[tp].offset
        return earliest, latest
