"""Locks whose holder may be interrupted by code that needs them, too."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, cast


def holder_test(lock: threading.RLock) -> Callable[[], bool]:
    """A function that says whether the calling thread holds `lock` already.

    So it is for a signal handler, or a `__del__` that the collector runs, in the middle of what the lock guards. It can
    neither wait for the lock, which would be for ever, nor go on, as what is guarded may be half changed.
    """
    test: Callable[[], bool] = cast(Any, lock)._is_owned  # noqa: SLF001 - what threading.Condition asks of every lock
    return test


def interrupting_text(what: str) -> str:
    """Return the text for a signal handler or a `__del__` that would have to wait for what it has interrupted."""
    return (
        f"{what} was used by a signal handler or a __del__ that had interrupted it in the middle of a step which must "
        "be finished first. Put the record into a queue.SimpleQueue there, or set a flag, and send it from the program "
        "itself or another thread."
    )
