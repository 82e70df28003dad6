"""Keeps the metadata up to date through whichever broker has the least to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from kclient.client.connection_states import WAIT_FOR_EVENT_MS, ConnectionStates
from kclient.client.metadata import Metadata, MetadataRequestPlan
from kclient.client.node_choice import NodeChoice
from kclient.common.node import Node
from kclient.errors import AuthenticationError, KafkaError
from kclient.errors.codes import Errors
from kclient.protocol.messages.metadata import MetadataResponse
from kclient.utils.log_context import LogContext


class MetadataChannel(Protocol):
    """The part of a NetworkClient that the updater works with."""

    choice: NodeChoice
    connections: ConnectionStates

    def least_loaded_node(self, now_ms: int) -> Node | None:
        """The broker to ask."""

    def is_ready(self, node: Node, now_ms: int) -> bool:
        """True if it can be asked now."""

    def connect_if_allowed(self, node: Node, now_ms: int) -> bool:
        """Begin to connect if there is no connection and no backoff; returns whether it did."""

    def disconnect_all(self) -> None:
        """Close every connection."""

    def send_metadata_request(self, node: Node, plan: MetadataRequestPlan, now_ms: int) -> None:
        """Send the request; the answer comes back to the updater."""


@attrs.frozen
class RebootstrapPolicy:
    """metadata.recovery.strategy and metadata.recovery.rebootstrap.trigger.ms (KIP-899, KIP-1102).

    `addresses` gives the (host, port) of bootstrap.servers afresh; it may raise KafkaError. With `cluster_check`
    brokers are asked whether they are the ones that are meant (KIP-1242).
    """

    enabled: bool
    trigger_ms: int
    addresses: Callable[[], Sequence[tuple[str, int]]]
    cluster_check: bool = True


class MetadataUpdater:
    """Sends at most one metadata request at a time. Belongs to the thread of its NetworkClient."""

    def __init__(
        self,
        metadata: Metadata,
        *,
        request_timeout_ms: int,
        reconnect_backoff_ms: int,
        rebootstrap: RebootstrapPolicy,
        log_context: LogContext | None = None,
    ) -> None:
        self.metadata = metadata
        self._request_timeout_ms = request_timeout_ms
        self._reconnect_backoff_ms = reconnect_backoff_ms
        self._rebootstrap = rebootstrap
        self._log = (log_context or LogContext()).logger(__name__)
        self.awaits_turn = False
        """True if an update is due and every connection has all the requests that it may: the next goes to this."""
        self._in_progress: MetadataRequestPlan | None = None
        self._needed_since_ms: int | None = None
        self._start_again: str | None = None

    @property
    def checked_cluster_id(self) -> str | None:
        """The cluster that every broker has to be of; None where nobody asks, or nothing is known yet."""
        policy = self._rebootstrap
        return self.metadata.snapshot.cluster_id if policy.enabled and policy.cluster_check else None

    def maybe_update(self, client: MetadataChannel, now_ms: int) -> int:
        """Send a request or connect for one if an update is due; returns how long nothing more will be
        due.
        """
        self.awaits_turn = False
        if self._start_again is not None:
            reason, self._start_again = self._start_again, None
            client.disconnect_all()
            self._begin_again(now_ms, reason)
            return 0  # somebody may wait for what was in flight
        if self._in_progress is not None:
            return self._request_timeout_ms
        wait_ms = self.metadata.time_to_next_update_ms(now_ms)
        if wait_ms > 0:
            return wait_ms
        if self._needed_since_ms is None:
            self._needed_since_ms = now_ms
        elif now_ms - self._needed_since_ms > self._rebootstrap.trigger_ms:
            # Connections that are there do not lead to brokers that answer.
            self.start_again(f"no broker has answered for {self._rebootstrap.trigger_ms} ms")
            self._needed_since_ms = now_ms
            return 0
        node = client.least_loaded_node(now_ms)
        if node is None:
            # A broker that is busy, or asks for silence, is there, and will take the request in its turn (KIP-899).
            self.awaits_turn = client.choice.is_any_connected()
            if not self.awaits_turn and not self.metadata.is_bootstrapping:
                self._begin_again(now_ms, "no known broker is available")
            # Before the first of them may be tried again another turn would find nothing to do.
            waits_ms = (client.connections.poll_delay_ms(n.id, now_ms) for n in self.metadata.fetch().nodes)
            return max(self._reconnect_backoff_ms, min(waits_ms, default=0))
        if client.is_ready(node, now_ms):
            self._in_progress = self.metadata.plan_request()
            client.send_metadata_request(node, self._in_progress, now_ms)
            return self._request_timeout_ms
        # A connection that is being set up will do; opening one more per poll would end with one to every
        # broker.
        if client.choice.is_any_preparing() or client.connect_if_allowed(node, now_ms):
            return self._reconnect_backoff_ms
        return WAIT_FOR_EVENT_MS

    def handle_response(self, response: MetadataResponse, now_ms: int) -> None:
        """An answer came."""
        plan, self._in_progress = self._in_progress, None
        if response.error_code == Errors.REBOOTSTRAP_REQUIRED and self._rebootstrap.enabled:
            self.start_again("the broker asked for it")
            return
        error = Errors.for_code(response.error_code)
        if error is not None or plan is None:
            self.metadata.failed_update(now_ms, error)
            return
        if response.brokers:
            self._needed_since_ms = None
        else:
            self._log.warning("A metadata answer names no broker; the ones known are kept")
        self.metadata.update(response, now_ms, partial=plan.partial, request_version=plan.request_version)

    def handle_failure(self, now_ms: int, error: KafkaError | None) -> None:
        """The request in progress will not be answered."""
        self._in_progress = None
        self.metadata.failed_update(now_ms, error)

    def handle_connection_failure(self, error: KafkaError) -> None:
        """A connection broke or could not be made: brokers may have moved, so ask."""
        if isinstance(error, AuthenticationError):
            self.metadata.fatal_error(error)
        elif self.metadata.is_bootstrapping:
            # Later on another broker will answer, and what one of them says is no reason to fail anybody.
            self.metadata.record_error(error)
        self.metadata.request_update()

    def start_again(self, reason: str) -> None:
        """Close every connection with the next update, and begin with bootstrap.servers, if that is the policy."""
        if self._rebootstrap.enabled:
            self._start_again = reason

    def _begin_again(self, now_ms: int, reason: str) -> None:
        self._needed_since_ms = now_ms
        if not self._rebootstrap.enabled:
            return
        try:
            addresses = self._rebootstrap.addresses()
        except KafkaError as error:
            self._log.warning("Cannot start again from bootstrap.servers: %s", error)
            return
        self._log.info("Starting again from bootstrap.servers: %s", reason)
        self.metadata.rebootstrap(addresses)
