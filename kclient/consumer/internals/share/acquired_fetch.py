"""One partition's answer of a share fetch: bytes on the I/O thread, records and their locks on the application's."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

from kclient.common.topic_id_partition import TopicIdPartition
from kclient.consumer.acknowledge import AcknowledgeType
from kclient.consumer.internals.completed_fetch import DecodeSettings, placed
from kclient.consumer.internals.share.delivered_record import DeliveredRecord, set_delivery_count
from kclient.consumer.internals.share.in_flight_batch import InFlightBatch
from kclient.errors import CorruptRecordError, KafkaError, RecordDeserializationError
from kclient.protocol.messages.share_fetch import AcquiredRecords
from kclient.record import RecordReader, batch_headers

Records: TypeAlias = list[DeliveredRecord[Any, Any]]

_WIDEST: Final = 2**24
"""Offsets from the first to the last of an answer for one partition; brokers lock some thousands."""
_offset_of = attrgetter("offset")


def locked_ranges(partition: TopicIdPartition, acquired: Sequence[AcquiredRecords]) -> list[AcquiredRecords]:
    """`acquired`, if these are ranges in order. Raises KafkaError for what cannot be, as a broker may say anything."""
    end = -1
    for each in acquired:
        if not end < each.first_offset <= each.last_offset < 2**63 - 1:
            raise KafkaError(
                f"{partition}: the broker says that it locked offsets {each.first_offset} to {each.last_offset} "
                f"behind {end}, which cannot be"
            )
        end = each.last_offset
    if acquired and end - acquired[0].first_offset >= _WIDEST:
        raise KafkaError(
            f"{partition}: the broker says that it locked records from offset {acquired[0].first_offset} to {end}, "
            f"which are more than {_WIDEST}"
        )
    return list(acquired)


class AcquiredFetch:
    """The records of one partition that a broker has locked for this consumer, in the order of offsets.

    Made by the I/O thread, and used by the application's from then on. It holds a slice of the whole answer's buffer.
    Raises KafkaError for ranges that cannot be.
    """

    __slots__ = (
        "_data",
        "_from",
        "_lock_timeout_ms",
        "_locked",
        "_reader",
        "_returned",
        "_settings",
        "node_id",
        "partition",
        "size",
    )

    def __init__(
        self,
        node_id: int,
        partition: TopicIdPartition,
        data: memoryview,
        acquired: Sequence[AcquiredRecords],
        lock_timeout_ms: int | None,
        settings: DecodeSettings,
    ) -> None:
        self.node_id = node_id
        self.partition = partition
        self.size = len(data)
        """Bytes of the fetched batches."""
        self._data = data
        self._locked = locked_ranges(partition, acquired)
        self._lock_timeout_ms = lock_timeout_ms
        self._settings = settings
        self._from = self._returned = acquired[0].first_offset
        # Records below `_from` were read; what is locked below `_returned` is part of a batch.
        self._reader: RecordReader | None = None

    def next_batch(self, most: int) -> InFlightBatch | None:
        """The next records, at most `most`, or the offsets that cannot be read and why; None at the end."""
        records: Records = []
        last = self._locked[-1].last_offset
        while len(records) < most and self._from <= last:
            reader = self._reader
            if reader is None:
                self._reader = reader = self._open()
            try:
                found = reader.read(most - len(records))
            except KafkaError as error:
                if records:
                    break  # the reader raises it again when it is its turn
                error = placed(error, self.partition.topic_partition, reader.next_offset)
                failed = self._unreadable(reader, error)
                if failed is None:
                    continue
                return failed
            if found:
                records += self._of_ours(found)
                self._from = reader.next_offset
            else:
                self._from = last + 1  # what is left are gaps
        ranges = self._take_ranges(self._from)
        if not ranges:
            return None
        return InFlightBatch.of(self.node_id, self.partition, ranges, list(records), self._lock_timeout_ms)

    def give_back(self) -> InFlightBatch | None:
        """All that was not returned, to be released; None if that is nothing."""
        ranges = self._take_ranges(self._locked[-1].last_offset + 1)
        if not ranges:
            return None
        return InFlightBatch.unread(self.node_id, self.partition, ranges, AcknowledgeType.RELEASE)

    def _unreadable(self, reader: RecordReader, error: KafkaError) -> InFlightBatch | None:
        """Pass what cannot be read; it is returned if it is locked, and otherwise is nobody's business."""
        self._reader = None
        unless_told = AcknowledgeType.RELEASE
        if isinstance(error, RecordDeserializationError):
            first, end = error.offset, error.offset + 1
            cause = error.__cause__
            error = error.reworded(
                f"The {error.which} of the record at offset {error.offset} of {self.partition} cannot be deserialized; "
                "it is released, unless acknowledge() with topic, partition and offset says otherwise."
            )
            error.__cause__ = cause
        else:
            first, end = self._pass_broken_batch(reader)
            if isinstance(error, CorruptRecordError):
                unless_told = AcknowledgeType.REJECT  # as in Java: nobody can read it
        self._from = max(self._from, end)
        if not any(each.first_offset < end and first <= each.last_offset for each in self._locked):
            return None
        before = self._take_ranges(first)
        broken = self._take_ranges(end)
        return InFlightBatch.unread(self.node_id, self.partition, broken, unless_told, error, gaps=before)

    def _pass_broken_batch(self, reader: RecordReader) -> tuple[int, int]:
        """Go on behind the batch that `reader` stands in; its offsets from there on, without the last's successor."""
        try:
            for header in batch_headers(self._data):
                end = header.position + header.size_in_bytes
                # The reader has passed a batch whose header it took, and stands before one that it did not.
                if reader.bytes_read in (header.position, end) and header.next_offset > reader.next_offset:
                    self._data = self._data[end:]
                    return reader.next_offset, header.next_offset
        except CorruptRecordError:
            pass
        self._data = self._data[:0]
        return reader.next_offset, self._locked[-1].last_offset + 1

    def _of_ours(self, found: Records) -> Records:
        """Those of `found` that are locked, with the number of their delivery."""
        low, high = found[0].offset, found[-1].offset
        ours: Records = []
        for each in self._locked:
            if each.last_offset < low:
                continue
            if each.first_offset > high:
                break
            part = found
            if each.first_offset > low or each.last_offset < high:
                begin = bisect_left(found, each.first_offset, key=_offset_of)
                part = found[begin : bisect_left(found, each.last_offset + 1, key=_offset_of)]
            set_delivery_count(part, each.delivery_count)
            ours = part if not ours else ours + part
        return ours

    def _take_ranges(self, end: int) -> list[tuple[int, int]]:
        """Return the ranges locked below `end` that are part of no batch yet; they are from now on."""
        begin, self._returned = self._returned, max(self._returned, end)
        return [
            (max(each.first_offset, begin), min(each.last_offset, end - 1))
            for each in self._locked
            if each.first_offset < end and begin <= each.last_offset
        ]

    def _open(self) -> RecordReader:
        settings = self._settings
        return RecordReader(
            self._data,
            0,
            len(self._data),
            self.partition.topic,
            self.partition.partition,
            self._from,
            settings.check_crcs,
            DeliveredRecord,
            settings.key_deserializer,
            settings.value_deserializer,
            settings.decompress_max_bytes,
            None,
        )
