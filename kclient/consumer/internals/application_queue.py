"""ApplicationQueue: things that the I/O thread leaves for the application's next call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs

from kclient.consumer.internals.rebalance_callback import RebalanceCallback
from kclient.errors import FencedInstanceIdError, KafkaError


@attrs.define(eq=False, repr=False)
class ApplicationQueue:
    """Functions to call, changes of the assignment to carry out, errors to raise. Thread-safe.

    Whoever adds something notifies the application.
    """

    _notify: Callable[[], None]
    _calls: deque[Callable[[], object]] = attrs.field(factory=deque, init=False)
    _rebalances: deque[RebalanceCallback] = attrs.field(factory=deque, init=False)
    _errors: deque[KafkaError] = attrs.field(factory=deque, init=False)
    _final_error: KafkaError | None = attrs.field(default=None, init=False)

    def __bool__(self) -> bool:
        return bool(self._calls or self._rebalances or self._errors or self._final_error)

    @property
    def final_error(self) -> KafkaError | None:
        """The error that every call raises from now on. For any thread."""
        return self._final_error

    # The I/O thread's side.

    def call(self, function: Callable[[], object]) -> None:
        """Have `function` called."""
        self._calls.append(function)
        self._notify()

    def rebalance(self, callback: RebalanceCallback) -> None:
        """Have a change of the assignment carried out."""
        self._rebalances.append(callback)
        self._notify()

    def drop_rebalances(self) -> list[RebalanceCallback]:
        """Have no change carried out any more; returns those that were begun, and not finished."""
        begun = []
        while self._rebalances:
            callback = self._rebalances.popleft()
            if not callback.cancel():
                begun.append(callback)
        return begun

    def fail(self, error: KafkaError) -> None:
        """Have `error` raised, once; a consumer whose place another one took gets it every time."""
        if isinstance(error, FencedInstanceIdError):
            self._final_error = error
        else:
            self._errors.append(error)
        self._notify()

    def io_thread_died(self, error: BaseException) -> None:
        """Have every call raise that there is no I/O thread any more."""
        final = KafkaError(f"The consumer's I/O thread died, close the consumer: {error!r}")
        final.__cause__ = error
        self._final_error = final
        self._notify()

    # The application's side.

    def run_calls(self) -> None:
        """Call what is to be called by now. What a function raises is raised, and the others are left."""
        for _ in range(len(self._calls)):
            if self._calls:
                self._calls.popleft()()

    def run_all_calls(self) -> BaseException | None:
        """The same for the last time: returns the first error, and goes on after it."""
        first: BaseException | None = None
        for _ in range(len(self._calls)):
            try:
                if self._calls:
                    self._calls.popleft()()
            except Exception as error:
                first = first or error
        return first

    def next_rebalance(self) -> RebalanceCallback | None:
        """The next change that still is to be carried out; it cannot be cancelled from now on.

        It stays the next one until `finish_rebalance`, so that a Ctrl-C before it began does not lose it.
        """
        while self._rebalances:
            callback = self._rebalances[0]
            if callback.start():
                return callback
            self._rebalances.popleft()
        return None

    def finish_rebalance(self, callback: RebalanceCallback) -> None:
        """`callback` was carried out."""
        if self._rebalances and self._rebalances[0] is callback:
            self._rebalances.popleft()

    def raise_error(self) -> None:
        """Raise the next error, if there is one."""
        if self._final_error is not None:
            raise self._final_error
        if self._errors:
            raise self._errors.popleft()
