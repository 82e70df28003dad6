"""KafkaFuture: what every asynchronous call of kclient returns."""

from __future__ import annotations

import abc
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kclient._accel.shared.bridges import as_concurrent, text_of, wait_in_loop

if TYPE_CHECKING:
    import concurrent.futures

T = TypeVar("T")


class KafkaFuture(abc.ABC, Generic[T]):
    """The result of an operation that the I/O thread completes. Thread-safe.

    The futures of single records are slimmer classes registered as virtual subclasses, so `isinstance` holds for
    them too. `await` it in a coroutine, or take `as_concurrent()` where a future of the standard library is needed.
    """

    __slots__ = ()

    @abc.abstractmethod
    def done(self) -> bool:
        """True once a result or an error is there."""

    @abc.abstractmethod
    def result(self, timeout: float | None = None) -> T:
        """Wait for the result.

        `timeout` is in seconds, as in `concurrent.futures`; None waits for ever. Raises the operation's error, or
        `KafkaTimeoutError` when the time is over (the operation itself goes on).
        """

    @abc.abstractmethod
    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait like `result` and return the operation's error, None if it succeeded."""

    @abc.abstractmethod
    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call `callback(future)` once done: on the completing thread, or at once if it is done already.

        What the callback raises is logged and goes no further: on another thread than the main one not even
        `sys.exit()` does.
        """

    def as_concurrent(self) -> concurrent.futures.Future[T]:
        """A `concurrent.futures.Future`, for `wait`, `as_completed` and `asyncio.wrap_future`; not to be cancelled."""
        return as_concurrent(self)

    def __await__(self) -> Generator[Any, None, T]:
        """Wait in the running asyncio loop; a task that is cancelled leaves the operation going on."""
        return wait_in_loop(self)

    def __repr__(self) -> str:
        return text_of(self, type(self).__name__)
