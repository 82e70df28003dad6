"""RequestChannel: what lies between the processors, who own sockets, and the handlers, who do the work."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import attrs

from kclient.broker.metrics.request_record import RequestRecord
from kclient.broker.security.principal import KafkaPrincipal
from kclient.network.send import FileRegion
from kclient.network.transport import Buffer


class ResponseAction(enum.Enum):
    """The next step of a processor for a connection whose request was handled."""

    SEND = enum.auto()
    NOTHING = enum.auto()
    """The request has no response (acks=0): read the next one."""
    CLOSE = enum.auto()


@attrs.define(eq=False)
class Response:
    """The outcome of one request."""

    connection_id: str
    action: ResponseAction
    buffers: Sequence[Buffer | FileRegion] = ()
    throttle_ms: int = 0
    """The time for which nothing more is read from the connection, from now on."""
    answered_ns: int = 0
    """The moment at which the processor was given it."""


@attrs.define(eq=False)
class Request:
    """One frame from a client and the way back. Owned by the handler that took it; answered exactly once."""

    connection_id: str
    client_host: str
    listener: int
    """Number of the listener that the client came to."""
    principal: KafkaPrincipal
    """The client, as it has proven who it is."""
    frame: memoryview
    reply: Callable[[Response], None]
    record: RequestRecord = attrs.field(factory=lambda: RequestRecord(0, 0))
    """The matter of metrics, which outlives the frame."""


class RequestChannel:
    """A bounded queue of requests. Thread-safe.

    `capacity` bounds the requests that no handler has taken.
    """

    __slots__ = ("_places", "_queue")

    def __init__(self, capacity: int) -> None:
        self._queue: SimpleQueue[Request | None] = SimpleQueue()
        self._places = threading.Semaphore(capacity)

    def __len__(self) -> int:
        return self._queue.qsize()

    def put(self, request: Request, timeout_s: float) -> bool:
        """Queue `request`; False if there was no place for it within `timeout_s`."""
        if not self._places.acquire(timeout=timeout_s):
            return False
        self._queue.put(request)
        return True

    def take(self) -> Request | None:
        """The next request, waiting for it; None tells the handler to end."""
        request = self._queue.get()
        if request is not None:
            self._places.release()
        return request

    def end_handlers(self, count: int) -> None:
        """Tell `count` handlers to end once they come to the end of the queue."""
        for _ in range(count):
            self._queue.put(None)
