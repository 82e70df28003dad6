"""The batches in a buffer, such as the records field of a fetch answer or of a produce request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import attrs

from kclient.errors import CorruptRecordError
from kclient.record import constants as c
from kclient.record.batch import RecordBatch
from kclient.record.legacy import LegacyBatch

Buffer = bytes | bytearray | memoryview

Batch: TypeAlias = RecordBatch | LegacyBatch
"""A batch of any magic. Sizes in bytes, times in ms since the epoch, -1 for none."""


@attrs.frozen
class BatchHeader:
    """The facts about the batch at `position` that its header alone gives.

    For a message of magic 0 or 1 they are few: both offsets are that of its last record.
    """

    position: int
    size_in_bytes: int
    magic: int
    base_offset: int
    last_offset: int
    partition_leader_epoch: int
    attributes: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def next_offset(self) -> int:
        """The offset after the last."""
        return self.last_offset + 1


def batch_size(head: Buffer, where: str = "") -> tuple[int, int]:
    """Size in bytes and magic of the batch that begins with the 17 bytes of `head`.

    Raises CorruptRecordError for a size that cannot be, and for an unknown magic.
    """
    length = int.from_bytes(head[c.LENGTH_AT : c.LOG_OVERHEAD], "big", signed=True)
    if not c.SMALLEST_LENGTH <= length <= c.LARGEST_LENGTH:
        raise CorruptRecordError(f"A batch{where} says that it has {length} bytes, which cannot be.")
    magic = head[c.MAGIC_AT]
    if magic > c.MAGIC_2:
        raise CorruptRecordError(f"A batch{where} has the unknown magic {magic}.")
    return c.LOG_OVERHEAD + length, magic


def parse_header(head: Buffer, position: int = 0) -> BatchHeader:
    """The header at the beginning of `head`, which has all of it: 61 bytes, or what a smaller message has."""
    size, magic = batch_size(head, f" at position {position}")
    if magic < c.MAGIC_2:
        offset = int.from_bytes(head[:8], "big", signed=True)
        has_time = magic == c.MAGIC_1 and len(head) >= 26
        max_ts = int.from_bytes(head[18:26], "big", signed=True) if has_time else c.NO_TIMESTAMP
        return BatchHeader(
            position,
            size,
            magic,
            offset,
            offset,
            c.NO_LEADER_EPOCH,
            head[17] if len(head) > 17 else 0,
            max_ts,
            c.NO_PRODUCER_ID,
            c.NO_PRODUCER_EPOCH,
            c.NO_SEQUENCE,
            -1,
        )
    if size < c.BATCH_OVERHEAD or len(head) < c.BATCH_OVERHEAD:
        raise CorruptRecordError(f"A batch at position {position} has no room for its header.")
    base, _, epoch, _, _, attributes, delta, _, max_ts, pid, pid_epoch, sequence, count = (
        c.HEADER.unpack_from(head)
    )
    return BatchHeader(
        position, size, magic, base, base + delta, epoch, attributes, max_ts, pid, pid_epoch, sequence, count
    )


def batch_headers(buf: Buffer) -> Iterator[BatchHeader]:
    """The headers of the whole batches in `buf`, in order; one that is cut off at the end is left out.

    Raises CorruptRecordError where the next batch cannot be found.
    """
    view = memoryview(buf)
    for position, size, _ in _spans(view):
        yield parse_header(view[position : position + min(size, c.BATCH_OVERHEAD)], position)


def iter_batches(buf: Buffer) -> Iterator[Batch]:
    """The whole batches in `buf`, in order, as views of it; one that is cut off at the end is left out.

    Raises CorruptRecordError where the next batch cannot be found.
    """
    view = memoryview(buf)
    for position, size, magic in _spans(view):
        batch = view[position : position + size]
        yield RecordBatch(batch) if magic == c.MAGIC_2 else LegacyBatch(batch)


def _spans(view: memoryview) -> Iterator[tuple[int, int, int]]:
    position = 0
    while len(view) - position >= c.HEADER_UP_TO_MAGIC:
        size, magic = batch_size(view[position : position + c.HEADER_UP_TO_MAGIC], f" at position {position}")
        if size > len(view) - position:
            return
        yield position, size, magic
        position += size
