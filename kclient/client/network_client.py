"""NetworkClient: requests out, answers in, over one connection per broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kclient._accel import forks
from kclient.client.api_versions import NodeApiVersions
from kclient.client.broker_connection import BrokerConnection
from kclient.client.connection_states import ConnectionStates
from kclient.client.metadata import MetadataRequestPlan
from kclient.client.metadata_updater import MetadataUpdater
from kclient.client.network_metrics import NetworkMetrics
from kclient.client.node_choice import NodeChoice
from kclient.client.node_connections import NodeConnections
from kclient.client.request_pipeline import RequestPipeline
from kclient.client.requests import ClientRequest, ClientResponse, RequestFactory
from kclient.client.telemetry.telemetry_sender import TelemetrySender, TelemetryState
from kclient.common.node import Node
from kclient.errors import (
    ConnectionFailure,
    DisconnectError,
    IllegalStateError,
    KafkaError,
    SchemaError,
    UnsupportedVersionError,
)
from kclient.network.selector import Selector
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.fork import ForkGuard
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.security.sasl import SaslCredentials

_LAST_PUSH_MS: Final = 200
"""Time that the end of a client may take for the last of its metrics."""


class NetworkClient:
    """The `KafkaClient` over sockets. Belongs to one thread.

    Only `wakeup` and `update_credentials` may be called from any.

    In a forked child every call raises ForkedClientError, except `wakeup` and `close`, which do nothing.
    """

    def __init__(
        self,
        selector: Selector,
        updater: MetadataUpdater,
        states: ConnectionStates,
        pipeline: RequestPipeline,
        connections: NodeConnections,
        new_request: RequestFactory,
        metrics: NetworkMetrics,
        time: Time,
        log_context: LogContext,
        credentials: SaslCredentials | None = None,
        telemetry: TelemetrySender | None = None,
    ) -> None:
        self._selector = selector
        self._updater = updater
        self._pipeline = pipeline
        self._connections = connections
        self._metrics = metrics
        self._time = time
        self._log = log_context.logger(__name__)
        self._credentials = credentials
        self._telemetry = telemetry
        self.connections = states
        self.new_request = new_request
        self.choice = NodeChoice(updater.metadata, states, pipeline)
        self._fork_guard = ForkGuard("The client")
        self._generation = forks.generation
        self._closed = False

    def ready(self, node: Node, now_ms: int) -> bool:
        if self._closed or forks.generation != self._generation:
            self._check_usable()
        if self.is_ready(node, now_ms):
            return True
        self._connections.connect_if_allowed(node, now_ms)
        return False

    def is_ready(self, node: Node, now_ms: int) -> bool:
        # Whoever fills a connection again at every answer would leave no room for the metadata request.
        return not self._updater.awaits_turn and self._pipeline.can_send(node.id, now_ms)

    def connect_if_allowed(self, node: Node, now_ms: int) -> bool:
        return self._connections.connect_if_allowed(node, now_ms)

    def in_flight_count(self, node_id: int | None = None) -> int:
        return self._pipeline.in_flight.count(node_id)

    def api_versions(self, node_id: int) -> NodeApiVersions | None:
        return self._connections.versions.get(node_id)

    def beside_fetches(self, node: Node) -> Node:
        return self.choice.beside_fetches(node)

    def least_loaded_node(self, now_ms: int) -> Node | None:
        self._check_usable()
        return self.choice.least_loaded(now_ms)

    def send(self, request: ClientRequest, now_ms: int) -> None:
        if self._closed or forks.generation != self._generation:
            self._check_usable()
        if not self._pipeline.can_send(request.node_id, now_ms):
            raise IllegalStateError(f"Node {request.node_id} is not ready for {request}; ask ready() first")
        version = -1
        try:
            version = self._connections.versions[request.node_id].usable_version(
                request.api_key, request.min_version, request.max_version
            )
            self._pipeline.transmit(request, request.build(version), version, now_ms)
        except (UnsupportedVersionError, SchemaError) as error:
            self._pipeline.refuse(request, version, error, now_ms)

    def send_metadata_request(self, node: Node, plan: MetadataRequestPlan, now_ms: int) -> None:
        """Send the updater's request; its answer goes back to the updater and to nobody else."""
        request = self.new_request(
            node.id,
            plan.build,
            api_key=ApiKeys.METADATA,
            on_complete=self._metadata_answered,
            min_version=plan.min_version,
        )
        self._transmit_internal(request, self._metadata_answered, now_ms)

    def offers(self, api_key: ApiKeys) -> bool | None:
        """Return True if a broker with a connection has the API, None if there is no such broker."""
        known = self._connections.versions.values()
        return any(versions.range_of(api_key) is not None for versions in known) if known else None

    def send_internal(
        self, node: Node, message: Any, on_complete: Callable[[ClientResponse], None], now_ms: int
    ) -> None:
        """Send a request of the client's own, which is told to nobody else."""
        request = self.new_request(node.id, message, on_complete=on_complete)
        self._transmit_internal(request, on_complete, now_ms)

    def poll(self, timeout_ms: int, now_ms: int, *, return_after_send: bool = True) -> list[ClientResponse]:
        if self._closed or forks.generation != self._generation:
            self._check_usable()
        selector, pipeline, connections = self._selector, self._pipeline, self._connections
        if pipeline.responses:
            # Somebody waits for these; they must not wait for the network first.
            return pipeline.complete()
        update_ms = self._updater.maybe_update(self, now_ms)
        check_ms = min(pipeline.next_check_ms, connections.next_check_ms) - now_ms
        if self._telemetry is not None:
            if now_ms >= self._telemetry.next_ms:
                self._telemetry.maybe_send(self, now_ms)
            check_ms = min(check_ms, self._telemetry.next_ms - now_ms)
        selector.poll(max(min(timeout_ms, update_ms, check_ms), 0), return_after_send=return_after_send)
        began_ms, now_ms = now_ms, self._time.monotonic_ms()
        self._metrics.polled(began_ms, now_ms)
        if selector.completed_sends:
            pipeline.sends_completed(now_ms)
        if selector.completed_receives:
            # Copied, because an answer that cannot be used closes its channel, and that drops its results.
            for channel_id, receive in list(selector.completed_receives.items()):
                error = pipeline.answered(int(channel_id), receive.payload, now_ms)
                if error is not None:
                    connections.close(int(channel_id), now_ms, error)
        for channel_id, reason in selector.disconnected.items():
            connections.ended(int(channel_id), now_ms, reason)
        for channel_id in selector.connected:
            connections.established(int(channel_id))
        if connections.to_ask:
            connections.ask_versions(now_ms)
        if now_ms >= connections.next_check_ms:
            connections.check(now_ms)
        if connections.ending_sessions:
            connections.renew_sessions(now_ms)
        if now_ms >= pipeline.next_check_ms:
            for node_id in pipeline.late_nodes(now_ms):
                late = DisconnectError(
                    "it did not answer within request.timeout.ms",
                    connection=ConnectionFailure(step="request", setting="request.timeout.ms"),
                )
                connections.close(node_id, now_ms, late, timed_out=True)
        return pipeline.complete() if pipeline.responses else []

    def disconnect(self, node_id: int) -> None:
        self._check_usable()
        self._connections.disconnect(node_id, self._time.monotonic_ms())

    def disconnect_all(self) -> None:
        """Close every connection; the next poll completes their requests as disconnected."""
        now_ms = self._time.monotonic_ms()
        for node_id in self.connections.connected_or_connecting():
            self._connections.disconnect(node_id, now_ms)

    def close_connection(self, node_id: int) -> None:
        self._check_usable()
        self._connections.forget(node_id, self._time.monotonic_ms())

    def finalized_level(self, feature: str) -> int:
        return self._connections.features.levels.get(feature, 0)

    def describe_connections(self) -> list[BrokerConnection]:
        return self._connections.overview(self._time.monotonic_ms())

    def connection_failure(self, node_id: int | None = None) -> KafkaError | None:
        return self._connections.reports.failure(node_id)

    def update_credentials(self, username: str, password: str) -> None:
        for name, value in (("username", username), ("password", password)):
            if not isinstance(value, str):
                raise TypeError(f"{name} has to be str, not {type(value).__name__}")
        if self._credentials is None:
            raise IllegalStateError("The client does not authenticate with SASL (security.protocol)")
        self._credentials.update(username, password)

    def wakeup(self) -> None:
        self._selector.wakeup()

    def close(self) -> None:
        if self._fork_guard.forked or self._closed:
            return
        if self._telemetry is not None and forks.generation == self._generation:
            self._push_last_metrics(self._telemetry)
        self._closed = True
        self._selector.close()
        self._updater.metadata.close()

    def _push_last_metrics(self, telemetry: TelemetrySender) -> None:
        now_ms = self._time.monotonic_ms()
        until_ms = now_ms + _LAST_PUSH_MS
        try:
            waiting = telemetry.terminate(self, now_ms)
            while waiting and now_ms < until_ms:
                self._selector.poll(until_ms - now_ms)
                now_ms = self._time.monotonic_ms()
                for channel_id, receive in self._selector.completed_receives.items():
                    self._pipeline.answered(int(channel_id), receive.payload, now_ms)
                waiting = telemetry.state is not TelemetryState.TERMINATED
        except (OSError, KafkaError) as error:
            self._log.debug("The last metrics could not be pushed: %s", error)

    def _check_usable(self) -> None:
        self._fork_guard.check()
        if self._closed:
            raise IllegalStateError("The client is closed")

    def _transmit_internal(
        self, request: ClientRequest, on_complete: Callable[[ClientResponse], None], now_ms: int
    ) -> None:
        try:
            version = self._connections.versions[request.node_id].usable_version(
                request.api_key, request.min_version
            )
            self._pipeline.transmit(request, request.build(version), version, now_ms, internal=True)
        except UnsupportedVersionError as error:
            on_complete(ClientResponse(request, -1, now_ms, error=error))

    def _metadata_answered(self, response: ClientResponse) -> None:
        if response.failed:
            self._updater.handle_failure(response.received_ms, response.error)
        else:
            self._updater.handle_response(response.message, response.received_ms)
