"""The native body: the seam in C, under the names of the pure one.

What is not worth a native form is the pure body's, and so is the result that the records of a batch share.
"""

from __future__ import annotations

from kclient._accel import batch, poller
from kclient._accel.batch import BatchBuilder, Future, crc32c, key_partitions, murmur2
from kclient._accel.poller import FrameMemory
from kclient._accel.pure_batch import encode_record
from kclient._accel.pure_future import BatchResult
from kclient._accel.pure_records import decode_records
from kclient._accel.reader import RecordReader, end_of_batches, largest_timestamp

if poller.AVAILABLE:
    from kclient._accel.batch import hand_over
    from kclient._accel.poller import Poller
else:
    # Without epoll the pure Poller stands in, and with it the way to give way to it.
    from kclient._accel.pure_hand_over import hand_over
    from kclient._accel.pure_poller import Poller

    batch.give_way_by(hand_over)

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
