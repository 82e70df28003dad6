"""Threads and descriptors that must not be left behind."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator

from harness.waiting import wait_until


def open_descriptors() -> set[tuple[str, str]]:
    """Return the open descriptors of this process: their numbers, and the files, sockets and pipes behind them."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that lists them, or closed since
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


@contextlib.contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Fail if threads or descriptors that the block opened are there after it.

    Brokers that tests share run in this process, too, and open a file now and then, for their checkpoints:
    hence what is seen afterwards has some seconds to go away.
    """
    gc.collect()
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    yield
    gc.collect()
    left: set[object] = set()

    def nothing_is_left() -> bool:
        nonlocal left
        left = (set(threading.enumerate()) - threads) | (open_descriptors() - descriptors)
        return not left

    with contextlib.suppress(AssertionError):
        wait_until(nothing_is_left)
    assert not left, f"left behind: {left}"
