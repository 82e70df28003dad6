"""RequestChannel: what lies between the processors, who own sockets, and the handlers, who do the work."""

from __future__ import annotations

import enum
import threading
from collections import deque
from collections.abc import Callable, Sequence

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


class _WaitingHandler:
    """A handler that waits, and what it is given."""

    __slots__ = ("gate", "request")

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.gate.acquire()
        self.request: Request | None = None


class RequestChannel:
    """A bounded queue of requests. Thread-safe.

    `capacity` bounds the requests that no handler has taken.

    A request goes to the handler that began to wait last. What that one works with is still in the processor's caches,
    and the others sleep on: with few requests at a time, most of the pool costs nothing.
    """

    __slots__ = ("_handlers", "_lock", "_places", "_queue", "_room")

    def __init__(self, capacity: int) -> None:
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)  # for those who wait for a place
        self._places = capacity
        self._queue: deque[Request | None] = deque()
        self._handlers: list[_WaitingHandler] = []  # while any wait, nothing is queued

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def waiting_handlers(self) -> int:
        """Handlers that have nothing to do."""
        return len(self._handlers)

    def put(self, request: Request, timeout_s: float) -> bool:
        """Queue `request`; False if there was no place for it within `timeout_s`."""
        with self._lock:
            full = not self._places and not self._handlers
            if full and not self._room.wait_for(lambda: self._places, timeout_s):
                return False
            if self._handlers:
                self._wake(request)
            else:
                self._places -= 1
                self._queue.append(request)
            return True

    def take(self) -> Request | None:
        """The next request, waiting for it; None tells the handler to end."""
        with self._lock:
            if self._queue:
                request = self._queue.popleft()
                if request is not None:
                    self._places += 1
                    self._room.notify()
                return request
            waiting = _WaitingHandler()
            self._handlers.append(waiting)
        waiting.gate.acquire()
        return waiting.request

    def end_handlers(self, count: int) -> None:
        """Tell `count` handlers to end once they come to the end of the queue."""
        with self._lock:
            for _ in range(count):
                if self._handlers:
                    self._wake(None)
                else:
                    self._queue.append(None)

    def _wake(self, request: Request | None) -> None:
        waiting = self._handlers.pop()
        waiting.request = request
        waiting.gate.release()
