"""Future: the small handle that the sender of a record gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kclient._accel.shared.batch_result import BatchResult
from kclient._accel.shared.bridges import text_of
from kclient._accel.shared.future import KafkaFuture


class Future(KafkaFuture[Any]):
    """The result of one record: a handle on its batch's result and the record's index in it. Thread-safe.

    `about` is the record's timestamp and the sizes of its key and value: a tuple, since records that are alike can
    share it. What a future holds itself is looked at by every round of the cyclic collector.
    """

    __slots__ = ("_about", "_index", "_result")

    def __init__(self, result: BatchResult, index: int, about: tuple[int, int, int]) -> None:
        self._result = result
        self._index = index
        self._about = about

    def done(self) -> bool:
        """True if the record was acknowledged or has failed, and the callback that it was sent with has run."""
        return self._result.done or self._result.successor(self._index)[0].done

    def result(self, timeout: float | None = None) -> Any:
        """The record's metadata; waits for it up to `timeout` seconds, or without end.

        Raises the record's error if it failed, and a TimeoutError if neither is known in time. In a callback of its own
        batch it does not wait, although it is not done there.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self.metadata()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The record's error, None if it was written; waits, and raises when the time is over, as `result` does."""
        result = self._result
        # First what is asked for most, of every record at the end of a program that checks them all.
        if result.done and result.error is None:
            return None
        return result.outcome(self._index, timeout)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call `callback(future)` when done, on the thread that completes it; at once, if it is done."""
        result, _ = self.resolve()
        result.add_callback(self, callback, False)

    def __repr__(self) -> str:
        result, _ = self.resolve()
        return text_of(self, f"Future of a record for {result.topic}-{result.partition}")

    def metadata(self) -> Any:
        """The record's metadata as far as it is known now; never waits and never raises."""
        result, index = self.resolve()
        return result.metadata_factory(result, index, *self._about)

    def resolve(self) -> tuple[BatchResult, int]:
        """The result that stands for the record now, and the record's index in it."""
        return self._result.successor(self._index)

    def resolved_error(self) -> BaseException | None:
        """The record's error as far as it is known now."""
        result, index = self.resolve()
        return result.record_error(index)
