"""KafkaClient: what producer, consumer and admin need of a NetworkClient, and a MockClient gives as well."""

from __future__ import annotations

from typing import Any, Protocol

from kclient.client.api_versions import NodeApiVersions
from kclient.client.requests import ClientRequest, ClientResponse, MessageBuilder, ResponseCallback
from kclient.common.node import Node
from kclient.errors import AuthenticationError
from kclient.protocol.api_keys import ApiKeys


class KafkaClient(Protocol):
    """Sends requests to brokers and completes them. Belongs to one thread; only `wakeup` may be called from
    any.

    Times are milliseconds of the monotonic clock.
    """

    def ready(self, node: Node, now_ms: int) -> bool:
        """True if a request can be sent to `node` now; otherwise begins to connect if that is allowed yet."""

    def is_ready(self, node: Node, now_ms: int) -> bool:
        """True if a request can be sent to `node` now. Changes nothing."""

    def connection_delay_ms(self, node: Node, now_ms: int) -> int:
        """The time to wait before trying to connect or send to `node` again; very long if an event will tell."""

    def poll_delay_ms(self, node: Node, now_ms: int) -> int:
        """The time that a poll may wait before `node` deserves another look: connection delay or throttling."""

    def throttle_delay_ms(self, node: Node, now_ms: int) -> int:
        """The time for which the broker asked not to be sent anything (KIP-219); 0 if it did not."""

    def connection_failed(self, node: Node) -> bool:
        """True if the last connection to `node` broke and no new one has begun."""

    def authentication_error(self, node: Node) -> AuthenticationError | None:
        """The reason why the last connection to `node` was refused, None if it was not."""

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
        """A request for `send`.

        Give a message, or a function of the version together with `api_key`. `timeout_ms` is
        request.timeout.ms unless given. Raises TypeError for a function without `api_key`.
        """

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

    def has_in_flight(self) -> bool:
        """True if any request waits for an answer."""

    def has_ready_nodes(self, now_ms: int) -> bool:
        """True if any node is connected and not throttled."""

    def disconnect(self, node_id: int) -> None:
        """Close the connection; the next poll completes its requests as disconnected."""

    def close_connection(self, node_id: int) -> None:
        """Close the connection and forget its requests: their callbacks are not called."""

    def api_versions(self, node_id: int) -> NodeApiVersions | None:
        """The versions and features that the broker said it supports on its present connection, None before that."""

    def wakeup(self) -> None:
        """End a poll that waits, or make the next one return at once. From any thread."""

    def close(self) -> None:
        """Close every connection. A second call does nothing."""
