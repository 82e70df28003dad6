"""The choice of a broker for what any of them can answer, and of the connection to it."""

from __future__ import annotations

import random

from kclient.client.connection_ids import beside
from kclient.client.connection_states import ConnectionState, ConnectionStates
from kclient.client.metadata import Metadata
from kclient.client.request_pipeline import RequestPipeline
from kclient.common.node import Node
from kclient.protocol.api_keys import ApiKeys


class NodeChoice:
    """Chooses among the brokers that the metadata has. Belongs to the thread of its NetworkClient."""

    __slots__ = ("_metadata", "_pipeline", "_states")

    def __init__(self, metadata: Metadata, states: ConnectionStates, pipeline: RequestPipeline) -> None:
        self._metadata = metadata
        self._states = states
        self._pipeline = pipeline

    def beside_fetches(self, node: Node) -> Node:
        """`node`, or, while a fetch to it is in flight, the same broker by a second connection."""
        return beside(node) if self._pipeline.in_flight.holds(node.id, ApiKeys.FETCH) else node

    def least_loaded(self, now_ms: int) -> Node | None:
        """The best broker, `beside_fetches`; None if none can be used or connected to now.

        In this order: connected with the fewest requests in flight, being connected, free to connect and untried
        for longest. The search begins anywhere, so that many clients do not all choose the same broker.
        """
        nodes = [self.beside_fetches(node) for node in self._metadata.fetch().nodes]
        if not nodes:
            return None
        states, pipeline = self._states, self._pipeline
        start = random.randrange(len(nodes))
        best: Node | None = None
        preparing: Node | None = None
        connectable: Node | None = None
        fewest = 0
        for node in nodes[start:] + nodes[:start]:
            if pipeline.can_send(node.id, now_ms):
                count = pipeline.in_flight.count(node.id)
                if count == 0:
                    return node
                if best is None or count < fewest:
                    best, fewest = node, count
            elif states.is_preparing(node.id):
                preparing = node
            elif states.can_connect(node.id, now_ms):
                tried_ms = states.last_attempt_ms(node.id)
                if connectable is None or tried_ms < states.last_attempt_ms(connectable.id):
                    connectable = node
        return best or preparing or connectable

    def is_any_preparing(self) -> bool:
        """True if some connection is being set up."""
        return any(
            self._states.is_preparing(self.beside_fetches(node).id) for node in self._metadata.fetch().nodes
        )

    def is_any_connected(self) -> bool:
        """True if some connection is set up, whether or not it can take a request now."""
        return any(
            self._states.state(known.id) is ConnectionState.READY
            for node in self._metadata.fetch().nodes
            for known in (node, beside(node))
        )
