"""IdleTime: the share of their time that threads have nothing to do."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from kclient.utils.time import Time

_SAMPLES = 7  # with `SAMPLE_MS` between them: the share is that of the last minute
SAMPLE_MS = 10_000


@attrs.define(eq=False)
class ThreadIdleTime:
    """The time that one thread has waited. Written by that thread alone."""

    idle_ns: int = 0
    waiting_since_ns: int = 0
    """Since when it waits now, 0 while it works."""

    def until(self, now_ns: int) -> int:
        """Return the time that it has waited, the wait that is going on included."""
        since_ns = self.waiting_since_ns
        return self.idle_ns + (max(now_ns - since_ns, 0) if since_ns else 0)


class IdleTime:
    """The idle share of a pool of threads over the last minute. Thread-safe; `sample` is called now and then.

    Threads that came or went less than a minute ago are left out.
    """

    def __init__(self, threads: int, time: Time) -> None:
        self.threads = tuple(ThreadIdleTime() for _ in range(threads))
        self._time = time
        self._lock = threading.Lock()
        self._samples: deque[tuple[int, dict[ThreadIdleTime, int]]] = deque(maxlen=_SAMPLES)
        self.sample()

    @contextmanager
    def thread(self) -> Iterator[ThreadIdleTime]:
        """A context: one more thread, which is the one that runs it."""
        mine = ThreadIdleTime()
        with self._lock:
            self.threads = (*self.threads, mine)
            if len(self._samples) == 1:
                self._samples[0][1][mine] = 0  # of the pool's first threads, which begin with it
        try:
            yield mine
        finally:
            with self._lock:
                self.threads = tuple(one for one in self.threads if one is not mine)

    def sample(self) -> None:
        """Remember how it stands now."""
        now_ns = self._time.monotonic_ns()
        self._samples.append((now_ns, {thread: thread.until(now_ns) for thread in self.threads}))

    def share(self) -> float:
        """Return the idle share of all threads, from 0 to 1."""
        shares = self.shares()
        return sum(shares) / len(shares) if shares else 1.0

    def shares(self) -> list[float]:
        """Return that of each thread."""
        now_ns = self._time.monotonic_ns()
        then_ns, before = self._samples[0]
        passed_ns = now_ns - then_ns
        if passed_ns <= 0:
            return [1.0] * len(self.threads)
        return [
            min(max((thread.until(now_ns) - before[thread]) / passed_ns, 0.0), 1.0)
            for thread in self.threads
            if thread in before
        ]
