"""CompletableFuture: the future of an operation that is not a record."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from kclient._accel import KafkaFuture, belongs_to_caller, forks
from kclient.errors import ForkedClientError, KafkaTimeoutError

__all__ = ["CompletableFuture", "KafkaFuture"]

log = logging.getLogger(__name__)

T = TypeVar("T")


class CompletableFuture(KafkaFuture[T]):
    """A `KafkaFuture` completed by calling `complete` or `fail`; the first call wins. Thread-safe."""

    __slots__ = ("_callbacks", "_condition", "_done", "_error", "_generation", "_lock", "_value")

    def __init__(self) -> None:
        # Reentrant: a signal handler may fail the future that its own thread is about to wait for.
        # Held by its own name: entering a Condition is a function of Python's, in which a Ctrl-C would leave it held.
        self._lock = threading.RLock()
        # Made by the first who waits for it: most futures have callbacks only.
        self._condition: threading.Condition | None = None
        self._done = False
        self._value: T | None = None
        self._generation = forks.generation
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Any], None]] = []

    @classmethod
    def completed(cls, value: T) -> CompletableFuture[T]:
        """A future that is done already, with `value`."""
        future = cls()
        future.complete(value)
        return future

    @classmethod
    def failed(cls, error: BaseException) -> CompletableFuture[T]:
        """A future that is done already, with `error`."""
        future = cls()
        future.fail(error)
        return future

    def complete(self, value: T) -> bool:
        """Set the result; False if the future was done already."""
        return self._finish(value, None)

    def fail(self, error: BaseException) -> bool:
        """Set the error; False if the future was done already."""
        return self._finish(None, error)

    def done(self) -> bool:
        return self._done

    def result(self, timeout: float | None = None) -> T:
        self._await(timeout)
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._await(timeout)
        return self._error

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        with self._lock:
            if not self._done:
                self._callbacks.append(callback)
                return
        self._call(callback)

    def _finish(self, value: T | None, error: BaseException | None) -> bool:
        with self._lock:
            if self._done:
                return False
            self._value = value
            self._error = error
            self._done = True
            callbacks, self._callbacks = self._callbacks, []
            if self._condition is not None:
                self._condition.notify_all()
        interrupt: BaseException | None = None
        for callback in callbacks:
            try:
                self._call(callback)
            except BaseException as caught:
                interrupt = caught  # the others are called all the same
        if interrupt is not None:
            raise interrupt
        return True

    def _call(self, callback: Callable[[Any], None]) -> None:
        try:
            callback(self)
        except BaseException as error:
            log.exception("A future's callback raised")
            if belongs_to_caller(error):
                raise

    def _await(self, timeout: float | None) -> None:
        if self._done:
            return
        if forks.generation != self._generation:
            # Before the lock, which a thread of the parent may have held at the time.
            raise ForkedClientError(
                "The operation belongs to the parent process; its outcome is told only there."
            )
        # A longer wait than a lock accepts is one for ever.
        seconds = None if timeout is None else min(timeout, threading.TIMEOUT_MAX)
        with self._lock:
            condition = self._condition
            if condition is None:
                self._condition = condition = threading.Condition(self._lock)
            if not condition.wait_for(lambda: self._done, seconds):
                raise KafkaTimeoutError(
                    f"The operation did not finish within {timeout} s; it goes on in the background"
                )
