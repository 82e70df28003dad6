"""Ids of connections: the broker's own for the first one to it, and others for those beside it."""

from __future__ import annotations

from typing import Final

from kclient.common.node import Node

_COORDINATOR_BASE: Final = 2**31 - 1
_BESIDE_BASE: Final = -(2**31)
# Nobody numbers brokers so high, and nobody lists so many bootstrap servers.
_HIGHEST_BROKER: Final = 2**30


def for_coordinator(node: Node) -> Node:
    """Return the broker with the id of the connection that it is the coordinator over."""
    return Node(_COORDINATOR_BASE - node.id, node.host, node.port, node.rack)


def without_coordination(node: Node) -> Node:
    """Return the broker of a coordinator's connection with the id of the first one to it."""
    return Node(_COORDINATOR_BASE - node.id, node.host, node.port, node.rack)


def beside(node: Node) -> Node:
    """Return the broker with the id of a second connection for the same requests."""
    return Node(_BESIDE_BASE + node.id, node.host, node.port, node.rack)


def broker_id(connection_id: int) -> int | None:
    """Return the id that the broker itself has to have, None for a bootstrap server, which may be any."""
    if connection_id >= _HIGHEST_BROKER:
        return _COORDINATOR_BASE - connection_id
    if connection_id < -_HIGHEST_BROKER:
        connection_id -= _BESIDE_BASE
    return connection_id if connection_id >= 0 else None
