"""BatchKeys: what the cleaner has to know of the records in a batch, without making records of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import attrs

from kclient._accel import BinaryColumn, RecordReader
from kclient.broker.log.validator import MAX_DECOMPRESSED_BYTES
from kclient.common.topic_partition import TopicPartition
from kclient.record.batch import RecordBatch
from kclient.record.record import Record


@attrs.frozen
class BatchKeys:
    """Offsets, timestamps and keys of the records of a batch, and which of them are tombstones, in order. Immutable."""

    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    tombstones: Sequence[bool]
    """Empty if there are none."""

    @classmethod
    def read(cls, batch: RecordBatch, tp: TopicPartition, from_offset: int = 0) -> BatchKeys:
        """Read a data batch, from `from_offset` on.

        Raises CorruptRecordError for a wrong checksum, and as `RecordBatch.records` for malformed records.
        """
        reader = RecordReader(
            batch.view,
            0,
            len(batch.view),
            tp.topic,
            tp.partition,
            from_offset,
            True,
            Record,
            decompress_max=MAX_DECOMPRESSED_BYTES,
        )
        offsets: list[int] = []
        timestamps: list[int] = []
        keys: list[bytes | None] = []
        tombstones: list[bool] = []
        # Several portions only if the batch has more than a column can hold.
        while (columns := reader.read_columns(None, False)) is not None:
            offsets += memoryview(columns.offsets).cast("B").cast("q")
            timestamps += memoryview(columns.timestamps).cast("B").cast("q")
            keys += _strings(columns.keys, columns.count)
            if columns.values.null_count or tombstones:
                tombstones += [False] * (len(offsets) - columns.count - len(tombstones))
                tombstones += _nulls(columns.values, columns.count)
        return cls(offsets, timestamps, keys, tombstones)


def _strings(column: BinaryColumn, count: int) -> list[bytes | None]:
    if column.null_count == count:
        return [None] * count
    assert column.offsets is not None  # copied, not views
    data = bytes(column.data[0])
    ends = memoryview(column.offsets).cast("B").cast("i").tolist()
    strings: list[bytes | None] = [data[begin:end] for begin, end in pairwise(ends)]
    if column.null_count:
        return [
            None if null else string for string, null in zip(strings, _nulls(column, count), strict=False)
        ]
    return strings


def _nulls(column: BinaryColumn, count: int) -> list[bool]:
    if column.validity is None:
        return [False] * count
    validity = bytes(column.validity)
    return [not validity[i >> 3] >> (i & 7) & 1 for i in range(count)]
