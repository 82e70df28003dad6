"""RequestRecord: all that is known of a request when it has been answered, for metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

_NOTHING: Mapping[int, int] = MappingProxyType({})


class RequestRecord:
    """Times, sizes and errors of one request. Each is written once, by the thread whose turn it is."""

    # What is not known yet is found in the class: one is made for every request.
    taken_ns: int = 0
    """The moment at which a handler took it from the queue."""
    handled_ns: int = 0
    """The moment at which the handler was through with it, answered or not."""
    answered_ns: int = 0
    dequeued_ns: int = 0
    """The moment at which the network thread began to write the answer."""
    api: int = -1
    version: int | None = None
    """None as long as it is not known to be a request of an API, in a version, that is served."""
    errors: Mapping[int, int] = _NOTHING
    """Error codes in the answer, 0 included, with how often each is there."""
    throttle_ms: int = 0
    charge_network_ns: Callable[[int], None] | None = None
    """Is told of the time of the network thread once the answer has left, if that counts for a quota."""

    def __init__(self, arrived_ns: int, request_bytes: int) -> None:
        self.arrived_ns = arrived_ns
        """The moment at which its last byte was there."""
        self.request_bytes = request_bytes
