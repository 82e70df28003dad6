"""NetworkClient: requests out, answers in, over one connection per broker."""

from __future__ import annotations

from typing import Any

from kclient._accel import belongs_to_caller
from kclient.client.api_versions import NodeApiVersions, parse_api_versions_response
from kclient.client.connection_reports import ConnectionReports
from kclient.client.connection_states import WAIT_FOR_EVENT_MS, ConnectionState, ConnectionStates
from kclient.client.in_flight import InFlightRequest, InFlightRequests
from kclient.client.metadata import MetadataRequestPlan
from kclient.client.metadata_updater import MetadataUpdater
from kclient.client.negotiations import Negotiations
from kclient.client.node_choice import beside, least_loaded
from kclient.client.requests import ClientRequest, ClientResponse, MessageBuilder, ResponseCallback
from kclient.client.throttling import client_throttle_ms
from kclient.common.node import Node
from kclient.errors import (
    AuthenticationError,
    DisconnectError,
    IllegalStateError,
    KafkaError,
    SchemaError,
    UnsupportedVersionError,
)
from kclient.network.selector import Selector
from kclient.network.send import NetworkSend
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_response_body, peek_correlation_id, request_buffers
from kclient.utils import fork
from kclient.utils.fork import ForkGuard
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME, Time

_MAX_CORRELATION_ID = 0x7FFFFFFF


