"""The reference body: the seam in plain Python."""

from __future__ import annotations

from kclient._accel.reference.batch import BatchBuilder, encode_record
from kclient._accel.reference.batch_end import end_of_batches
from kclient._accel.reference.check import largest_timestamp
from kclient._accel.reference.future import Future
from kclient._accel.reference.gil import yield_gil
from kclient._accel.reference.hashing import crc32c, murmur2
from kclient._accel.reference.metadata import metadata_factory
from kclient._accel.reference.open_batches import OpenBatches
from kclient._accel.reference.partitions import key_partitions
from kclient._accel.reference.poller import FrameMemory, Poller
from kclient._accel.reference.reader import RecordReader
from kclient._accel.reference.record_cursor import RecordCursor, RecordIterator
from kclient._accel.shared.batch_result import BatchResult

__all__ = [
    "BatchBuilder",
    "BatchResult",
    "FrameMemory",
    "Future",
    "OpenBatches",
    "Poller",
    "RecordCursor",
    "RecordIterator",
    "RecordReader",
    "crc32c",
    "encode_record",
    "end_of_batches",
    "key_partitions",
    "largest_timestamp",
    "metadata_factory",
    "murmur2",
    "yield_gil",
]
