"""From a future of kclient's to those of asyncio and of concurrent.futures. Both are imported at first use."""

from __future__ import annotations

import contextlib
import reprlib
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures


class Awaited(Protocol):
    """The part of a future that is needed here. An error is one value of `exception`, the others are results."""

    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> Any: ...
    def exception(self, timeout: float | None = None) -> BaseException | None: ...
    def add_done_callback(self, callback: Callable[[Any], Any]) -> None: ...


def wait_in_loop(future: Awaited) -> Generator[Any, None, Any]:
    """Wait for `future` in the running asyncio loop, for an `__await__`; its result, or its error raised.

    If the task is cancelled, the operation goes on. Raises RuntimeError where no loop runs.
    """
    if not _is_done(future):
        import asyncio

        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def finish() -> None:
            if not waiter.done():  # cancelled
                waiter.set_result(None)

        def wake(_: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                loop.call_soon_threadsafe(finish)

        future.add_done_callback(wake)
        yield from waiter.__await__()
    return future.result()


def _is_done(future: Awaited) -> bool:
    # Not asked by `done`, as this raises an error in a forked child, where no callback would ever be called.
    try:
        future.exception(0)
    except TimeoutError:
        return False
    return True


def as_concurrent(future: Awaited) -> concurrent.futures.Future[Any]:
    """A `concurrent.futures.Future` with the outcome of `future`. It cannot be cancelled, as that is under way."""
    import concurrent.futures

    _is_done(future)
    made: concurrent.futures.Future[Any] = concurrent.futures.Future()
    made.set_running_or_notify_cancel()

    def finish(done: Awaited) -> None:
        error = done.exception()
        if error is None:
            made.set_result(done.result())
        else:
            made.set_exception(error)

    future.add_done_callback(finish)
    return made


def text_of(future: Awaited, name: str) -> str:
    """Return the `repr` of a future called `name`: whether it is done, and with what."""
    if not future.done():
        return f"<{name}: not done>"
    error = future.exception()
    if error is not None:
        return f"<{name}: failed with {error!r}>"
    return f"<{name}: {reprlib.repr(future.result())}>"
