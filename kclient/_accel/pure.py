"""The reference body: the seam in plain Python."""

from __future__ import annotations

from kclient._accel.pure_batch import BatchBuilder, encode_record
from kclient._accel.pure_check import largest_timestamp
from kclient._accel.pure_ends import end_of_batches
from kclient._accel.pure_future import BatchResult, Future
from kclient._accel.pure_hand_over import hand_over
from kclient._accel.pure_hash import crc32c, murmur2
from kclient._accel.pure_partitions import key_partitions
from kclient._accel.pure_poller import FrameMemory, Poller
from kclient._accel.pure_reader import RecordReader
from kclient._accel.pure_records import decode_records

__all__ = [
    "BatchBuilder",
    "BatchResult",
    "FrameMemory",
    "Future",
    "Poller",
    "RecordReader",
    "crc32c",
    "decode_records",
    "encode_record",
    "end_of_batches",
    "hand_over",
    "key_partitions",
    "largest_timestamp",
    "murmur2",
]
