"""BulkSend: many records of one call on their way into batches, with no object for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kclient._accel import BatchResult
from kclient.errors import KafkaError
from kclient.producer.bulk import BulkFuture, Part
from kclient.producer.internals.accumulator import RecordAccumulator
from kclient.producer.internals.partition_queue import Added, Contents, TopicQueues
from kclient.producer.types import record_metadata
from kclient.utils.futures import KafkaFuture
from kclient.utils.steps import Steps

Take = Callable[[TopicQueues, "int | None", int, int], Steps[Added]]
"""(queues, partition, start, stop) -> result, index there and count of the records that were added, from `start` on."""


class BulkSend:
    """Collects what became of the records of one call. Belongs to the thread that makes the call.

    What goes wrong on the way (no more memory, the producer is closed) is the outcome of the records that are left: the
    ones before are on their way, and raising would lose them.
    """

    __slots__ = ("_accumulator", "_failed", "_parts", "_refused")

    def __init__(self, accumulator: RecordAccumulator, refused: Callable[[KafkaError], None]) -> None:
        self._accumulator = accumulator
        self._refused = refused
        self._parts: list[Part] = []
        self._failed: BaseException | None = None

    def future(self) -> BulkFuture:
        """The outcome of everything that was added."""
        return BulkFuture(self._parts)

    def add(
        self,
        queues: TopicQueues,
        partition: int | None,
        keys: Contents | None,
        values: Contents,
        indexes: Sequence[int],
    ) -> Steps[None]:
        """Send `values`, and the `keys` beside them, to one partition, or where there is room if that is None.

        They were the records `indexes` of the call.
        """

        def take(queues: TopicQueues, partition: int | None, start: int, stop: int) -> Steps[Added]:
            return self._accumulator.append_many(queues, partition, keys, values, start, stop)

        yield from self.run(take, queues, partition, indexes)

    def run(
        self, take: Take, queues: TopicQueues, partition: int | None, indexes: Sequence[int]
    ) -> Steps[None]:
        """Call `take` until all records are in batches, or one cannot be added."""
        done = 0
        count = len(indexes)
        while done < count:
            if self._failed is None:
                try:
                    result, first, taken = yield from take(queues, partition, done, count)
                except KafkaError as error:
                    self._failed = error
                    self._refused(error)
                else:
                    self._took(result, first, indexes[done : done + taken])
                    done += taken
            else:
                self.refuse(queues.topic, partition, self._failed, indexes[done:])
                return

    def add_single(self, send: Steps[KafkaFuture[Any]], topic: str, index: int) -> Steps[None]:
        """Send one record by `send`; whatever that raises is its outcome."""
        try:
            future: Any = yield from send
        except Exception as error:
            self.refuse(topic, None, error, range(index, index + 1))
        else:
            result, first = future.resolve()
            self._took(result, first, range(index, index + 1))

    def refuse(self, topic: str, partition: int | None, error: BaseException, indexes: Sequence[int]) -> None:
        """Count the records as failed before they came into a batch."""
        result = BatchResult(topic, -1 if partition is None else partition, record_metadata)
        result.complete(-1, -1, error)
        self._parts.append(Part(result, 0, indexes))

    def _took(self, result: BatchResult, first: int, indexes: Sequence[int]) -> None:
        parts = self._parts
        if parts and isinstance(indexes, range) and indexes.step == 1:
            last = parts[-1]
            before = last.indexes
            if (
                last.result is result
                and last.first + len(before) == first
                and isinstance(before, range)
                and before.stop == indexes.start
            ):
                last.indexes = range(before.start, indexes.stop)
                return
        parts.append(Part(result, first, indexes))
