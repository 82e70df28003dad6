"""Reads one range of offsets, on an executor."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaTimeoutError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
from kclient.spark import clients
from kclient.spark.arrow import BatchMaker
from kclient.spark.client_settings import admin_settings, reader_settings
from kclient.spark.clients import BytesConsumer
from kclient.spark.data_loss import report_data_loss
from kclient.spark.options import SourceOptions
from kclient.spark.output import OutputColumn
from kclient.spark.ranges import OffsetRange
from kclient.utils.time import SYSTEM_TIME

_POLL_MS = 50
"""Time that one poll waits. If the range ends with what is no record, the poll goes on waiting for one."""
_STALL_MS = 1000
"""The time without progress after which the broker is asked whether the rest of the range is still there."""


def read_range(options: SourceOptions, output: Sequence[OutputColumn], wanted: OffsetRange) -> Iterator[Any]:
    """The records of the range as Arrow record batches with the columns `output`.

    Ends when the consumer's position has reached the end of the range, as the last offsets may belong to no record:
    markers of transactions, aborted records, and what compaction removed. Raises DataLossError, KafkaTimeoutError after
    kafkaConsumer.pollTimeoutMs without progress, and what the consumer raises.
    """
    maker = BatchMaker(output, wanted.tp.topic)
    with clients.leased_consumer(reader_settings(options.settings)) as consumer:
        yield from _RangeReader(options, wanted.tp, wanted.start, wanted.end).batches(consumer, maker)


@attrs.define(eq=False)
class _RangeReader:
    _options: SourceOptions
    _tp: TopicPartition
    _position: int
    _end: int

    def batches(self, consumer: BytesConsumer, maker: BatchMaker) -> Iterator[Any]:
        tp = self._tp
        consumer.assign([tp])
        consumer.seek(tp, self._position)
        patience = SYSTEM_TIME.timer(self._options.poll_timeout_ms)
        stall = SYSTEM_TIME.timer(_STALL_MS)
        while self._position < self._end:
            try:
                columns = consumer.poll_columns(timeout_ms=_POLL_MS).get(tp)
            except OffsetOutOfRangeError:
                self._skip_what_is_gone()
                consumer.seek(tp, self._position)
                continue
            if columns is not None:
                offsets = columns.offsets
                beyond = offsets[columns.count - 1] >= self._end
                count = bisect_left(offsets, self._end) if beyond else columns.count
                if count:
                    yield maker.make(columns, count)
            position = consumer.position(tp)
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

    def _skip_what_is_gone(self) -> None:
        """Narrow the range to what the broker still has; reports what it has not."""
        fail = self._options.fail_on_data_loss
        try:
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

    def _bounds(self) -> tuple[int, int]:
        # Here, as few tasks ever ask.
        from kclient.admin import OffsetSpec

        admin = clients.shared_admin(admin_settings(self._options.settings))
        tp, level = self._tp, self._options.isolation_level
        earliest = admin.list_offsets({tp: OffsetSpec.EARLIEST}, isolation_level=level)[tp].offset
        latest = admin.list_offsets({tp: OffsetSpec.LATEST}, isolation_level=level)[tp].offset
        return earliest, latest
