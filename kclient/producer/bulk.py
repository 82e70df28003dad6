"""The results of many records that were sent by one call."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from kclient._accel import BatchResult, Future, belongs_to_caller
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaTimeoutError
from kclient.utils.futures import KafkaFuture

log = logging.getLogger(__name__)

# Timestamp and sizes of a record that nobody asks about.
_UNKNOWN = (-1, -1, -1)


@attrs.frozen
class RecordRange:
    """Records of one call that went to one partition together. Immutable.

    `indexes` says which they were, as positions in what was given to the call, and the first of them has the offset
    `base_offset`, the next one the next. That is -1 when it is not known: with acks=0, and if they failed with `error`.
    """

    topic: str
    partition: int
    """-1 for records that failed before a partition was chosen."""
    base_offset: int
    indexes: Sequence[int]
    error: BaseException | None = None

    @property
    def count(self) -> int:
        """The number of these records."""
        return len(self.indexes)

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition in one."""
        return TopicPartition(self.topic, self.partition)


@attrs.define
class Part:
    """Records that share a batch's result: the `first` of them is that record of the batch, the others follow."""

    result: BatchResult
    first: int
    indexes: Sequence[int]


class BulkFuture(KafkaFuture[list[RecordRange]]):
    """The outcome of all records of one `send_many` or `send_arrow`. Thread-safe.

    There is no object for each record: `result` returns ranges of them, and `ranges` what is known so far.
    """

    __slots__ = ("_parts", "count")

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self.count = sum(len(part.indexes) for part in parts)
        """The number of records that were given to the call."""

    def done(self) -> bool:
        """True if every record was acknowledged or has failed, and the callbacks of their batches have run."""
        return self._first_open(0) is None

    def result(self, timeout: float | None = None) -> list[RecordRange]:
        """Return the ranges that hold the records; waits for all of them up to `timeout` seconds, or without end.

        Raises the error of the first range that failed, and KafkaTimeoutError when the time is over. After an error
        `ranges` says what has failed and what has not.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self.ranges()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error of the first range that failed, None if all were written; waits as `result` does."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for part in () if self.done() else self._parts:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not part.result.known_here and not part.result.wait(left_s):
                raise KafkaTimeoutError(
                    f"{part.result.topic}-{part.result.partition}: not all of {self.count} records were acknowledged "
                    f"within {timeout} s; they may still be"
                )
        return next((found.error for found in self.ranges() if found.error is not None), None)

    def __repr__(self) -> str:
        found = self.ranges()
        failed = sum(part.count for part in found if part.error is not None)
        waiting = self.count - sum(part.count for part in found)
        return f"<BulkFuture of {self.count} records: {waiting} not done, {failed} failed>"

    def ranges(self) -> list[RecordRange]:
        """The ranges whose outcome is known now; never waits and never raises."""
        found: list[RecordRange] = []
        for part in self._parts:
            taken = 0
            for result, start, stop in part.result.pieces(part.first, part.first + len(part.indexes)):
                indexes = part.indexes[taken : taken + stop - start]
                taken += stop - start
                if result.known_here:
                    found += _outcomes(result, start, indexes)
        return found

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call `callback(future)` once all is known, on the thread that completes it; at once, if it is."""
        self._watch(0, callback)

    def _watch(self, number: int, callback: Callable[[Any], None]) -> None:
        # Goes from one open part to the next, on whatever thread completes them, until there is none.
        found = self._first_open(number)
        if found is not None:
            number, result, index = found
            Future(result, index, _UNKNOWN).add_done_callback(lambda _: self._watch(number, callback))
            return
        try:
            callback(self)
        except BaseException as error:
            log.exception("A callback for the records of one call raised")
            if belongs_to_caller(error):
                raise

    def _first_open(self, start: int) -> tuple[int, BatchResult, int] | None:
        """The first part from number `start` on that is not complete: its number, and a record it waits for."""
        for number in range(start, len(self._parts)):
            part = self._parts[number]
            if not part.result.done:
                for result, first, _ in part.result.pieces(part.first, part.first + len(part.indexes)):
                    if not result.done:
                        return number, result, first
        return None


def _outcomes(result: BatchResult, start: int, indexes: Sequence[int]) -> list[RecordRange]:
    """Ranges of records with the same outcome: one for all, unless the broker refused single records."""
    topic, partition = result.topic, result.partition
    if result.error is None:
        offset = result.base_offset
        return [RecordRange(topic, partition, offset + start if offset >= 0 else -1, indexes)]
    found: list[RecordRange] = []
    at = 0
    error = result.record_error(start)
    for i in range(1, len(indexes) + 1):
        following = result.record_error(start + i) if i < len(indexes) else None
        if following is not error:
            found.append(RecordRange(topic, partition, -1, indexes[at:i], error))
            at, error = i, following
    return found
