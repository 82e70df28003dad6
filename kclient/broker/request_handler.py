"""The handlers: threads that take requests from the channel and answer them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from kclient.broker.metrics.idle_time import IdleTime, ThreadIdleTime
from kclient.broker.network.request_channel import Request, RequestChannel
from kclient.utils.threads import KafkaThread
from kclient.utils.time import SYSTEM_TIME, Time


class RequestHandlerPool:
    """`size` threads that call `handle(request)`, which never raises. Thread-safe."""

    def __init__(
        self, channel: RequestChannel, handle: Callable[[Request], None], size: int, time: Time = SYSTEM_TIME
    ) -> None:
        self._channel = channel
        self._handle = handle
        self._time = time
        self._lock = threading.Lock()
        self._size = size
        self._numbers = itertools.count()
        self._threads: list[KafkaThread] = []
        self._running = False
        self.idle = IdleTime(0, time)
        """The time for which the threads wait for requests."""

    def start(self) -> None:
        """Start the threads."""
        with self._lock:
            self._running = True
            self._start(self._size)

    def resize(self, size: int) -> None:
        """Have `size` threads: more of them now, or fewer once some have come to the end of the queue."""
        with self._lock:
            added, self._size = size - self._size, size
            if not self._running:
                return
            if added > 0:
                self._start(added)
            else:
                self._channel.end_handlers(-added)

    def shutdown(self) -> None:
        """Handle what is queued, then end the threads. Idempotent."""
        with self._lock:
            self._running = False
            alive = [thread for thread in self._threads if thread.is_alive()]
        self._channel.end_handlers(len(alive))
        for thread in alive:
            thread.join()

    def _start(self, count: int) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for _ in range(count):
            thread = KafkaThread(f"request-handler-{next(self._numbers)}", self._run)
            self._threads.append(thread)
            thread.start()

    def _run(self) -> None:
        with self.idle.thread() as mine:
            self._work(mine)

    def _work(self, mine: ThreadIdleTime) -> None:
        now = self._time.monotonic_ns
        mine.waiting_since_ns = free_ns = now()
        while (request := self._channel.take()) is not None:
            request.record.taken_ns = taken_ns = now()
            mine.idle_ns += taken_ns - free_ns
            mine.waiting_since_ns = 0
            self._handle(request)
            request.record.handled_ns = mine.waiting_since_ns = free_ns = now()
