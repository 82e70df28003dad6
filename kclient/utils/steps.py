"""Steps: operations that may have to wait, for whoever can wait in his own way: a thread here, an asyncio loop.

The core of a client is written in steps and never waits by itself. It yields what it waits for, and is resumed when
that has come or the time for it is over; which of the two, it finds out itself.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

import attrs

from kclient.utils.futures import CompletableFuture, KafkaFuture
from kclient.utils.time import Time, Timer

T = TypeVar("T")


@attrs.frozen
class Pause:
    """A wait until `future` is done, or has failed, or `timer` has expired; without one, for the future alone."""

    future: KafkaFuture[Any]
    timer: Timer | None

    def remaining_ms(self) -> int | None:
        """Milliseconds left, None for no limit."""
        return None if self.timer is None else self.timer.remaining_ms()


Steps: TypeAlias = Generator[Pause, None, T]


class Broadcast:
    """A future for all who wait for the next change of what a lock protects. The lock is held in both calls.

    In place of a `threading.Condition`, for which only threads can wait.
    """

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next: CompletableFuture[None] | None = None

    def next(self) -> CompletableFuture[None]:
        """A future of the next change, the same for all who wait now."""
        future = self._next
        if future is None or future.done():
            self._next = future = CompletableFuture()
        return future

    def notify_all(self) -> None:
        """Tell all who wait that there was one."""
        future = self._next
        if future is not None:
            future.complete(None)
            # Last: a Ctrl-C may follow every call, and the next notification makes up for it.
            self._next = None


def run(steps: Steps[T], time: Time) -> T:
    """Take the steps on the calling thread, and wait where they do; returns and raises what they do.

    Where a signal handler raises in a wait, the steps end there, too, and put in order what they have begun.
    """
    try:
        while True:
            _wait(next(steps), time)
    except StopIteration as done:
        result: T = done.value
        return result
    except BaseException:
        steps.close()
        raise


_FOR_EVER_MS = 2**53


def _wait(pause: Pause, time: Time) -> None:
    left_ms = pause.remaining_ms()
    if left_ms == 0 or pause.future.done():
        return
    done = threading.Lock()
    done.acquire()
    pause.future.add_done_callback(lambda _: done.release())
    time.wait_for_lock(done, _FOR_EVER_MS if left_ms is None else left_ms)
