"""When an append counts as done: in the page cache, or on the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum


class AckPolicy(Enum):
    """What has to have happened to a batch before its append returns."""

    NONE = "none"
    """Written to the page cache: it survives the broker's process, not the machine. Kafka's own default."""
    BATCH = "batch"
    """On disk; appends that come together share one fdatasync."""
    ALWAYS = "always"
    """On disk, each append with an fdatasync of its own."""


class GroupCommit:
    """Makes many waiting appends durable by few fdatasyncs. Thread-safe.

    `sync()` forces what is written so far and returns the log end offset from before it began. The first
    thread that needs it runs it; threads that come meanwhile wait, and one of them runs the next for all of
    them.
    """

    __slots__ = ("_condition", "_durable_offset", "_error", "_sync", "_syncing")

    def __init__(self, sync: Callable[[], int]) -> None:
        self._sync = sync
        self._condition = threading.Condition(threading.Lock())
        self._durable_offset = 0
        self._syncing = False
        self._error: BaseException | None = None

    def await_durable(self, end_offset: int) -> None:
        """Return when everything below `end_offset` is on disk.

        Raises what `sync` raised, once and for ever: after a failed fdatasync the kernel may have dropped the
        pages and report success the next time.
        """
        with self._condition:
            while True:
                if self._error is not None:
                    raise self._error
                if self._durable_offset >= end_offset:
                    return
                if not self._syncing:
                    break
                self._condition.wait()
            self._syncing = True
        reached = -1
        error: BaseException | None = None
        try:
            reached = self._sync()
        except BaseException as raised:
            error = raised
            raise
        finally:
            with self._condition:
                self._syncing = False
                self._error = error
                self._durable_offset = max(self._durable_offset, reached)
                self._condition.notify_all()

    def truncate_to(self, offset: int) -> None:
        """The log was cut back to `offset`: what is written there from now on is not on disk."""
        with self._condition:
            self._durable_offset = min(self._durable_offset, offset)
