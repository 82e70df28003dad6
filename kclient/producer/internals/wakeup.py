"""SenderWakeup: waking the I/O thread only when that changes what it does."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kclient._accel import yield_gil

_NEVER_MS = -1
_ALWAYS_MS = 2**63


@attrs.define(eq=False, repr=False)
class SenderWakeup:
    """Decides whether a new batch is worth ending the I/O thread's poll. Thread-safe.

    The I/O thread calls `announce` before it looks at the queues, `sleep` before it polls and `awake` after. A batch
    that comes after the look is seen by none of them but this class: since the thread has announced itself by then,
    whoever adds the batch wakes it. A wakeup costs a system call on both sides, and a producer at full speed would do
    it for every batch; nearly all are saved because the thread is at work, or waits for an answer anyway.
    """

    _wakeup: Callable[[], None]
    _asleep_until_ms: int = attrs.field(default=_NEVER_MS, init=False)
    _saturated: frozenset[int] = attrs.field(default=frozenset(), init=False)
    _woken: bool = attrs.field(default=False, init=False)

    def announce(self) -> None:
        """The I/O thread is about to look at the queues."""
        self._woken = False
        self._saturated = frozenset()
        self._asleep_until_ms = _ALWAYS_MS

    def sleep(self, until_ms: int, saturated: frozenset[int]) -> None:
        """It is about to poll until `until_ms`; the brokers `saturated` take nothing before they answer."""
        self._saturated = saturated
        self._asleep_until_ms = until_ms

    def awake(self) -> None:
        """It is back at work."""
        self._asleep_until_ms = _NEVER_MS

    def batch_added(self, leader_id: int | None, sendable_at_ms: int) -> None:
        """A batch for `leader_id` was added that can be sent from `sendable_at_ms` on."""
        # Never is before every time: at work the thread will see the batch by itself.
        if sendable_at_ms < self._asleep_until_ms and leader_id not in self._saturated:
            self.wake()
        # It may be waiting for the interpreter lock, at work or because answers have ended its poll. Appends give way
        # to it as well, but where batches take few records each is the first of its batch, made under a lock that the
        # thread needs, too.
        yield_gil()

    def wake(self) -> None:
        """End the poll, or make the next one short, whatever the reason."""
        if not self._woken:
            self._woken = True
            try:
                self._wakeup()
            except BaseException:
                self._woken = False  # a Ctrl-C: the next wakeup must not think that this one has done it
                raise
