"""Lanes: threads that work on items, those of one lane one after the other and in their order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from kclient.utils.threads import KafkaThread

T = TypeVar("T")


class Lanes(Generic[T]):
    """`concurrency` threads that call `work` with every item. `work` must not raise. Thread-safe.

    A lane has one item at work at a time; the next one begins when `work` has returned. Lanes take turns.
    """

    def __init__(self, concurrency: int, work: Callable[[T], None]) -> None:
        self._work = work
        self._changed = threading.Condition()
        # Items of each lane that has any; a lane is in `_ready` unless one of its items is at work.
        self._waiting: dict[Hashable, deque[T]] = {}
        self._ready: deque[Hashable] = deque()
        self._halted = self._closed = False
        self._concurrency = concurrency
        self._threads: list[KafkaThread] = []

    def add(self, items: Iterable[tuple[Hashable, T]]) -> bool:
        """Add items with their lanes; False, and nothing is added, after `halt`."""
        with self._changed:
            if self._halted:
                return False
            for lane, item in items:
                waiting = self._waiting.get(lane)
                if waiting is None:
                    self._waiting[lane] = deque((item,))
                    self._ready.append(lane)
                else:
                    waiting.append(item)
            if not self._threads:
                self._start()
            self._changed.notify_all()
            return True

    def drop(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Take back what has not begun and is `unwanted`."""
        with self._changed:
            dropped: list[T] = []
            for waiting in self._waiting.values():
                dropped.extend(filter(unwanted, waiting))
                kept = [item for item in waiting if not unwanted(item)]
                waiting.clear()
                waiting.extend(kept)
            return dropped

    def halt(self) -> list[T]:
        """Take back everything that has not begun, and accept nothing more until `restart`."""
        with self._changed:
            self._halted = True
            return self.drop(lambda _: True)

    def restart(self) -> None:
        """Accept items again."""
        with self._changed:
            self._halted = False

    def close(self, *, wait: bool) -> None:
        """End the threads, each when the item that it has is done; `wait` for that."""
        self.halt()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if wait:
            for thread in self._threads:
                thread.join()

    def _start(self) -> None:
        for number in range(self._concurrency):
            thread = KafkaThread(f"kclient-processing-{number}", self._run)
            self._threads.append(thread)
            thread.start()

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            lane, item = taken
            self._work(item)
            # Not kept until the next one comes.
            del item, taken
            with self._changed:
                if self._waiting[lane]:
                    self._ready.append(lane)
                else:
                    del self._waiting[lane]

    def _take(self) -> tuple[Hashable, T] | None:
        with self._changed:
            while True:
                while self._ready:
                    lane = self._ready.popleft()
                    if self._waiting[lane]:
                        return lane, self._waiting[lane].popleft()
                    del self._waiting[lane]  # all of it was dropped
                if self._closed:
                    return None
                self._changed.wait()
