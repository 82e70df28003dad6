"""Requests that are being written or wait for their answers, in order, per node.

A broker answers the requests of one connection in the order it got them, so a deque per node is all the
bookkeeping there is. The newest request is at the head, on the left, the oldest at the tail, on the right. A
request is added when its send is handed to the connection, which takes one send at a time: only a node whose
head has been written completely can take another one. A request that expects no answer leaves from the head
as soon as it is written, every other one from the tail when its answer arrives.
"""

from __future__ import annotations

from collections import deque

import attrs

from kclient.client.requests import ClientRequest, ClientResponse
from kclient.errors import IllegalStateError, KafkaError, SchemaError
from kclient.network.send import NetworkSend
from kclient.protocol.api_keys import ApiKeys


@attrs.define(eq=False)
class InFlightRequest:
    """A sent request. `internal` ones (ApiVersions, Metadata) are the NetworkClient's own."""

    request: ClientRequest
    version: int
    send: NetworkSend
    sent_ms: int
    deadline_ms: int
    internal: bool = False

    def completed(self, message: object, now_ms: int) -> ClientResponse:
        """The response for an answer, or for the end of writing when none is expected."""
        return ClientResponse(self.request, self.version, now_ms, now_ms - self.sent_ms, message)

    def failed(
        self,
        now_ms: int,
        *,
        timed_out: bool = False,
        error: KafkaError | None = None,
        cause: KafkaError | None = None,
    ) -> ClientResponse:
        """The response for a request that will not be answered."""
        # An answer that cannot be read will not become readable: that is no disconnection to try again after.
        disconnected = not isinstance(error, SchemaError)
        return ClientResponse(
            self.request,
            self.version,
            now_ms,
            now_ms - self.sent_ms,
            None,
            disconnected,
            timed_out,
            error,
            cause,
        )


class InFlightRequests:
    """A deque of requests per node, newest at the head. Used by one thread.

    `max_per_node` is max.in.flight.requests.per.connection.
    """

    __slots__ = ("_by_node", "_count", "_max_per_node")

    def __init__(self, max_per_node: int) -> None:
        self._max_per_node = max_per_node
        self._by_node: dict[int, deque[InFlightRequest]] = {}
        self._count = 0

    def add(self, in_flight: InFlightRequest) -> None:
        """Put a request at the head of its node's queue."""
        self._by_node.setdefault(in_flight.request.node_id, deque()).appendleft(in_flight)
        self._count += 1

    def complete_next(self, node_id: int) -> InFlightRequest:
        """Take the oldest request: the one that the next answer belongs to."""
        taken = self._queue(node_id).pop()
        self._count -= 1
        return taken

    def complete_last_sent(self, node_id: int) -> InFlightRequest:
        """Take the newest request: the one whose send was completed last."""
        taken = self._queue(node_id).popleft()
        self._count -= 1
        return taken

    def last_sent(self, node_id: int) -> InFlightRequest:
        """The newest request."""
        return self._queue(node_id)[0]

    def can_send_more(self, node_id: int) -> bool:
        """True if the newest request is written completely and there is room for one more."""
        queue = self._by_node.get(node_id)
        return not queue or (queue[0].send.remaining == 0 and len(queue) < self._max_per_node)

    def count(self, node_id: int | None = None) -> int:
        """The number of requests in flight, to one node or to all."""
        if node_id is None:
            return self._count
        return len(self._by_node.get(node_id, ()))

    def holds(self, node_id: int, api_key: ApiKeys) -> bool:
        """True if a request of this kind to the node is in flight."""
        return any(each.request.api_key is api_key for each in self._by_node.get(node_id, ()))

    def clear(self, node_id: int) -> list[InFlightRequest]:
        """Take all requests of a node, oldest first."""
        queue = self._by_node.pop(node_id, None)
        if not queue:
            return []
        self._count -= len(queue)
        return list(reversed(queue))

    def extend_deadlines(self, node_id: int, extra_ms: int) -> None:
        """The broker holds its answers back on purpose; that is no reason to give up on them."""
        for in_flight in self._by_node.get(node_id, ()):
            in_flight.deadline_ms += extra_ms

    def nodes_with_timed_out(self, now_ms: int) -> list[int]:
        """Nodes with a request whose time is over."""
        return [
            node_id
            for node_id, queue in self._by_node.items()
            if any(in_flight.deadline_ms <= now_ms for in_flight in queue)
        ]

    def next_deadline_ms(self) -> int | None:
        """The time when the first request in flight times out, None if there is none."""
        return min(
            (in_flight.deadline_ms for queue in self._by_node.values() for in_flight in queue), default=None
        )

    def _queue(self, node_id: int) -> deque[InFlightRequest]:
        queue = self._by_node.get(node_id)
        if not queue:
            raise IllegalStateError(f"No request to node {node_id} is in flight")
        return queue
