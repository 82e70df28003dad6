"""Runs callbacks when the interpreter ends, in an order that does not depend on the order of imports.

A client that was never closed sends what it still has, and the broker that it sends to may live in the same
process.
"""

from __future__ import annotations

import atexit
import enum
import logging
import weakref
from collections.abc import Callable

log = logging.getLogger(__name__)


class ExitStage(enum.IntEnum):
    """The stages of the end, first to last."""

    CLIENTS = 0
    BROKERS = 1


_callbacks: dict[ExitStage, list[Callable[[], None]]] = {stage: [] for stage in ExitStage}


def at_exit(stage: ExitStage, callback: Callable[[], None]) -> None:
    """Call `callback` at `stage` of the interpreter's end. An error that it raises is logged. Thread-safe."""
    _callbacks[stage].append(callback)


def _run() -> None:
    for stage in ExitStage:
        for callback in reversed(_callbacks[stage]):
            try:
                callback()
            except Exception:
                log.exception("Closing %s at exit failed", stage.name.lower())


# Hooks run last registered first, and that of weakref is registered with the first finalizer that anybody makes. Made
# here, before ours is, it removes temporary directories only when the brokers that write to them have stopped.
weakref.finalize(ExitStage, int)
atexit.register(_run)
