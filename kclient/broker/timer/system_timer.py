"""SystemTimer: the timing wheel with a lock, a clock, and a heap of buckets in place of Java's DelayQueue."""

from __future__ import annotations

import heapq
import logging
import threading
from collections import deque
from itertools import count

from kclient.broker.timer.timing_wheel import Bucket, TimerEntry, TimerTask, TimingWheel
from kclient.utils.time import SYSTEM_TIME, Time

log = logging.getLogger(__name__)


class SystemTimer:
    """Runs tasks when they are due. Thread-safe.

    Nothing happens by itself: some thread calls `advance_clock` over and over, and tasks run on that thread,
    outside the timer's lock, so a task may add and cancel others. An error raised by a task is logged and
    goes no further.
    """

    def __init__(
        self, name: str, time: Time = SYSTEM_TIME, *, tick_ms: int = 1, wheel_size: int = 20
    ) -> None:
        self.name = name
        self._time = time
        # Entered by its own name: a condition's own way in is a function of Python's.
        self._lock = threading.Lock()
        self._condition = threading.Condition(self._lock)
        self._wheel = TimingWheel(tick_ms, wheel_size, time.monotonic_ms(), self._enqueue)
        self._heap: list[tuple[int, int, Bucket]] = []
        self._order = count()  # breaks ties, as buckets have no order of their own
        self._ready: deque[TimerTask] = deque()
        self._size = 0
        self._woken = False
        self._closed = False
        self._leave = self._withdraw  # one bound method for all entries

    def __len__(self) -> int:
        """Return the number of tasks that wait."""
        return self._size

    def add(self, task: TimerTask) -> None:
        """Run `task` in `task.delay_ms`; one with a delay of 0 or less runs at the next `advance_clock`."""
        entry = TimerEntry(task, self._time.monotonic_ms() + max(task.delay_ms, 0), self._leave)
        task.attach(entry)
        with self._lock:
            if not self._closed:
                self._place(entry)

    def advance_clock(self, timeout_ms: int) -> bool:
        """Run what is due, waiting up to `timeout_ms` for something to become due.

        Returns whether anything was due; False also when the timer is closed.
        """
        deadline_ms = self._time.monotonic_ms() + timeout_ms
        with self._lock:
            while not self._closed:
                now_ms = self._time.monotonic_ms()
                if self._ready or (self._heap and self._heap[0][0] <= now_ms):
                    break
                if now_ms >= deadline_ms:
                    return False
                until_ms = min(deadline_ms, self._heap[0][0]) if self._heap else deadline_ms
                self._woken = False
                self._time.wait_for(self._condition, lambda: self._woken, until_ms - now_ms)
            if self._closed:
                return False
            due = self._collect(now_ms)
        for task in due:
            if not task.is_cancelled():
                self._run(task)
        return True

    def close(self) -> None:
        """Drop every task and wake the thread in `advance_clock`. Idempotent."""
        with self._lock:
            self._closed = True
            self._heap.clear()
            self._ready.clear()
            self._size = 0
            self._wake()

    def _collect(self, now_ms: int) -> list[TimerTask]:
        while self._heap and self._heap[0][0] <= now_ms:
            expiration_ms, _, bucket = heapq.heappop(self._heap)
            self._wheel.advance(expiration_ms)
            # Entries of an overflow bucket are not due yet: placing them again moves them to a finer wheel.
            for entry in bucket.drain():
                self._size -= 1
                self._place(entry)
        self._wheel.advance(now_ms)
        due = list(self._ready)
        self._ready.clear()
        return due

    def _place(self, entry: TimerEntry) -> None:
        if entry.task.is_cancelled():
            return
        if self._wheel.add(entry):
            self._size += 1
        else:
            self._ready.append(entry.task)
            self._wake()

    def _withdraw(self, entry: TimerEntry) -> None:
        with self._lock:
            if entry.bucket is not None:
                entry.bucket.remove(entry)
                self._size -= 1

    def _enqueue(self, bucket: Bucket) -> None:
        heapq.heappush(self._heap, (bucket.expiration_ms, next(self._order), bucket))
        if self._heap[0][2] is bucket:
            self._wake()  # earlier than what the advancing thread waits for

    def _wake(self) -> None:
        self._woken = True
        self._condition.notify_all()

    def _run(self, task: TimerTask) -> None:
        try:
            task.run()
        except Exception:
            log.exception("Timer %s: a task raised", self.name)
