"""KafkaClient: what producer, consumer and admin need of a NetworkClient, and a MockClient gives as well."""

from __future__ import annotations

from typing import Protocol

from kclient.client.api_versions import NodeApiVersions
from kclient.client.broker_connection import BrokerConnection
from kclient.client.requests import ClientRequest, ClientResponse, RequestFactory
from kclient.common.node import Node
from kclient.errors import AuthenticationError, KafkaError


class Connections(Protocol):
    """Knowledge about the connections to brokers, by node id."""

    def poll_delay_ms(self, node_id: int, now_ms: int) -> int:
        """The time that a poll may wait before the node deserves another look: connection delay or throttling."""

    def is_disconnected(self, node_id: int) -> bool:
        """True if the last connection broke and no new one has begun; False for a node never connected to."""

    def authentication_error(self, node_id: int) -> AuthenticationError | None:
        """The reason why the peer refused the last connection; None if it did not."""

    def any_authentication_error(self) -> AuthenticationError | None:
        """Return the reason of a peer that refused the last connection to it, None if there is no such peer."""


class KafkaClient(Protocol):
    """Sends requests to brokers and completes them.

    Belongs to one thread; only `wakeup` and `update_credentials` may be called from any.

    Times are milliseconds of the monotonic clock.
    """

    @property
    def connections(self) -> Connections:
        """The connections to brokers."""

    @property
    def new_request(self) -> RequestFactory:
        """The maker of requests for `send`."""

    def ready(self, node: Node, now_ms: int) -> bool:
        """True if a request can be sent to `node` now; otherwise begins to connect if that is allowed yet."""

    def is_ready(self, node: Node, now_ms: int) -> bool:
        """True if a request can be sent to `node` now. Changes nothing."""

    def send(self, request: ClientRequest, now_ms: int) -> None:
        """Queue `request`; raises IllegalStateError unless `ready` said that its node can take it."""

    def poll(self, timeout_ms: int, now_ms: int, *, return_after_send: bool = True) -> list[ClientResponse]:
        """Do I/O, waiting at most `timeout_ms`; returns what was completed, after running each callback.

        Without `return_after_send` requests that are written at once do not end the wait: for a caller that has
        nothing more to send, and wants no word of requests without an answer.

        An error raised by a callback is logged and does not keep the other callbacks from running.
        """

    def beside_fetches(self, node: Node) -> Node:
        """`node`; while a fetch to it is in flight the same broker by a second connection, which is made when needed.

        A broker answers a connection's requests in order, and keeps a fetch for fetch.max.wait.ms.
        """

    def least_loaded_node(self, now_ms: int) -> Node | None:
        """The best node for a request that any can answer, `beside_fetches`; None if none can be used or connected to
        now.
        """

    def in_flight_count(self, node_id: int | None = None) -> int:
        """The number of requests that wait for an answer, from one node or from all."""

    def disconnect(self, node_id: int) -> None:
        """Close the connection; the next poll completes its requests as disconnected."""

    def close_connection(self, node_id: int) -> None:
        """Close the connection and forget its requests: their callbacks are not called."""

    def api_versions(self, node_id: int) -> NodeApiVersions | None:
        """The versions that the broker said it supports on its present connection, None before that."""

    def finalized_level(self, feature: str) -> int:
        """Return the level of a feature that the brokers have agreed on (KIP-584); 0 if it is off or not known yet.

        From any thread.
        """

    def describe_connections(self) -> list[BrokerConnection]:
        """Return how every connection stands. From any thread."""

    def connection_failure(self, node_id: int | None = None) -> KafkaError | None:
        """The reason why a broker cannot be reached; None if it can, or was never tried.

        Without `node_id`, which any thread may ask for, it is that of the broker which failed last.
        """

    def update_credentials(self, username: str, password: str) -> None:
        """Use them for every connection that authenticates from now on, for the first time or again. From any thread.

        Raises IllegalStateError if the client does not authenticate with a password, TypeError for what is not str.
        """

    def wakeup(self) -> None:
        """End a poll that waits, or make the next one return at once. From any thread."""

    def close(self) -> None:
        """Close every connection. A second call does nothing."""
