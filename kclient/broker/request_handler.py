"""The handlers: threads that take requests from the channel and answer them."""

from __future__ import annotations

from collections.abc import Callable

from kclient.broker.network.request_channel import Request, RequestChannel
from kclient.utils.threads import KafkaThread


class RequestHandlerPool:
    """`size` threads that call `handle(request)`, which never raises. `start` and `shutdown` from any thread."""

    def __init__(self, channel: RequestChannel, handle: Callable[[Request], None], size: int) -> None:
        self._channel = channel
        self._handle = handle
        self._threads = [KafkaThread(f"request-handler-{number}", self._run) for number in range(size)]

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

    def _run(self) -> None:
        while (request := self._channel.take()) is not None:
            self._handle(request)
