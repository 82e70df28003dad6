"""The partitions that Java's default partitioner chooses for the keys of a column."""

from __future__ import annotations

from array import array

from kclient._accel.reference.hashing import murmur2
from kclient._accel.shared.batch_input import Column, checked_column, rows


def key_partitions(keys: Column, start: int, stop: int, partition_count: int) -> memoryview:
    """The partitions of the keys `start` to `stop` of a column, as int32; -1 for a key that is null.

    Raises TypeError and ValueError for a column that is not one (see `BatchBuilder.append_columns`), and ValueError
    without partitions.
    """
    if partition_count < 1:
        raise ValueError(f"keys cannot be spread over {partition_count} partitions")
    column = checked_column(keys, "keys", start, stop)
    found = array("i", bytes(4 * (stop - start)))
    for at, (_, key, _) in enumerate(rows(0, column, None, start, stop)):
        found[at] = -1 if key is None else (murmur2(key) & 0x7FFFFFFF) % partition_count
    return memoryview(found)
