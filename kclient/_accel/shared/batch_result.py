"""BatchResult: what the records of a batch share of their outcome."""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from kclient._accel.shared import forks
from kclient._accel.shared.callbacks import belongs_to_caller
from kclient._accel.shared.hooks import hooks

log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 1.0

MetadataFactory = Callable[["BatchResult", int, int, int, int], Any]
DeliveryCallback = Callable[[Any, "BaseException | None"], object]
_Callback: TypeAlias = "tuple[RecordFuture, Callable[..., object], bool]"


class RecordFuture(Protocol):
    """The part of a record's future that its batch's result needs."""

    def metadata(self) -> Any: ...
    def resolve(self) -> tuple[BatchResult, int]: ...
    def resolved_error(self) -> BaseException | None: ...


def _plain_metadata(
    result: BatchResult, index: int, timestamp_ms: int, key_size: int, value_size: int
) -> Any:
    """Topic, partition, offset (-1 if not known), timestamp, sizes of key and value."""
    offset = result.base_offset + index if result.base_offset >= 0 else -1
    if result.log_append_time_ms >= 0:
        timestamp_ms = result.log_append_time_ms
    return (result.topic, result.partition, offset, timestamp_ms, key_size, value_size)


class BatchResult:
    """The outcome of a batch; completed once, for all its records. Thread-safe.

    It is `done` once the callbacks that were given with the records have run. They alone may ask before that: to the
    thread that runs them the outcome is told without waiting, as it would wait for itself.

    `metadata_factory(result, index, timestamp_ms, key_size, value_size)` makes what the future of the batch's
    `index`-th record returns; without one that is a plain tuple. It must not raise.

    A batch that was too large for its broker is cut up: `replace_with` then names the results that take its place, and
    futures and waiters of this one follow them. `done` stays False for it.
    """

    __slots__ = (
        "_deliveries",
        "_forks",
        "_known",
        "_latch",
        "_lock",
        "_notified",
        "_record_error",
        "_starts",
        "_successors",
        "_teller",
        "_watchers",
        "base_offset",
        "done",
        "error",
        "log_append_time_ms",
        "log_prefix",
        "metadata_factory",
        "partition",
        "topic",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        metadata_factory: MetadataFactory | None = None,
        log_prefix: str = "",
    ) -> None:
        self.log_prefix = log_prefix
        self.topic = topic
        self.partition = partition
        self.metadata_factory: MetadataFactory = metadata_factory or _plain_metadata
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.error: BaseException | None = None
        self.done = False
        self._record_error: Callable[[int], BaseException] | None = None
        # Made by the first waiter: most batches have none.
        self._latch: threading.Lock | None = None
        # What runs before it is done, and what runs then.
        self._deliveries: list[_Callback] = []
        self._watchers: list[_Callback] = []
        self._known = False
        self._notified = False
        self._teller: int | None = None
        self._starts: Sequence[int] = ()
        self._successors: Sequence[BatchResult] = ()
        # Reentrant: a signal handler or a __del__ that interrupts its holder may add a callback.
        self._lock = threading.RLock()
        self._forks = forks.generation

    def complete(
        self,
        base_offset: int,
        log_append_time_ms: int = -1,
        error: BaseException | None = None,
        record_error: Callable[[int], BaseException] | None = None,
    ) -> bool:
        """Set the outcome; False, and nothing else, if there was one already.

        `error` fails all records; `record_error(i)`, if given, then says the error of the i-th one. Here the callbacks
        run that came with the records, in their order, then it is done, then those run that wait for this, and then
        `wait` returns: whoever finds a future done knows that its callback ran, and whoever flushes that all did.
        Where a callback's error has interrupted it, the next call goes on.
        """
        with self._lock:
            if self._notified or self._successors:
                return False
            if not self._known:
                self.base_offset = base_offset
                self.log_append_time_ms = log_append_time_ms
                self.error = error
                self._record_error = record_error
                self._known = True
            self._teller = threading.get_ident()
            callbacks = self._next_callbacks()
        while callbacks:
            self._tell(callbacks)
            with self._lock:
                callbacks = self._next_callbacks()
        return True

    def _next_callbacks(self) -> list[_Callback]:
        """The callbacks that are to run next; none when all have run, which wakes who waits. The lock is held."""
        # Another list in any case: by that a builder knows that it is too late for its own way of adding callbacks.
        callbacks, self._deliveries = self._deliveries, []
        if callbacks:
            return callbacks
        self.done = True
        callbacks = self._watchers
        if callbacks:
            self._watchers = []
            return callbacks
        self._notified = True
        latch, self._latch = self._latch, None
        if latch is not None:
            latch.release()
        return callbacks

    def _tell(self, callbacks: list[_Callback]) -> None:
        try:
            self._deliver(callbacks)
        except BaseException:
            # The others are for the next call.
            with self._lock:
                left = self._watchers if self.done else self._deliveries
                left[:0] = callbacks
            raise

    def _deliver(self, callbacks: list[_Callback]) -> None:
        """Call the callbacks in order, and take those out of the list that were begun if one of them ends it."""
        begun = 0
        try:
            for future, callback, on_delivery in callbacks:
                begun += 1
                self._notify(future, callback, on_delivery)
        except BaseException:
            del callbacks[:begun]
            raise

    def replace_with(self, successors: Sequence[tuple[int, BatchResult]]) -> None:
        """Let other results take the place of this one: (index of the first record, result), in order.

        Must be called before the successors can be completed. Raises ValueError if this one is complete, or was
        handed over before.
        """
        with self._lock:
            if self._known or self._successors:
                raise ValueError("the result of a batch that is complete cannot be handed over")
            if not successors:
                raise ValueError("a batch's result needs at least one successor")
            self._starts = [start for start, _ in successors]
            self._successors = [result for _, result in successors]
            self._notified = True
            callbacks = self._deliveries + self._watchers
            self._deliveries, self._watchers = [], []
            latch = self._latch
        for future, callback, on_delivery in callbacks:
            result, _ = future.resolve()
            result.add_callback(future, callback, on_delivery)
        if latch is not None:
            latch.release()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the outcome is known and the callbacks have run; False if the time was over before that.

        A callback itself does not wait.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        if not self.wait_here(timeout_s):
            return False
        for successor in self._successors:
            if not successor.wait(None if deadline is None else max(0.0, deadline - time.monotonic())):
                return False
        return True

    def wait_here(self, timeout_s: float | None = None) -> bool:
        """As `wait`, but a result that was handed over counts as known: its successors are not waited for."""
        if self._forks != forks.generation:
            # Before any lock: a thread of the parent may have held it when the process was forked.
            raise hooks.forked_error(
                f"{self.topic}-{self.partition}: the record was sent before os.fork(); only the parent process will "
                "hear what became of it"
            )
        if self._teller == threading.get_ident():
            return True
        with self._lock:
            latch = self._latch
            if latch is None and not self._notified:
                latch = self._latch = threading.Lock()
                latch.acquire()
        if latch is None:
            return True
        # A lock is passed on from one waiter to the next, and costs far less than an Event. In pieces, because a
        # Ctrl-C between the next two calls leaves it held for the others.
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._notified:
            left_s = _LOOK_AGAIN_S if deadline is None else min(deadline - time.monotonic(), _LOOK_AGAIN_S)
            if left_s <= 0:
                return False
            if latch.acquire(timeout=left_s):
                latch.release()
        return True

    def outcome(self, index: int, timeout_s: float | None = None) -> BaseException | None:
        """The error of the batch's `index`-th record, None if it was written; waits for it.

        Follows the record alone: the batch's other parts, if it is cut up, may take longer. Raises a TimeoutError if
        the time is over before.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        in_time = True
        while True:
            result, at = self.successor(index)
            if result.known_here:
                return result.record_error(at)
            if not in_time:
                raise hooks.timeout_error(
                    f"{self.topic}-{self.partition}: the record was not acknowledged within {timeout_s} s; "
                    "it may still be"
                )
            in_time = result.wait_here(None if deadline is None else max(0.0, deadline - time.monotonic()))

    @property
    def known_here(self) -> bool:
        """True if the calling thread may be told the outcome: all may when it is done, the callbacks before that."""
        return self.done or self._teller == threading.get_ident()

    def successor(self, index: int) -> tuple[BatchResult, int]:
        """The result that now stands for the record `index` of this batch, and its index there."""
        result = self
        while result._successors:
            at = bisect_right(result._starts, index) - 1
            index -= result._starts[at]
            result = result._successors[at]
        return result, index

    def pieces(self, start: int, stop: int) -> list[tuple[BatchResult, int, int]]:
        """The results that now stand for the records `start` to `stop` of this batch, in order, with their ranges."""
        if not self._successors:
            return [(self, start, stop)]
        found: list[tuple[BatchResult, int, int]] = []
        at = bisect_right(self._starts, start) - 1
        while start < stop:
            first = self._starts[at]
            end = min(stop, self._starts[at + 1]) if at + 1 < len(self._starts) else stop
            found += self._successors[at].pieces(start - first, end - first)
            start = end
            at += 1
        return found

    def record_error(self, index: int) -> BaseException | None:
        """The error of the batch's `index`-th record; None while the outcome is not known, and if it was written."""
        if self.error is not None and self._record_error is not None:
            return self._record_error(index)
        return self.error

    def add_callback(self, future: RecordFuture, callback: Callable[..., object], on_delivery: bool) -> None:
        """Run `callback(metadata, error)` before it is done if `on_delivery`, else `callback(future)` then.

        If it is done, the callback runs now. What it raises is logged and goes no further.
        """
        target = self
        while True:
            with target._lock:
                if not target.done and not target._successors:
                    callbacks = target._deliveries if on_delivery else target._watchers
                    callbacks.append((future, callback, on_delivery))
                    return
            if target.done:
                target._notify(future, callback, on_delivery)
                return
            target, _ = future.resolve()

    def _notify(self, future: RecordFuture, callback: Callable[..., object], on_delivery: bool) -> None:
        try:
            if on_delivery:
                callback(future.metadata(), future.resolved_error())
            else:
                callback(future)
        except BaseException as error:
            self.callback_raised(error)

    def callback_raised(self, error: BaseException) -> None:
        """Log what a callback raised, and raise it again if it is for the calling thread's program."""
        log.error(
            "%sA callback for %s-%d raised", self.log_prefix, self.topic, self.partition, exc_info=error
        )
        if belongs_to_caller(error):
            raise error