class NetworkClient:
    """The `KafkaClient` over sockets. Belongs to one thread; only `wakeup` may be called from any.

    Resolving host names blocks that thread for as long as the system's resolver takes, as in the Java client.
    In a forked child every call raises ForkedClientError, except `wakeup` and `close`, which do nothing.
    """

    def __init__(
        self,
        *,
        selector: Selector,
        metadata_updater: MetadataUpdater,
        connection_states: ConnectionStates,
        max_in_flight: int,
        client_id: str,
        request_timeout_ms: int,
        send_buffer_bytes: int,
        receive_buffer_bytes: int,
        time: Time = SYSTEM_TIME,
        log_context: LogContext | None = None,
    ) -> None:
        self._selector = selector
        self._updater = metadata_updater
        self._states = connection_states
        self._in_flight = InFlightRequests(max_in_flight)
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._send_buffer_bytes = send_buffer_bytes
        self._receive_buffer_bytes = receive_buffer_bytes
        self._time = time
        log_context = log_context or LogContext()
        self._log = log_context.logger(__name__)
        self._reports = ConnectionReports(log_context)
        self._fork_guard = ForkGuard("The client")
        self._generation = fork.generation
        self._negotiations = Negotiations(self._reports.describe)
        self._versions = self._negotiations.versions
        self._done: list[ClientResponse] = []  # completed outside of poll
        self._correlation_id = 0
        self._next_check_ms = WAIT_FOR_EVENT_MS
        self._closed = False

    def ready(self, node: Node, now_ms: int) -> bool:
        if self._closed or fork.generation != self._generation:
            self._check_usable()
        if self.is_ready(node, now_ms):
            return True
        self.connect_if_allowed(node, now_ms)
        return False

    def is_ready(self, node: Node, now_ms: int) -> bool:
        # Whoever fills a connection again at every answer would leave no room for the metadata request.
        return not self._updater.awaits_turn and self._can_send(node.id, now_ms)

    def connect_if_allowed(self, node: Node, now_ms: int) -> bool:
        """Begin to connect if there is no connection and no backoff; returns whether it did."""
        if not self._states.can_connect(node.id, now_ms):
            return False
        self._connect(node, now_ms)
        return True

    def connection_delay_ms(self, node: Node, now_ms: int) -> int:
        return self._states.connection_delay_ms(node.id, now_ms)

    def poll_delay_ms(self, node: Node, now_ms: int) -> int:
        return self._states.poll_delay_ms(node.id, now_ms)

    def throttle_delay_ms(self, node: Node, now_ms: int) -> int:
        return self._states.throttle_delay_ms(node.id, now_ms)

    def connection_failed(self, node: Node) -> bool:
        return self._states.is_disconnected(node.id)

    def authentication_error(self, node: Node) -> AuthenticationError | None:
        return self._states.authentication_error(node.id)

    def is_any_node_preparing(self) -> bool:
        """True if some connection is being set up."""
        return any(self._states.is_preparing(self.beside_fetches(node).id) for node in self._updater.nodes())

    def is_any_node_connected(self) -> bool:
        """True if some connection is set up, whether or not it can take a request now."""
        return any(
            self._states.state(known.id) is ConnectionState.READY
            for node in self._updater.nodes()
            for known in (node, beside(node))
        )

    def in_flight_count(self, node_id: int | None = None) -> int:
        return self._in_flight.count(node_id)

    def has_in_flight(self) -> bool:
        return self._in_flight.count() > 0

    def has_ready_nodes(self, now_ms: int) -> bool:
        return self._states.has_ready_nodes(now_ms)

    def api_versions(self, node_id: int) -> NodeApiVersions | None:
        return self._versions.get(node_id)

    def beside_fetches(self, node: Node) -> Node:
        return beside(node) if self._in_flight.holds(node.id, ApiKeys.FETCH) else node

    def least_loaded_node(self, now_ms: int) -> Node | None:
        self._check_usable()
        nodes = [self.beside_fetches(node) for node in self._updater.nodes()]
        return least_loaded(nodes, self._can_send, self._states, self._in_flight, now_ms)

    def new_request(
        self,
        node_id: int,
        message_or_builder: Any | MessageBuilder,
        now_ms: int,
        *,
        api_key: ApiKeys | None = None,
        expect_response: bool = True,
        timeout_ms: int | None = None,
        on_complete: ResponseCallback | None = None,
        min_version: int | None = None,
        max_version: int | None = None,
    ) -> ClientRequest:
        """A request for `send`; see `KafkaClient`. Raises TypeError for a function without `api_key`."""
        if callable(message_or_builder):
            build = message_or_builder
        else:
            message = message_or_builder
            api_key = message.API_KEY if api_key is None else api_key

            def build(_: int) -> Any:
                return message

        if api_key is None:
            raise TypeError("new_request() needs api_key when it is given a function that builds the message")
        self._correlation_id = (self._correlation_id + 1) & _MAX_CORRELATION_ID
        return ClientRequest(
            node_id,
            api_key,
            build,
            self._correlation_id,
            now_ms,
            self._request_timeout_ms if timeout_ms is None else timeout_ms,
            expect_response,
            on_complete,
            min_version,
            max_version,
        )

    def send(self, request: ClientRequest, now_ms: int) -> None:
        if self._closed or fork.generation != self._generation:
            self._check_usable()
        if not self._can_send(request.node_id, now_ms):
            raise IllegalStateError(f"Node {request.node_id} is not ready for {request}; ask ready() first")
        try:
            version = self._versions[request.node_id].usable_version(
                request.api_key, request.min_version, request.max_version
            )
        except UnsupportedVersionError as error:
            self._refuse(request, -1, error, now_ms)
            return
        try:
            message = request.build(version)
            self._transmit(request, message, version, now_ms)
        except (UnsupportedVersionError, SchemaError) as error:
            self._refuse(request, version, error, now_ms)

    def send_metadata_request(self, node: Node, plan: MetadataRequestPlan, now_ms: int) -> None:
        """Send the updater's request; its answer goes back to the updater and to nobody else."""
        request = self.new_request(
            node.id, plan.build, now_ms, api_key=ApiKeys.METADATA, min_version=plan.min_version
        )
        try:
            version = self._versions[node.id].usable_version(ApiKeys.METADATA, plan.min_version)
            self._transmit(request, plan.build(version), version, now_ms, internal=True)
        except UnsupportedVersionError as error:
            self._updater.handle_failure(now_ms, error)

    def poll(self, timeout_ms: int, now_ms: int, *, return_after_send: bool = True) -> list[ClientResponse]:
        if self._closed or fork.generation != self._generation:
            self._check_usable()
        if self._done:
            # Somebody waits for these; they must not wait for the network first.
            responses, self._done = self._done, []
            return self._complete(responses)
        update_ms = self._updater.maybe_update(self, now_ms)
        check_ms = self._next_check_ms - now_ms
        selector = self._selector
        selector.poll(max(min(timeout_ms, update_ms, check_ms), 0), return_after_send=return_after_send)
        now_ms = self._time.monotonic_ms()
        responses, self._done = self._done, []
        if selector.completed_sends:
            self._handle_completed_sends(responses, now_ms)
        if selector.completed_receives:
            self._handle_completed_receives(responses, now_ms)
        if selector.disconnected:
            self._handle_disconnections(responses, now_ms)
        if selector.connected:
            self._handle_connections()
        if self._negotiations.due:
            self._handle_initiate_api_version_requests(now_ms)
        if now_ms >= self._next_check_ms:
            self._handle_timed_out_connections(responses, now_ms)
            self._handle_timed_out_requests(responses, now_ms)
            deadlines = (self._states.next_setup_deadline_ms(), self._in_flight.next_deadline_ms())
            self._next_check_ms = min((d for d in deadlines if d is not None), default=WAIT_FOR_EVENT_MS)
        return self._complete(responses) if responses else responses

    def disconnect(self, node_id: int) -> None:
        self._check_usable()
        if not self._states.is_connected_or_connecting(node_id):
            return
        self._log.info("Disconnecting from %s on request", self._reports.describe(node_id))
        self._selector.close_channel(str(node_id))
        self._end_connection(self._done, node_id, self._time.monotonic_ms())

    def close_connection(self, node_id: int) -> None:
        self._check_usable()
        self._selector.close_channel(str(node_id))
        now_ms = self._time.monotonic_ms()
        for in_flight in self._in_flight.clear(node_id):
            if in_flight.internal and in_flight.request.api_key is ApiKeys.METADATA:
                self._updater.handle_failure(now_ms, None)
        self._states.forget(node_id)
        self._negotiations.forget(node_id)

    def wakeup(self) -> None:
        self._selector.wakeup()

    def close(self) -> None:
        if self._fork_guard.forked or self._closed:
            return
        self._closed = True
        self._selector.close()
        self._updater.metadata.close()

    def _check_usable(self) -> None:
        self._fork_guard.check()
        if self._closed:
            raise IllegalStateError("The client is closed")

    def _can_send(self, node_id: int, now_ms: int) -> bool:
        return (
            self._states.is_ready(node_id, now_ms)
            and self._in_flight.can_send_more(node_id)
            and self._selector.is_channel_ready(str(node_id))
        )

    def _connect(self, node: Node, now_ms: int) -> None:
        self._reports.connecting(node)
        try:
            address = self._states.connecting(node.id, node.host, now_ms)
            self._log.debug("Connecting to %s at %s", node, address)
            self._selector.connect(
                str(node.id),
                address,
                node.port,
                send_buffer_bytes=self._send_buffer_bytes,
                receive_buffer_bytes=self._receive_buffer_bytes,
                host=node.host,
            )
        except OSError as error:
            # Resolving may have blocked for so long that a backoff counted from before it is over already, and this
            # thread would do nothing but resolve a name that is not there.
            failed_ms = self._time.monotonic_ms()
            self._end_connection(
                self._done, node.id, failed_ms, DisconnectError(str(error.strerror or error))
            )
        else:
            self._check_by(now_ms + self._states.setup_timeout_ms(node.id))

    def _transmit(
        self, request: ClientRequest, message: Any, version: int, now_ms: int, internal: bool = False
    ) -> None:
        send = NetworkSend(request_buffers(message, version, request.correlation_id, self._client_id))
        self._selector.send(str(request.node_id), send)
        self._add_in_flight(request, version, send, now_ms, internal)

    def _add_in_flight(
        self, request: ClientRequest, version: int, send: NetworkSend, now_ms: int, internal: bool = False
    ) -> None:
        deadline_ms = now_ms + request.timeout_ms
        self._in_flight.add(InFlightRequest(request, version, send, now_ms, deadline_ms, internal))
        self._check_by(deadline_ms)

    def _refuse(self, request: ClientRequest, version: int, error: KafkaError, now_ms: int) -> None:
        """Nothing was sent: both sides have no version of it in common, or a value does not fit. The next poll
        completes the request.
        """
        self._done.append(
            ClientResponse(
                request,
                request.node_id,
                request.api_key,
                version,
                request.correlation_id,
                now_ms,
                error=error,
            )
        )

    def _handle_completed_sends(self, responses: list[ClientResponse], now_ms: int) -> None:
        for channel_id in self._selector.completed_sends:
            node_id = int(channel_id)
            if not self._in_flight.last_sent(node_id).request.expect_response:
                responses.append(self._in_flight.complete_last_sent(node_id).completed(None, now_ms))

    def _handle_completed_receives(self, responses: list[ClientResponse], now_ms: int) -> None:
        # Copied, because an answer that cannot be used closes its channel, and that drops its results.
        for channel_id, receive in list(self._selector.completed_receives.items()):
            node_id = int(channel_id)
            if not self._in_flight.count(node_id):
                self._break(responses, node_id, now_ms, SchemaError("it answered without being asked"))
                continue
            in_flight = self._in_flight.complete_next(node_id)
            self._handle_answer(responses, in_flight, receive.payload, now_ms)

    def _handle_answer(
        self, responses: list[ClientResponse], in_flight: InFlightRequest, frame: memoryview, now_ms: int
    ) -> None:
        request = in_flight.request
        node_id = request.node_id
        message: Any
        try:
            answered = peek_correlation_id(frame)
            if answered != request.correlation_id:
                self._fail_in_flight(responses, in_flight, now_ms)
                detail = f"it answered request {answered} where {request} was the oldest one"
                self._break(responses, node_id, now_ms, DisconnectError(detail))
                return
            if in_flight.internal and request.api_key is ApiKeys.API_VERSIONS:
                message = parse_api_versions_response(in_flight.version, frame)
            else:
                message = parse_response_body(request.api_key, in_flight.version, frame)
        except SchemaError as error:
            self._fail_in_flight(responses, in_flight, now_ms, error=error)
            self._break(responses, node_id, now_ms, error)
            return
        if getattr(message, "throttle_time_ms", 0):
            throttle_ms = client_throttle_ms(request.api_key, in_flight.version, message)
            if throttle_ms:
                self._throttle(node_id, throttle_ms, now_ms)
        if not in_flight.internal:
            responses.append(in_flight.completed(message, now_ms))
        elif request.api_key is ApiKeys.METADATA:
            self._updater.handle_response(message, now_ms)
        else:
            self._handle_api_versions(responses, node_id, message, now_ms)

    def _handle_api_versions(
        self, responses: list[ClientResponse], node_id: int, message: Any, now_ms: int
    ) -> None:
        error = self._negotiations.answered(node_id, message)
        if error is not None:
            self._break(responses, node_id, now_ms, error)
        elif node_id in self._versions:
            self._states.ready(node_id)
            self._reports.connected(node_id)

    def _handle_disconnections(self, responses: list[ClientResponse], now_ms: int) -> None:
        for channel_id, error in self._selector.disconnected.items():
            self._end_connection(responses, int(channel_id), now_ms, error)

    def _handle_connections(self) -> None:
        for channel_id in self._selector.connected:
            node_id = int(channel_id)
            self._states.checking_api_versions(node_id)
            self._negotiations.begin(node_id)

    def _handle_initiate_api_version_requests(self, now_ms: int) -> None:
        for node_id, negotiation in list(self._negotiations.due.items()):
            if not (self._selector.is_channel_ready(str(node_id)) and self._in_flight.can_send_more(node_id)):
                continue
            del self._negotiations.due[node_id]
            version = negotiation.version
            message = negotiation.request()
            request = self.new_request(node_id, message, now_ms)
            self._transmit(request, message, version, now_ms, internal=True)

    def _handle_timed_out_connections(self, responses: list[ClientResponse], now_ms: int) -> None:
        for node_id in self._states.nodes_with_setup_timeout(now_ms):
            timeout_ms = self._states.setup_timeout_ms(node_id)
            self._selector.close_channel(str(node_id))
            error = DisconnectError(f"not set up in {timeout_ms} ms (socket.connection.setup.timeout.ms)")
            self._end_connection(responses, node_id, now_ms, error)

    def _handle_timed_out_requests(self, responses: list[ClientResponse], now_ms: int) -> None:
        for node_id in self._in_flight.nodes_with_timed_out(now_ms):
            # The answer may still come, and there is no telling it from the answer to a later request of the
            # same connection but by closing that.
            self._selector.close_channel(str(node_id))
            error = DisconnectError("it did not answer within request.timeout.ms")
            self._end_connection(responses, node_id, now_ms, error, timed_out=True)

    def _complete(self, responses: list[ClientResponse]) -> list[ClientResponse]:
        for response in responses:
            if response.request.on_complete is not None:
                try:
                    response.request.on_complete(response)
                except BaseException as error:
                    self._log.exception("The callback of %s raised", response.request)
                    if belongs_to_caller(error):
                        raise
        return responses

    def _throttle(self, node_id: int, throttle_ms: int, now_ms: int) -> None:
        self._log.debug("%s asks for silence for %d ms", self._reports.describe(node_id), throttle_ms)
        self._states.throttle(node_id, now_ms + throttle_ms)
        self._in_flight.extend_deadlines(node_id, throttle_ms)

    def _break(self, responses: list[ClientResponse], node_id: int, now_ms: int, error: KafkaError) -> None:
        """The stream of this connection can no longer be trusted, or is of no use: close it."""
        self._selector.close_channel(str(node_id))
        self._end_connection(responses, node_id, now_ms, error)

    def _end_connection(
        self,
        responses: list[ClientResponse],
        node_id: int,
        now_ms: int,
        error: KafkaError | None = None,
        *,
        timed_out: bool = False,
    ) -> None:
        """The channel is gone: bring state, versions, metadata and requests in flight up to date.

        Without `error` the end was wished for.
        """
        state = self._states.state(node_id)
        if state is ConnectionState.CHECKING_API_VERSIONS:
            error = self._negotiations.interrupted(node_id, error)
        refused = error if isinstance(error, AuthenticationError) else None
        self._states.disconnected(node_id, now_ms, refused)
        self._negotiations.end(node_id)
        if error is not None:
            self._updater.handle_connection_failure(self._reports.ended(node_id, state, error, now_ms))
        for in_flight in self._in_flight.clear(node_id):
            late = timed_out and in_flight.deadline_ms <= now_ms
            self._fail_in_flight(responses, in_flight, now_ms, timed_out=late, error=refused, cause=error)
            error = None  # which had to do with the answer that was due, of the oldest request

    def _fail_in_flight(
        self,
        responses: list[ClientResponse],
        in_flight: InFlightRequest,
        now_ms: int,
        *,
        timed_out: bool = False,
        error: KafkaError | None = None,
        cause: KafkaError | None = None,
    ) -> None:
        if not in_flight.internal:
            # An answer that cannot be read will not become readable: that is no disconnection to try again
            # after.
            disconnected = not isinstance(error, SchemaError)
            responses.append(
                in_flight.failed(
                    now_ms, disconnected=disconnected, timed_out=timed_out, error=error, cause=cause
                )
            )
        elif in_flight.request.api_key is ApiKeys.METADATA:
            self._updater.handle_failure(now_ms, error)

    def _check_by(self, deadline_ms: int) -> None:
        self._next_check_ms = min(self._next_check_ms, deadline_ms)
