"""BufferPool: the account of buffer.memory.

The bytes themselves belong to the batches; what is kept here is how many of them may exist. A pool of reusable
buffers would save nothing measurable and is how one batch's bytes come to be sent as another's (CVE-2026-35554).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

import attrs

from kclient.errors import BufferExhaustedError, ClientClosedError
from kclient.metrics import Sensor
from kclient.utils.steps import Broadcast, Pause, Steps
from kclient.utils.time import NS_PER_MS, Timer


@attrs.define(eq=False, repr=False)
class Claim:
    """The bytes that were taken from a pool and not yet passed on to a batch. Belongs to who took them.

    An object and not a returned number: a Ctrl-C between the taking and the caller's noting it would lose them.
    """

    held: int = 0


@attrs.define(eq=False, repr=False)
class _Waiter:
    claim: Claim
    size: int
    granted: bool = False


@attrs.define(eq=False, repr=False)
class BufferPool:
    """Grants bytes of `total` bytes, in the order in which they were asked for. Thread-safe.

    A large request is not overtaken by smaller ones that would fit: it would wait for ever.
    """

    total: int
    _wait_sensor: Sensor
    # Called when somebody begins to wait, after that can be seen in `waiting`.
    _on_wait: Callable[[], None]
    available: int = attrs.field(init=False)
    """Bytes that nobody holds; to be read, changed by the methods."""
    full_since_ms: int | None = attrs.field(default=None, init=False)
    """The time since which somebody waits, or has waited in vain, and nothing came free; to be read."""
    exhausted: int = attrs.field(default=0, init=False)
    """Claims that got no bytes in time; to be read."""
    _waiters: deque[_Waiter] = attrs.field(factory=deque, init=False)
    lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)  # reentrant: see Entry
    _changed: Broadcast = attrs.field(factory=Broadcast, init=False)
    _closed: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.available = self.total

    @property
    def waiting(self) -> int:
        """Claims that wait for bytes."""
        return len(self._waiters)

    def try_allocate(self, claim: Claim, size: int) -> bool:
        """Take `size` bytes if they are there and nobody waits for any."""
        with self.lock:
            if self._waiters or size > self.available:
                return False
            self.available -= size
            claim.held += size
            return True

    def allocate(self, claim: Claim, size: int, timer: Timer) -> Steps[None]:
        """Take `size` bytes, waiting for them until `timer` expires.

        Raises BufferExhaustedError if they do not come free in time, ClientClosedError if the producer is closed
        meanwhile. Whatever is raised: what `claim` holds afterwards is the caller's to give back.
        """
        started_ms = timer.now_ms()
        waiter = _Waiter(claim, size)
        try:
            with self.lock:
                self._waiters.append(waiter)
                self._grant()
                if not waiter.granted:
                    if self.full_since_ms is None:
                        self.full_since_ms = started_ms
                    self._on_wait()
            while True:
                with self.lock:
                    # Granted bytes are taken even if the pool closed at the same time: the caller gives them back.
                    if waiter.granted:
                        return
                    if self._closed:
                        raise ClientClosedError(
                            "The producer was closed while send() waited for buffer memory."
                        )
                    if timer.is_expired():
                        self.exhausted += 1
                        raise BufferExhaustedError(
                            f"No {size} bytes of buffer memory came free within {timer.timeout_ms} ms "
                            f"(max.block.ms): {self.available} of {self.total} (buffer.memory) are free and "
                            f"{len(self._waiters) - 1} others wait. Records come faster than the brokers take them."
                        )
                    changed = self._changed.next()
                yield Pause(changed, timer)
        finally:
            # Also after a Ctrl-C: nobody behind one who is gone would get anything any more.
            self._withdraw(waiter)
            self._wait_sensor.record((timer.now_ms() - started_ms) * NS_PER_MS)

    def give_back(self, claim: Claim) -> None:
        """Give back what `claim` holds."""
        with self.lock:
            self.available += claim.held
            claim.held = 0
            self.full_since_ms = None
            self._grant()

    def release(self, size: int) -> None:
        """Give back `size` bytes that a batch had."""
        with self.lock:
            self.available += size
            self.full_since_ms = None
            if self._waiters:
                self._grant()

    def close(self) -> None:
        """Let nobody wait any more."""
        with self.lock:
            self._closed = True
            self._changed.notify_all()

    def _grant(self) -> None:
        waiters = self._waiters
        granted = False
        try:
            while waiters and waiters[0].size <= self.available:
                waiter = waiters[0]
                self.available -= waiter.size
                waiter.claim.held += waiter.size
                waiter.granted = granted = True
                # Last, as a Ctrl-C may follow every call: who is not in the queue any more has the bytes.
                waiters.popleft()
        finally:
            if granted:
                self._changed.notify_all()

    def _withdraw(self, waiter: _Waiter) -> None:
        if waiter.granted:
            return
        with self.lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
                self._grant()
