"""The native body: the seam in C, under the names of the pure one.

What is not worth a native form is the pure body's.
"""

from __future__ import annotations

from typing import Any

from kclient._accel import reference
from kclient._accel.native import batch, poller
from kclient._accel.native.batch import (
    BatchBuilder,
    Future,
    OpenBatches,
    crc32c,
    deliver,
    key_partitions,
    metadata_factory,
    murmur2,
)
from kclient._accel.native.poller import FrameMemory
from kclient._accel.native.reader import (
    RecordCursor,
    RecordIterator,
    RecordReader,
    end_of_batches,
    largest_timestamp,
)
from kclient._accel.reference.batch import encode_record
from kclient._accel.shared import batch_result
from kclient._accel.shared.future import KafkaFuture

KafkaFuture.register(Future)


class BatchResult(batch_result.BatchResult):
    """As the class of this name in `shared/batch_result.py`, with its callbacks called in one loop."""

    __slots__ = ()

    def _deliver(self, callbacks: list[Any]) -> None:
        deliver(self, callbacks)


if poller.AVAILABLE:
    from kclient._accel.native.batch import yield_gil
    from kclient._accel.native.poller import Poller
else:
    # Without epoll the pure Poller stands in, and with it the way to give way to it.
    from kclient._accel.reference.gil import yield_gil
    from kclient._accel.reference.poller import Poller

    batch.give_way_by(yield_gil)

__all__ = reference.__all__
