"""SessionNodes: the brokers that a share consumer has sessions with, one request at a time each."""

from __future__ import annotations

import attrs

from kclient.client.kafka_client import KafkaClient
from kclient.common.node import Node
from kclient.consumer.internals.share.session import ShareSession
from kclient.utils.backoff import ExponentialBackoff


@attrs.define(eq=False)
class SessionNodes:
    """Sessions by node id, and when a broker may be asked something. Belongs to the I/O thread."""

    _client: KafkaClient
    _backoff: ExponentialBackoff
    sessions: dict[int, ShareSession] = attrs.field(factory=dict, init=False)
    busy: set[int] = attrs.field(factory=set, init=False)
    """The brokers that have not answered yet."""
    _failures: dict[int, tuple[int, int]] = attrs.field(factory=dict, init=False)  # in a row, retry at

    def session(self, node_id: int) -> ShareSession:
        """The session with a broker; a new one if there is none."""
        return self.sessions.setdefault(node_id, ShareSession(node_id))

    def is_open(self, node_id: int) -> bool:
        """True if there is a session with the broker."""
        session = self.sessions.get(node_id)
        return session is not None and session.is_open

    def wait_ms(self, node: Node, now_ms: int) -> int | None:
        """The time until the broker can be asked something, 0 for now; None if it cannot be reached."""
        retry_ms = self._failures.get(node.id, (0, 0))[1]
        if now_ms < retry_ms:
            return retry_ms - now_ms
        if self._client.ready(node, now_ms):
            return 0
        if self._client.connections.is_disconnected(node.id):
            return None
        return max(self._client.connections.poll_delay_ms(node.id, now_ms), 1)

    def back_off(self, node_id: int, now_ms: int) -> int:
        """Leave the broker alone for longer with every failure in a row (KIP-580); returns for how long."""
        failures = self._failures.get(node_id, (0, 0))[0]
        wait_ms = self._backoff.backoff_ms(failures)
        self._failures[node_id] = failures + 1, now_ms + wait_ms
        return wait_ms

    def succeeded(self, node_id: int) -> None:
        """The broker did what it was asked for."""
        self._failures.pop(node_id, None)
