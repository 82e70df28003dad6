"""RequestChannel: what lies between the processors, who own sockets, and the handlers, who do the work."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import attrs

from kclient.network.transport import Buffer


class ResponseAction(enum.Enum):
    """What a processor has to do with a connection whose request was handled."""

    SEND = enum.auto()
    NOTHING = enum.auto()
    """The request has no response (acks=0): read the next one."""
    CLOSE = enum.auto()


@attrs.define(eq=False)
class Response:
    """The outcome of one request."""

    connection_id: str
    action: ResponseAction
    buffers: Sequence[Buffer] = ()


@attrs.define(eq=False)
class Request:
    """One frame from a client and the way back. Owned by the handler that took it; answered exactly once."""

    connection_id: str
    client_host: str
    frame: memoryview
    reply: Callable[[Response], None]


class RequestChannel:
    """A bounded queue of requests. Thread-safe.

    `capacity` bounds the requests that no handler has taken; `max_bytes` (negative: no bound) the frames that
    are queued or being handled, so that many clients with big requests cannot fill the memory.
    """

    __slots__ = ("_bytes", "_lock", "_max_bytes", "_places", "_queue")

    def __init__(self, capacity: int, max_bytes: int) -> None:
        self._queue: SimpleQueue[Request | None] = SimpleQueue()
        self._places = threading.Semaphore(capacity)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._bytes = 0

    @property
    def over_memory(self) -> bool:
        """True while nothing more should be read from any connection."""
        return 0 <= self._max_bytes <= self._bytes

    def put(self, request: Request, timeout_s: float) -> bool:
        """Queue `request`; False if there was no place for it within `timeout_s`."""
        if not self._places.acquire(timeout=timeout_s):
            return False
        with self._lock:
            self._bytes += len(request.frame)
        self._queue.put(request)
        return True

    def take(self) -> Request | None:
        """The next request, waiting for it; None tells the handler to end."""
        request = self._queue.get()
        if request is not None:
            self._places.release()
        return request

    def release(self, size: int) -> None:
        """A frame of `size` bytes is no longer needed."""
        with self._lock:
            self._bytes -= size

    def end_handlers(self, count: int) -> None:
        """Tell `count` handlers to end once they come to the end of the queue."""
        for _ in range(count):
            self._queue.put(None)
