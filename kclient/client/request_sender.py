"""RequestSender: requests that wait until their broker can take them, each of which gets exactly one reply."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

import attrs

from kclient.client.kafka_client import KafkaClient
from kclient.client.requests import ClientResponse
from kclient.common.node import Node
from kclient.errors import DisconnectError, KafkaError, KafkaTimeoutError
from kclient.protocol.api_keys import ApiKeys

NEVER: Final = 2**31 - 1
"""A wait in ms that something else will end."""


@attrs.frozen
class Reply:
    """The outcome of a request: a `message`, or the `error` that stands for its absence."""

    message: Any
    error: KafkaError | None
    version: int
    now_ms: int


OnReply = Callable[[Reply], None]


@attrs.define(eq=False)
class _Unsent:
    node: Node | None
    api_key: ApiKeys
    build: Callable[[int], Any]
    on_reply: OnReply
    deadline_ms: int
    timeout_ms: int | None
    min_version: int | None
    max_version: int | None


class RequestSender:
    """Holds requests until their broker can take them. Belongs to the I/O thread.

    Every request gets exactly one reply: the answer, or an error when the connection fails, the broker cannot be
    reached within request.timeout.ms or the client is closed.
    """

    def __init__(self, client: KafkaClient, request_timeout_ms: int) -> None:
        self.client = client
        self._request_timeout_ms = request_timeout_ms
        self._unsent: deque[_Unsent] = deque()

    def send(
        self,
        node: Node | None,
        api_key: ApiKeys,
        build: Callable[[int], Any],
        on_reply: OnReply,
        now_ms: int,
        *,
        timeout_ms: int | None = None,
        min_version: int | None = None,
        max_version: int | None = None,
    ) -> None:
        """Send what `build(version)` makes to `node`, or to any broker for None, as soon as it can be taken.

        `timeout_ms` is how long the answer may take, if not request.timeout.ms.
        """
        deadline_ms = now_ms + self._request_timeout_ms
        self._unsent.append(
            _Unsent(node, api_key, build, on_reply, deadline_ms, timeout_ms, min_version, max_version)
        )

    def poll(self, timeout_ms: int, now_ms: int, *, return_after_send: bool = False) -> None:
        """Send what can be sent, then do I/O, waiting at most `timeout_ms` and no longer than anything here can.

        That requests were written ends the wait with `return_after_send`, and while others wait for that: else nobody
        has anything to do then.
        """
        wait_ms = min(timeout_ms, self._send_waiting(now_ms)) if self._unsent else timeout_ms
        return_after_send = return_after_send or bool(self._unsent)
        self.client.poll(max(wait_ms, 0), now_ms, return_after_send=return_after_send)

    def fail_all(self, error: KafkaError, now_ms: int) -> None:
        """Answer everything that was not sent with `error`."""
        while self._unsent:
            self._unsent.popleft().on_reply(Reply(None, error, -1, now_ms))

    def has_unsent(self) -> bool:
        """True if requests wait for their broker."""
        return bool(self._unsent)

    def _send_waiting(self, now_ms: int) -> int:
        wait_ms = NEVER
        for _ in range(len(self._unsent)):
            waiting = self._unsent.popleft()
            node = waiting.node
            node = self.client.least_loaded_node(now_ms) if node is None else self.client.beside_fetches(node)
            if node is not None and self.client.ready(node, now_ms):
                self._send_now(node, waiting, now_ms)
                continue
            error = self._failure(waiting, node, now_ms)
            if error is not None:
                waiting.on_reply(Reply(None, error, -1, now_ms))
                wait_ms = 0  # whoever got the reply may want to do something about it
                continue
            self._unsent.append(waiting)
            wait_ms = min(wait_ms, waiting.deadline_ms - now_ms)
            # Without a node to ask, metadata has to come back first: look again soon.
            wait_ms = min(
                wait_ms, 100 if node is None else self.client.connections.poll_delay_ms(node.id, now_ms)
            )
        return wait_ms

    def _failure(self, waiting: _Unsent, node: Node | None, now_ms: int) -> KafkaError | None:
        if node is None:
            # A broker that refuses the client is a reason, as in Java, unless there is another one to ask.
            return self.client.connections.any_authentication_error() or self._too_late(waiting, now_ms)
        if waiting.node is not None:
            error = self.client.connections.authentication_error(node.id)
            if error is not None:
                return error
            if self.client.connections.is_disconnected(node.id):
                cause = self.client.connection_failure(node.id)
                why = "" if cause is None else f": {cause}"
                return DisconnectError(
                    f"Broker {node} cannot be reached for a {waiting.api_key.name} request{why}"
                ).because_of(cause)
        return self._too_late(waiting, now_ms)

    def _too_late(self, waiting: _Unsent, now_ms: int) -> KafkaTimeoutError | None:
        if now_ms >= waiting.deadline_ms:
            cause = self.client.connection_failure(None if waiting.node is None else waiting.node.id)
            why = "" if cause is None else f"; the last failure was: {cause}"
            return KafkaTimeoutError(
                f"No {waiting.api_key.name} request could be sent within {self._request_timeout_ms} ms "
                f"(request.timeout.ms): {waiting.node or 'every broker'} is out of reach{why}"
            ).because_of(cause)
        return None

    def _send_now(self, node: Node, waiting: _Unsent, now_ms: int) -> None:
        def on_complete(response: ClientResponse) -> None:
            message = None if response.failed else response.message
            waiting.on_reply(Reply(message, response.failure(), response.version, response.received_ms))

        request = self.client.new_request(
            node.id,
            waiting.build,
            api_key=waiting.api_key,
            timeout_ms=waiting.timeout_ms,
            on_complete=on_complete,
            min_version=waiting.min_version,
            max_version=waiting.max_version,
        )
        self.client.send(request, now_ms)
