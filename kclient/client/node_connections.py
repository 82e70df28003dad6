"""NodeConnections: connections to brokers, from the first packet to the versions in common, and to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kclient.client.api_versions import FinalizedFeatures
from kclient.client.broker_connection import BrokerConnection
from kclient.client.connection_ids import broker_id
from kclient.client.connection_reports import ConnectionReports
from kclient.client.connection_states import WAIT_FOR_EVENT_MS, ConnectionState, ConnectionStates
from kclient.client.metadata_updater import MetadataUpdater
from kclient.client.negotiations import Negotiations
from kclient.client.network_metrics import NetworkMetrics
from kclient.client.request_pipeline import RequestPipeline
from kclient.client.requests import ClientResponse, RequestFactory
from kclient.client.sessions import Sessions
from kclient.common.node import Node
from kclient.errors import (
    AuthenticationError,
    ConnectionFailure,
    ConnectionStep,
    DisconnectError,
    KafkaError,
    RebootstrapRequiredError,
)
from kclient.network.selector import Selector
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.network.proxy import ProxyAddress


class NodeConnections:
    """Makes connections, asks over each which versions the broker has, and ends them.

    What ends a connection brings everything up to date that was said of it: state, versions, requests in flight.
    The updater of the metadata is told of an end that nobody wished for. Resolving host names blocks for as long as the
    system's resolver takes, as in the Java client. Belongs to the thread of its NetworkClient.
    """

    def __init__(
        self,
        selector: Selector,
        states: ConnectionStates,
        pipeline: RequestPipeline,
        sessions: Sessions,
        new_request: RequestFactory,
        updater: MetadataUpdater,
        reports: ConnectionReports,
        metrics: NetworkMetrics,
        time: Time,
        log_context: LogContext,
        proxy: ProxyAddress | None = None,
    ) -> None:
        self._selector = selector
        self._states = states
        self._pipeline = pipeline
        self._sessions = sessions
        self._new_request = new_request
        self._updater = updater
        self._metrics = metrics
        self._time = time
        self._proxy = proxy
        self._log = log_context.logger(__name__)
        self.reports = reports
        """The last word on connections and why they failed."""
        self._negotiations = Negotiations(reports.describe)
        self.versions = self._negotiations.versions
        """The versions agreed on, by the ids of the nodes that are ready."""
        self.to_ask = self._negotiations.due
        """The nodes to be asked for their versions."""
        self.ending_sessions = sessions.ending
        """The nodes for which `renew_sessions` waits."""
        self.next_check_ms = WAIT_FOR_EVENT_MS
        """Before this `check` has nothing to do."""

    @property
    def features(self) -> FinalizedFeatures:
        """The features of the cluster. May be read by any thread."""
        return self._negotiations.features

    def overview(self, now_ms: int) -> list[BrokerConnection]:
        """Return how every connection stands, but the lost ones of brokers that are gone. For any thread."""
        known = self._updater.metadata.snapshot.nodes
        found = []
        for node_id, state, at_ms in self._states.overview():
            node = self.reports.node(node_id)
            if node is None:
                continue  # it is just being made
            broker = broker_id(node_id)
            if (node_id if broker is None else broker) not in known and state is not ConnectionState.READY:
                continue
            failure = None if state is ConnectionState.READY else self.reports.failure(node_id)
            found.append(
                BrokerConnection(
                    broker_id=broker,
                    host=node.host,
                    port=node.port,
                    state=state.name.lower().replace("_", " "),
                    since_ms=max(now_ms - at_ms, 0),
                    failure=None if failure is None else str(failure),
                )
            )
        return found

    def connect_if_allowed(self, node: Node, now_ms: int) -> bool:
        """Begin to connect if there is no connection and no backoff; returns whether it did."""
        if not self._states.can_connect(node.id, now_ms):
            return False
        self.reports.connecting(node, now_ms)
        step: ConnectionStep = "dns"
        try:
            address = self._states.connecting(node.id, node.host, now_ms)
            self.reports.resolved(node.id, address)
            step = "tcp"
            self._log.debug("Connecting to %s at %s", node, address)
            port = node.port if self._proxy is None else self._proxy.port
            self._selector.connect(str(node.id), address, port, host=node.host, host_port=node.port)
        except OSError as error:
            # Resolving may have blocked for so long that a backoff counted from before it is over already, and this
            # thread would do nothing but resolve a name that is not there.
            failed_ms = self._time.monotonic_ms()
            self.ended(node.id, failed_ms, DisconnectError(str(error.strerror or error)), step=step)
        else:
            self.next_check_ms = min(self.next_check_ms, now_ms + self._states.setup_timeout_ms(node.id))
        return True

    def established(self, node_id: int) -> None:
        """TCP, handshake and authentication are through: next come the versions, unless they are known."""
        if self._states.state(node_id) is ConnectionState.RENEWING_SESSION:
            self._log.debug("Authenticated again with %s", self.reports.describe(node_id))
            self._metrics.renewed(self._sessions.renewing_ms(node_id, self._time.monotonic_ms()))
            self._ready(node_id)
            return
        self._metrics.opened(node_id)
        self._states.checking_api_versions(node_id)
        self._negotiations.begin(node_id)

    def ask_versions(self, now_ms: int) -> None:
        """Ask the nodes whose connections take a request now for their versions."""
        for node_id, negotiation in list(self.to_ask.items()):
            if not (
                self._selector.is_channel_ready(str(node_id))
                and self._pipeline.in_flight.can_send_more(node_id)
            ):
                continue
            del self.to_ask[node_id]
            message = negotiation.request(self._updater.checked_cluster_id, broker_id(node_id))
            request = self._new_request(node_id, message, on_complete=self._versions_answered)
            self._pipeline.transmit(request, message, negotiation.version, now_ms, internal=True)

    def renew_sessions(self, now_ms: int) -> None:
        """Authenticate again over the connections whose sessions end soon, and that have nothing in flight."""
        self._sessions.renew(now_ms)
        self.next_check_ms = min(self.next_check_ms, self._sessions.next_check_ms)

    def check(self, now_ms: int) -> None:
        """Close the connections that take longer to set up than they may, and see to sessions that end soon."""
        for node_id in self._states.nodes_with_setup_timeout(now_ms):
            timeout_ms = self._states.setup_timeout_ms(node_id)
            setting = "socket.connection.setup.timeout.ms"
            error = DisconnectError(
                f"not set up in {timeout_ms} ms ({setting})", connection=ConnectionFailure(setting=setting)
            )
            self.close(node_id, now_ms, error)
        for node_id in self._sessions.late_nodes(now_ms):
            error = DisconnectError("it did not let the client authenticate again within request.timeout.ms")
            self.close(node_id, now_ms, error)
        self._sessions.end_soon(now_ms)
        next_ms = self._states.next_setup_deadline_ms()
        self.next_check_ms = min(
            WAIT_FOR_EVENT_MS if next_ms is None else next_ms, self._sessions.next_check_ms
        )

    def disconnect(self, node_id: int, now_ms: int) -> None:
        """Close the connection, if there is one, because somebody wishes so."""
        if self._states.is_connected_or_connecting(node_id):
            self._log.info("Disconnecting from %s on request", self.reports.describe(node_id))
            self.close(node_id, now_ms)

    def close(
        self, node_id: int, now_ms: int, error: KafkaError | None = None, *, timed_out: bool = False
    ) -> None:
        """Close the connection, with `error` because it can no longer be trusted, or is of no use."""
        step = self._selector.step(str(node_id))
        self._selector.close_channel(str(node_id))
        self.ended(node_id, now_ms, error, timed_out=timed_out, step=step)

    def ended(
        self,
        node_id: int,
        now_ms: int,
        error: KafkaError | None = None,
        *,
        timed_out: bool = False,
        step: ConnectionStep | None = None,
    ) -> None:
        """The channel is gone; without `error` that was wished for, with `timed_out` a request took too long.

        `step` is where it ended, if `error` does not say that.
        """
        state = self._states.state(node_id)
        by_peer = step is None
        if step is None:
            step = "request" if error is None or error.connection is None else error.connection.step
        if state is ConnectionState.CHECKING_API_VERSIONS:
            error = self._negotiations.interrupted(node_id, error)
            step = "api_versions" if step == "request" else step
        if error is not None:
            error = self.reports.ended(node_id, state, error, now_ms, step, by_peer=by_peer)
        refused = error if isinstance(error, AuthenticationError) else None
        if refused is not None:
            self._metrics.refused(again=state is ConnectionState.RENEWING_SESSION)
        self._metrics.closed(node_id)
        self._states.disconnected(node_id, now_ms, refused)
        self._negotiations.end(node_id)
        self._sessions.end(node_id)
        if error is not None:
            self._updater.handle_connection_failure(error)
        self._pipeline.connection_ended(node_id, now_ms, error, timed_out)

    def forget(self, node_id: int, now_ms: int) -> None:
        """Close the connection and drop everything that is known of the node."""
        self._selector.close_channel(str(node_id))
        self._metrics.closed(node_id)
        self._pipeline.forget(node_id, now_ms)
        self._states.forget(node_id)
        self._sessions.end(node_id)
        self._negotiations.forget(node_id)

    def _versions_answered(self, response: ClientResponse) -> None:
        if response.failed:
            return  # what ended the connection says the rest
        node_id = response.request.node_id
        error = self._negotiations.answered(node_id, response.message)
        if isinstance(error, RebootstrapRequiredError):
            error = RebootstrapRequiredError(
                f"Another broker is there than the one of cluster {self._updater.checked_cluster_id} "
                "(metadata.cluster.check.enable)"
            )
            self._updater.start_again(f"a connection to {self.reports.describe(node_id)} was misrouted")
        if error is not None:
            self.close(node_id, response.received_ms, error)
        elif node_id in self.versions:
            self._ready(node_id)
            self.reports.connected(node_id)

    def _ready(self, node_id: int) -> None:
        self._states.ready(node_id)
        self._sessions.begin(node_id, self._time.monotonic_ms())
        self.next_check_ms = min(self.next_check_ms, self._sessions.next_check_ms)
