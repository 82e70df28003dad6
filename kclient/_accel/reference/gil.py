"""Giving way: how a busy application thread lets the I/O threads of its process run."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Protocol

from kclient._accel.shared.forks import in_forked_children

# An I/O thread is given at most so much time at once, and so often. Measured with a producer that spins at 100,000
# records/s: twice the interval doubles the latency, half of it costs throughput.
GIVE_WAY_S = 0.0005
_INTERVAL_NS = 1_000_000


class Waiting(Protocol):
    """The object that an I/O thread works for: a Poller."""

    def give_way(self) -> bool:
        """Wait for a moment if the thread wants to run; False, at once, if it does not."""


_lock = threading.RLock()
_next_ns = 0
# Replaced, never changed, so that it can be read without the lock.
_known: tuple[weakref.ref[Waiting], ...] = ()


def yield_gil() -> None:
    """Let an I/O thread of this process run that waits for the interpreter lock: one at a time, and not too often.

    For threads that keep the interpreter busy. Without this an I/O thread gets it only after the switch interval
    (5 ms), each time that it has let go of it for a system call. No lock may be held that an I/O thread could want.
    """
    global _next_ns
    now_ns = time.monotonic_ns()
    if now_ns < _next_ns:
        return
    _next_ns = now_ns + _INTERVAL_NS  # now, so that other threads go on
    for reference in _known:
        waiting = reference()
        if waiting is not None and waiting.give_way():
            _next_ns = time.monotonic_ns() + _INTERVAL_NS
            return


def enter(waiting: Waiting) -> None:
    """From now on `yield_gil` gives way to `waiting`, as long as it lives."""
    global _known
    with _lock:
        _known = (*(reference for reference in _known if reference() is not None), weakref.ref(waiting))


def leave(waiting: Waiting) -> None:
    """Undo `enter`."""
    global _known
    with _lock:
        _known = tuple(reference for reference in _known if reference() not in {None, waiting})


def _after_fork_in_child() -> None:
    """The I/O threads are the parent's; so is the thread that held the lock."""
    global _known, _lock
    _known = ()
    _lock = threading.RLock()


in_forked_children(_after_fork_in_child)
