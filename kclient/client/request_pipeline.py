"""RequestPipeline: requests written to their connections, and answers matched with them by their order."""

from __future__ import annotations

from typing import Any

from kclient._accel import belongs_to_caller
from kclient.client.api_versions import parse_api_versions_response
from kclient.client.connection_states import WAIT_FOR_EVENT_MS, ConnectionStates
from kclient.client.in_flight import InFlightRequest, InFlightRequests
from kclient.client.network_metrics import NetworkMetrics
from kclient.client.requests import ClientRequest, ClientResponse
from kclient.client.throttling import client_throttle_ms
from kclient.errors import AuthenticationError, DisconnectError, KafkaError, SchemaError
from kclient.network.receive import LENGTH_BYTES
from kclient.network.selector import Selector
from kclient.network.send import NetworkSend
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_response_body, peek_correlation_id, request_buffers
from kclient.utils.log_context import LogContext


class RequestPipeline:
    """Requests in flight, and the responses to those that are over until `complete` hands them out.

    It makes and closes no connection: whoever does says when one is gone. The client's own requests (`internal`) are
    completed at once, and told to nobody else. Belongs to the thread of its NetworkClient.
    """

    def __init__(
        self,
        selector: Selector,
        states: ConnectionStates,
        metrics: NetworkMetrics,
        *,
        max_in_flight: int,
        client_id: str,
        log_context: LogContext,
    ) -> None:
        self.in_flight = InFlightRequests(max_in_flight)
        self.responses: list[ClientResponse] = []
        """Responses that `complete` has yet to hand out."""
        self.next_check_ms = WAIT_FOR_EVENT_MS
        """Before this `late_nodes` need not be asked."""
        self._selector = selector
        self._states = states
        self._traffic = metrics.traffic
        self._client_id = client_id
        self._log = log_context.logger(__name__)

    def can_send(self, node_id: int, now_ms: int) -> bool:
        """True if the node's connection is ready and takes one more request."""
        return (
            self._states.is_ready(node_id, now_ms)
            and self.in_flight.can_send_more(node_id)
            and self._selector.is_channel_ready(str(node_id))
        )

    def transmit(
        self, request: ClientRequest, message: Any, version: int, now_ms: int, *, internal: bool = False
    ) -> None:
        """Begin to write a request. Raises UnsupportedVersionError or SchemaError for a value that does not fit."""
        send = NetworkSend(request_buffers(message, version, request.correlation_id, self._client_id))
        self._selector.send(str(request.node_id), send)
        size = send.size
        traffic = self._traffic[request.node_id]
        traffic.request_bytes += size
        traffic.largest_request_bytes = max(traffic.largest_request_bytes, size)
        traffic.requests += 1
        deadline_ms = now_ms + request.timeout_ms
        self.in_flight.add(InFlightRequest(request, version, send, now_ms, deadline_ms, internal))
        self.next_check_ms = min(self.next_check_ms, deadline_ms)

    def refuse(self, request: ClientRequest, version: int, error: KafkaError, now_ms: int) -> None:
        """Nothing was sent: both sides have no version of it in common, or a value does not fit."""
        self.responses.append(ClientResponse(request, version, now_ms, error=error))

    def sends_completed(self, now_ms: int) -> None:
        """Requests were written; those that expect no answer are over."""
        for channel_id in self._selector.completed_sends:
            node_id = int(channel_id)
            if not self.in_flight.last_sent(node_id).request.expect_response:
                self.responses.append(self.in_flight.complete_last_sent(node_id).completed(None, now_ms))

    def answered(self, node_id: int, frame: memoryview, now_ms: int) -> KafkaError | None:
        """A frame came from the node; returns why its connection can no longer be trusted, None if it can."""
        if not self.in_flight.count(node_id):
            return SchemaError("it answered without being asked")
        in_flight = self.in_flight.complete_next(node_id)
        request = in_flight.request
        latency_ms = now_ms - in_flight.sent_ms
        traffic = self._traffic[node_id]
        traffic.response_bytes += len(frame) + LENGTH_BYTES
        traffic.latency_ms += latency_ms
        traffic.longest_latency_ms = max(traffic.longest_latency_ms, latency_ms)
        traffic.responses += 1
        api_key = request.api_key
        message: Any
        try:
            number = peek_correlation_id(frame)
            if number != request.correlation_id:
                self._settle(in_flight, in_flight.failed(now_ms))
                return DisconnectError(f"it answered request {number} where {request} was the oldest one")
            if api_key is ApiKeys.API_VERSIONS:
                message = parse_api_versions_response(in_flight.version, frame)
            else:
                message = parse_response_body(api_key, in_flight.version, frame)
        except SchemaError as error:
            self._settle(in_flight, in_flight.failed(now_ms, error=error))
            return error
        if getattr(message, "throttle_time_ms", 0):
            throttle_ms = client_throttle_ms(api_key, in_flight.version, message)
            if throttle_ms:
                self._log.debug("Node %d asks for silence for %d ms", node_id, throttle_ms)
                self._states.throttle(node_id, now_ms + throttle_ms)
                self.in_flight.extend_deadlines(node_id, throttle_ms)
        self._settle(in_flight, in_flight.completed(message, now_ms))
        return None

    def late_nodes(self, now_ms: int) -> list[int]:
        """Nodes with a request whose time is over. Their connections must be closed.

        The answer may still come, and there is no telling it from the answer to a later request of the same connection
        but by closing that.
        """
        self._set_next_check()
        return self.in_flight.nodes_with_timed_out(now_ms)

    def connection_ended(self, node_id: int, now_ms: int, error: KafkaError | None, timed_out: bool) -> None:
        """Fail what is in flight to the node, because of `error`; with `timed_out` that is the time-out of some."""
        refused = error if isinstance(error, AuthenticationError) else None
        for in_flight in self.in_flight.clear(node_id):
            late = timed_out and in_flight.deadline_ms <= now_ms
            self._settle(in_flight, in_flight.failed(now_ms, timed_out=late, error=refused, cause=error))
            error = None  # which had to do with the answer that was due, of the oldest request
        self._set_next_check()

    def forget(self, node_id: int, now_ms: int) -> None:
        """Drop what is in flight to the node; only the client's own requests hear of it."""
        for in_flight in self.in_flight.clear(node_id):
            if in_flight.internal:
                self._settle(in_flight, in_flight.failed(now_ms))

    def complete(self) -> list[ClientResponse]:
        """Hand out the responses, after running their callbacks, whose errors are logged."""
        responses, self.responses = self.responses, []
        for response in responses:
            if response.request.on_complete is not None:
                try:
                    response.request.on_complete(response)
                except BaseException as error:
                    self._log.exception("The callback of %s raised", response.request)
                    if belongs_to_caller(error):
                        raise
        return responses

    def _set_next_check(self) -> None:
        next_ms = self.in_flight.next_deadline_ms()
        self.next_check_ms = WAIT_FOR_EVENT_MS if next_ms is None else next_ms

    def _settle(self, in_flight: InFlightRequest, response: ClientResponse) -> None:
        if not in_flight.internal:
            self.responses.append(response)
        elif in_flight.request.on_complete is not None:
            in_flight.request.on_complete(response)
