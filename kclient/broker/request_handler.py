"""The handlers: threads that take requests from the channel and answer them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kclient.broker.metrics.idle_time import IdleTime, ThreadIdleTime
from kclient.broker.network.request_channel import Request, RequestChannel
from kclient.utils.threads import KafkaThread
from kclient.utils.time import SYSTEM_TIME, Time


class RequestHandlerPool:
    """`size` threads that call `handle(request)`, which never raises. `start` and `shutdown` from any thread."""

    def __init__(
        self, channel: RequestChannel, handle: Callable[[Request], None], size: int, time: Time = SYSTEM_TIME
    ) -> None:
        self._channel = channel
        self._handle = handle
        self._time = time
        self.idle = IdleTime(size, time)
        """The time for which the threads wait for requests."""
        self._threads = [
            KafkaThread(f"request-handler-{number}", partial(self._run, mine))
            for number, mine in enumerate(self.idle.threads)
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def shutdown(self) -> None:
        """Handle what is queued, then end the threads. Idempotent."""
        alive = [thread for thread in self._threads if thread.is_alive()]
        self._channel.end_handlers(len(alive))
        for thread in alive:
            thread.join()

    def _run(self, mine: ThreadIdleTime) -> None:
        now = self._time.monotonic_ns
        mine.waiting_since_ns = free_ns = now()
        while (request := self._channel.take()) is not None:
            request.record.taken_ns = taken_ns = now()
            mine.idle_ns += taken_ns - free_ns
            mine.waiting_since_ns = 0
            self._handle(request)
            request.record.handled_ns = mine.waiting_since_ns = free_ns = now()
