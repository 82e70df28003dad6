"""The choice of a broker for what any of them can answer, and of the connection to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

from kclient.client.connection_states import ConnectionStates
from kclient.client.in_flight import InFlightRequests
from kclient.common.node import Node

_BESIDE_ID_BASE: Final = -(2**31)


def beside(node: Node) -> Node:
    """The broker of `node` by a second connection."""
    return Node(_BESIDE_ID_BASE + node.id, node.host, node.port, node.rack)


def least_loaded(
    nodes: Sequence[Node],
    can_send: Callable[[int, int], bool],
    states: ConnectionStates,
    in_flight: InFlightRequests,
    now_ms: int,
) -> Node | None:
    """The best of `nodes`; None if none can be used or connected to now.

    In this order: connected with the fewest requests in flight, being connected, free to connect and untried
    for longest. The search begins anywhere, so that many clients do not all choose the same broker.
    """
    if not nodes:
        return None
    start = random.randrange(len(nodes))
    best: Node | None = None
    preparing: Node | None = None
    connectable: Node | None = None
    fewest = 0
    for i in range(len(nodes)):
        node = nodes[(start + i) % len(nodes)]
        if can_send(node.id, now_ms):
            count = in_flight.count(node.id)
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
