"""ApplicationCalls: the call of the application that is under way, and its outcome, which waits to be asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs

from kclient.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from kclient.utils.futures import CompletableFuture
from kclient.utils.steps import Pause, Steps
from kclient.utils.time import Time


@attrs.define(eq=False)
class _Call:
    name: str
    thread_id: int
    outcome: CompletableFuture[None] = attrs.field(factory=CompletableFuture)
    waiting: bool = True


@attrs.define(kw_only=True, eq=False, repr=False)
class ApplicationCalls:
    """One call at a time, from any thread.

    What was not waited for to its end (max.block.ms was over, or a Ctrl-C came) stays until the same call asks for it.
    `lock` is held by whoever calls the methods, but for `wait`.
    """

    _transactional_id: str
    _max_block_ms: int
    _last_error: Callable[[], KafkaError | None]
    _wake: Callable[[], None]
    _time: Time
    # Reentrant: a signal handler may interrupt its holder.
    lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    _present: _Call | None = attrs.field(default=None, init=False)

    @property
    def name(self) -> str:
        """The name of the call that is under way, in words for errors."""
        return "" if self._present is None else self._present.name

    def begin(self, name: str) -> _Call:
        """Return a new call, for `wait`."""
        self._present = call = _Call(name, threading.get_ident())
        return call

    def resumed(self, name: str) -> _Call | None:
        """Return the call before if it was the same and nobody took note of its outcome.

        Raises IllegalStateError if another thread waits for it, or if it was another call.
        """
        call, thread_id = self._present, threading.get_ident()
        if call is None or (call.name != name and _has_failed(call)):
            return None
        if call.waiting and call.thread_id != thread_id:
            raise IllegalStateError(
                f"{name}: another thread is in {call.name}; one has to end before the next begins"
            )
        if call.name != name:
            self.refuse_other(name)
        call.waiting, call.thread_id = True, thread_id
        return call

    def refuse_other(self, name: str) -> None:
        """Raise IllegalStateError if a call has not ended, or has succeeded without anybody taking note."""
        call = self._present
        if call is None or _has_failed(call):
            return
        if not call.outcome.done():
            raise IllegalStateError(
                f"{name}: {call.name} has begun, and was not waited for to its end; call it again for its outcome"
            )
        raise IllegalStateError(
            f"{name}: {call.name}, which was not waited for to its end, has succeeded meanwhile; call it again "
            "to take note of that"
        )

    def give_up(self, name: str, error: KafkaError) -> None:
        """End the call with `error` if it is `name`, and nobody waits for it."""
        call = self._present
        if call is not None and call.name == name and not call.waiting:
            call.outcome.fail(error)

    def end(self, error: BaseException | None) -> None:
        """The call that is under way, if there is one, has its outcome."""
        call = self._present
        if call is None:
            return
        if error is None:
            call.outcome.complete(None)
        else:
            call.outcome.fail(error)

    def wait(self, call: _Call) -> Steps[None]:
        """Wait for the outcome, for max.block.ms at most; raises what it is, or KafkaTimeoutError."""
        timer = self._time.timer(self._max_block_ms)
        try:
            self._wake()
            while not call.outcome.done():
                if timer.is_expired():
                    cause = self._last_error()
                    raise KafkaTimeoutError(
                        f"{call.name} of transactional.id={self._transactional_id} had no outcome within "
                        f"{self._max_block_ms} ms (max.block.ms); it goes on, and the same call waits for it again"
                        + ("" if cause is None else f"; the last error was: {cause}")
                    ).because_of(cause)
                yield Pause(call.outcome, timer)
        finally:
            call.waiting = False
        with self.lock:
            if self._present is call:
                self._present = None
        call.outcome.result()


def _has_failed(call: _Call) -> bool:
    return call.outcome.done() and call.outcome.exception() is not None
