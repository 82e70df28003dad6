"""The point at which an append counts as done: in the page cache, or on the disk."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import Enum
from queue import SimpleQueue

from kclient.broker.metrics.histogram import Histogram
from kclient.utils.threads import KafkaThread

log = logging.getLogger(__name__)

_THREADS = 8  # of a directory: a disk makes more of several fdatasyncs at a time than of one after another


class AckPolicy(Enum):
    """The state that a batch must have reached before its append returns."""

    NONE = "none"
    """Written to the page cache: it survives the broker's process, not the machine. Kafka's own default."""
    BATCH = "batch"
    """On disk; appends that come together share one fdatasync, and several logs are forced at a time."""
    ALWAYS = "always"
    """On disk, each append with an fdatasync of its own."""


Done = Callable[[BaseException | None], None]


class DirectoryCommit:
    """The threads that force the logs of one directory to disk, several at a time. Thread-safe.

    They are started when they are needed, and end with `stop`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._queue: SimpleQueue[GroupCommit | None] = SimpleQueue()
        self._threads: list[KafkaThread] = []
        self._unfinished = 0
        self._finished = threading.Condition(self._lock)
        self.flush_times = Histogram()
        """The times that it took to force a log to disk."""

    def flushed(self, time_ns: int) -> None:
        """A log was forced to disk in that time."""
        with self._lock:
            self.flush_times.record(time_ns // 1000)

    def add(self, commit: GroupCommit) -> None:
        """Have `commit.run` called."""
        with self._lock:
            self._unfinished += 1
            if len(self._threads) < min(self._unfinished, _THREADS):
                self._threads.append(KafkaThread(f"commit-{self._name}-{len(self._threads)}", self._run))
                self._threads[-1].start()
        self._queue.put(commit)

    def finish(self) -> None:
        """Wait until all that was asked for is done; nobody asks for more."""
        with self._finished:
            self._finished.wait_for(lambda: self._unfinished == 0)

    def stop(self) -> None:
        """Do what was asked for, then end the threads. Idempotent."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            thread.join()

    def _run(self) -> None:
        while (commit := self._queue.get()) is not None:
            commit.run()
            with self._finished:
                self._unfinished -= 1
                self._finished.notify_all()


class GroupCommit:
    """Makes many appends to one log durable by few fdatasyncs. Thread-safe.

    `sync()` forces what is written so far and returns the log end offset from before it began. One runs at a time, on a
    thread of the directory; appends that come meanwhile share the next one.
    """

    __slots__ = ("_asked", "_directory", "_durable_offset", "_lock", "_sync", "_waiting")

    def __init__(self, directory: DirectoryCommit, sync: Callable[[], int]) -> None:
        self._directory = directory
        self._sync = sync
        self._lock = threading.Lock()
        self._durable_offset = 0
        self._asked = False
        self._waiting: list[tuple[int, Done]] = []

    def when_durable(self, end_offset: int, done: Done) -> None:
        """Call `done` when everything below `end_offset` is on disk, with None, or with what kept it from that.

        At once, or on another thread.
        """
        with self._lock:
            waits = self._durable_offset < end_offset
            asks = waits and not self._asked
            if waits:
                self._waiting.append((end_offset, done))
                self._asked = True
        if asks:
            self._directory.add(self)
        if not waits:
            done(None)

    def await_durable(self, end_offset: int) -> None:
        """Return when everything below `end_offset` is on disk. Raises what `sync` raised."""
        outcome: SimpleQueue[BaseException | None] = SimpleQueue()
        self.when_durable(end_offset, outcome.put)
        error = outcome.get()
        if error is not None:
            raise error

    def truncate_to(self, offset: int) -> None:
        """The log was cut back to `offset`: what is written there from now on is not on disk."""
        with self._lock:
            self._durable_offset = min(self._durable_offset, offset)

    def run(self) -> None:
        """Sync once, and tell those who waited for it."""
        reached, error = -1, None
        try:
            reached = self._sync()
        except BaseException as raised:
            error = raised
        with self._lock:
            self._durable_offset = max(self._durable_offset, reached)
            told, self._waiting = self._waiting, []
            # After an error nobody waits on: what a failed fdatasync did not write the next one may not write either,
            # and yet succeed, so that it is the log's part to refuse that.
            if error is None:
                self._waiting = [one for one in told if one[0] > self._durable_offset]
                told = [one for one in told if one[0] <= self._durable_offset]
            self._asked = bool(self._waiting)
            asks = self._asked
        if asks:
            self._directory.add(self)
        for _, done in told:
            try:
                done(error)
            except Exception:
                log.exception("What waited for the disk could not be told")
