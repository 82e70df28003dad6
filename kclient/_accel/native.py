"""The native body: the seam in C, under the names of the pure one.

What is not worth a native form is the pure body's, and so is the result that the records of a batch share.
"""

from __future__ import annotations

from kclient._accel.batch import BatchBuilder, Future, crc32c, murmur2
from kclient._accel.pure_batch import encode_record
from kclient._accel.pure_future import BatchResult
from kclient._accel.pure_reader import RecordReader
from kclient._accel.pure_records import decode_records

__all__ = [
    "BatchBuilder",
    "BatchResult",
    "Future",
    "RecordReader",
    "crc32c",
    "decode_records",
    "encode_record",
    "murmur2",
]
