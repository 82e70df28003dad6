"""MockClient: a KafkaClient whose brokers are what the test says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import attrs

from kclient.client.api_versions import NodeApiVersions
from kclient.client.broker_connection import BrokerConnection
from kclient.client.connection_states import WAIT_FOR_EVENT_MS
from kclient.client.metadata import Metadata
from kclient.client.requests import ClientRequest, ClientResponse, RequestFactory
from kclient.common.node import Node
from kclient.errors import AuthenticationError, IllegalStateError, KafkaError, UnsupportedVersionError
from kclient.protocol.codec import encode
from kclient.protocol.messages.metadata import MetadataResponse
from kclient.utils.time import Time

RequestMatcher = Callable[[Any], bool]


@attrs.define(eq=False)
class SentRequest:
    """A request that was sent, with the version chosen and the message built for it."""

    request: ClientRequest
    version: int
    message: Any
    sent_ms: int


@attrs.define(eq=False)
class _Prepared:
    message: Any
    matcher: RequestMatcher | None
    node_id: int | None
    disconnected: bool
    timed_out: bool
    error: KafkaError | None


@attrs.define
class _MockConnection:
    connected: bool = False
    unreachable_until_ms: int = 0
    backoff_until_ms: int = 0
    throttled_until_ms: int = 0
    delayed_ready_until_ms: int = 0
    authentication_error: AuthenticationError | None = None
    failed: bool = False


class MockConnections:
    """The `Connections` of a MockClient, which changes them. Used by one thread."""

    def __init__(self) -> None:
        self._nodes: dict[int, _MockConnection] = {}

    def node(self, node_id: int) -> _MockConnection:
        """The connection to a node."""
        return self._nodes.setdefault(node_id, _MockConnection())

    def forget(self, node_id: int) -> None:
        """Drop everything known of a node."""
        self._nodes.pop(node_id, None)

    def poll_delay_ms(self, node_id: int, now_ms: int) -> int:
        node = self.node(node_id)
        if now_ms < node.throttled_until_ms:
            return node.throttled_until_ms - now_ms
        return WAIT_FOR_EVENT_MS if node.connected else max(node.backoff_until_ms - now_ms, 0)

    def is_disconnected(self, node_id: int) -> bool:
        return self.node(node_id).failed

    def authentication_error(self, node_id: int) -> AuthenticationError | None:
        return self.node(node_id).authentication_error

    def any_authentication_error(self) -> AuthenticationError | None:
        errors = (node.authentication_error for node in self._nodes.values())
        return next((error for error in errors if error is not None), None)


class MockClient:
    """Completes requests with prepared answers, in order, or with `respond`. Used by one thread.

    `poll` never waits and never moves the clock. Each message is encoded when it is sent, so that one which
    no broker could be sent fails the test. With `metadata`, a poll answers a requested update with the next
    prepared one.
    """

    def __init__(
        self, time: Time, metadata: Metadata | None = None, *, request_timeout_ms: int = 30_000
    ) -> None:
        self.requests: deque[SentRequest] = deque()
        """Sent and not answered yet, oldest first."""
        self.sent: list[SentRequest] = []
        """Everything that was ever sent."""
        self.wakeups = 0
        self.credentials: tuple[str, str] | None = None
        self.closed = False
        self.connections = MockConnections()
        self.described: list[BrokerConnection] = []
        self.features: dict[str, int] = {}
        self.failure: KafkaError | None = None
        """The reason why no broker can be reached."""
        self.new_request = RequestFactory(request_timeout_ms)
        self._time = time
        self._metadata = metadata
        self._versions = NodeApiVersions.all_of_ours()
        self._prepared: deque[_Prepared] = deque()
        self._metadata_updates: deque[MetadataResponse] = deque()
        self._responses: list[ClientResponse] = []

    def prepare_response(
        self,
        message: Any,
        *,
        matcher: RequestMatcher | None = None,
        node_id: int | None = None,
        disconnected: bool = False,
        timed_out: bool = False,
        error: KafkaError | None = None,
    ) -> None:
        """Answer the next request that has no answer yet, now or when it is sent.

        `matcher` gets the request's message and must accept it, `node_id` must be where it goes, or the test
        fails. `disconnected` breaks the connection instead; `error` fails this request alone.
        """
        prepared = _Prepared(message, matcher, node_id, disconnected or timed_out, timed_out, error)
        if self.requests:
            self._answer(self.requests.popleft(), prepared)
        else:
            self._prepared.append(prepared)

    def respond(
        self,
        message: Any,
        *,
        node_id: int | None = None,
        matcher: RequestMatcher | None = None,
        disconnected: bool = False,
        timed_out: bool = False,
        error: KafkaError | None = None,
    ) -> None:
        """Answer the oldest waiting request (of `node_id`, that `matcher` accepts); fails if there is
        none.
        """
        for sent in self.requests:
            if node_id is not None and sent.request.node_id != node_id:
                continue
            if matcher is not None and not matcher(sent.message):
                continue
            self.requests.remove(sent)
            prepared = _Prepared(message, None, None, disconnected or timed_out, timed_out, error)
            self._answer(sent, prepared)
            return
        raise AssertionError(f"No waiting request fits: {[str(s.request) for s in self.requests]}")

    def prepare_metadata_update(self, response: MetadataResponse) -> None:
        """The answer to the next update that the metadata asks for."""
        self._metadata_updates.append(response)

    def set_api_versions(self, versions: NodeApiVersions) -> None:
        """Set the API versions that every broker supports from now on."""
        self._versions = versions

    def set_unreachable(self, node: Node, duration_ms: int) -> None:
        """Break the connection to `node`; attempts fail for this long."""
        self.disconnect(node.id)
        self.connections.node(node.id).unreachable_until_ms = self._time.monotonic_ms() + duration_ms

    def backoff(self, node: Node, duration_ms: int) -> None:
        """No connection to `node` may be tried for this long."""
        self.connections.node(node.id).backoff_until_ms = self._time.monotonic_ms() + duration_ms

    def throttle(self, node: Node, duration_ms: int) -> None:
        """`node` asks for silence for this long."""
        self.connections.node(node.id).throttled_until_ms = self._time.monotonic_ms() + duration_ms

    def delay_ready(self, node: Node, duration_ms: int) -> None:
        """Connecting to `node` takes this long."""
        self.connections.node(node.id).delayed_ready_until_ms = self._time.monotonic_ms() + duration_ms

    def refuse_authentication(self, node: Node, error: AuthenticationError) -> None:
        """`node` refuses who the client is."""
        connection = self.connections.node(node.id)
        connection.connected = False
        connection.failed = True
        connection.authentication_error = error

    def ready(self, node: Node, now_ms: int) -> bool:
        connection = self.connections.node(node.id)
        if connection.authentication_error is not None or now_ms < connection.backoff_until_ms:
            return False
        if now_ms < connection.unreachable_until_ms:
            connection.failed = True
            return False
        if now_ms < connection.delayed_ready_until_ms:
            return False
        connection.connected = True
        connection.failed = False
        return now_ms >= connection.throttled_until_ms

    def is_ready(self, node: Node, now_ms: int) -> bool:
        connection = self.connections.node(node.id)
        return connection.connected and now_ms >= connection.throttled_until_ms

    def send(self, request: ClientRequest, now_ms: int) -> None:
        if not self.connections.node(request.node_id).connected:
            raise IllegalStateError(f"Node {request.node_id} is not ready for {request}")
        try:
            version = self._versions.usable_version(request.api_key, request.min_version, request.max_version)
            message = request.build(version)
            encode(message, version)
        except UnsupportedVersionError as error:
            self._responses.append(ClientResponse(request, -1, now_ms, error=error))
            return
        self._sent(SentRequest(request, version, message, now_ms))

    def _sent(self, sent: SentRequest) -> None:
        request = sent.request
        self.sent.append(sent)
        if not request.expect_response:
            self._responses.append(ClientResponse(request, sent.version, sent.sent_ms))
        elif self._prepared:
            self._answer(sent, self._prepared.popleft())
        else:
            self.requests.append(sent)

    def poll(self, timeout_ms: int, now_ms: int, *, return_after_send: bool = True) -> list[ClientResponse]:
        del timeout_ms, return_after_send
        if self._metadata is not None and self._metadata.update_requested and self._metadata_updates:
            self._metadata.update(self._metadata_updates.popleft(), now_ms)
        for sent in [s for s in self.requests if now_ms >= s.sent_ms + s.request.timeout_ms]:
            if sent in self.requests:
                self.requests.remove(sent)
                self._answer(sent, _Prepared(None, None, None, True, True, None))
        responses, self._responses = self._responses, []
        for response in responses:
            if response.request.on_complete is not None:
                response.request.on_complete(response)
        return responses

    def beside_fetches(self, node: Node) -> Node:
        return node  # answers come in any order here

    def least_loaded_node(self, now_ms: int) -> Node | None:
        nodes = () if self._metadata is None else self._metadata.fetch().nodes
        usable = [
            node
            for node in nodes
            if now_ms >= self.connections.node(node.id).backoff_until_ms
            and now_ms >= self.connections.node(node.id).unreachable_until_ms
            and now_ms >= self.connections.node(node.id).throttled_until_ms
        ]
        return min(usable, key=lambda node: self.in_flight_count(node.id), default=None)

    def in_flight_count(self, node_id: int | None = None) -> int:
        return sum(1 for sent in self.requests if node_id is None or sent.request.node_id == node_id)

    def disconnect(self, node_id: int) -> None:
        connection = self.connections.node(node_id)
        connection.failed = connection.failed or connection.connected
        connection.connected = False
        now_ms = self._time.monotonic_ms()
        for sent in [s for s in self.requests if s.request.node_id == node_id]:
            self.requests.remove(sent)
            self._responses.append(
                ClientResponse(sent.request, sent.version, now_ms, now_ms - sent.sent_ms, disconnected=True)
            )

    def close_connection(self, node_id: int) -> None:
        self.connections.forget(node_id)
        for sent in [s for s in self.requests if s.request.node_id == node_id]:
            self.requests.remove(sent)

    def api_versions(self, node_id: int) -> NodeApiVersions | None:
        return self._versions if self.connections.node(node_id).connected else None

    def finalized_level(self, feature: str) -> int:
        return self.features.get(feature, 0)

    def describe_connections(self) -> list[BrokerConnection]:
        return self.described

    def connection_failure(self, node_id: int | None = None) -> KafkaError | None:
        return self.failure

    def update_credentials(self, username: str, password: str) -> None:
        self.credentials = (username, password)

    def wakeup(self) -> None:
        self.wakeups += 1

    def close(self) -> None:
        self.closed = True
        if self._metadata is not None:
            self._metadata.close()

    def _answer(self, sent: SentRequest, prepared: _Prepared) -> None:
        request = sent.request
        if prepared.node_id is not None and prepared.node_id != request.node_id:
            raise AssertionError(f"An answer was prepared for node {prepared.node_id}, not for {request}")
        if prepared.matcher is not None and not prepared.matcher(sent.message):
            raise AssertionError(f"The prepared answer's matcher refuses {sent.message}")
        now_ms = self._time.monotonic_ms()
        response = ClientResponse(
            request,
            sent.version,
            now_ms,
            now_ms - sent.sent_ms,
            None if prepared.disconnected or prepared.error is not None else prepared.message,
            prepared.disconnected,
            prepared.timed_out,
            prepared.error,
        )
        self._responses.append(response)
        if prepared.disconnected:
            self.disconnect(request.node_id)
