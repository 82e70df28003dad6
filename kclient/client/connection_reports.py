"""Reports on connections: once in the log for a cause that repeats, and as the cause of time-outs."""

from __future__ import annotations

from kclient.client.connection_states import ConnectionState
from kclient.common.node import Node
from kclient.errors import BootstrapError, KafkaError
from kclient.utils.log_context import LogContext, RepeatedWarning


class ConnectionReports:
    """Remembers nodes as they were when last connected to, and speaks of them. Used by one thread."""

    __slots__ = ("_log", "_nodes", "_warnings")

    def __init__(self, log_context: LogContext) -> None:
        self._log = log_context.logger(__name__)
        self._warnings = RepeatedWarning(self._log)
        self._nodes: dict[int, Node] = {}

    def connecting(self, node: Node) -> None:
        """An attempt begins."""
        self._nodes[node.id] = node

    def connected(self, node_id: int) -> None:
        """Requests can be sent; the next failure is news again."""
        node = self._nodes[node_id]
        self._warnings.clear(_cause(node))
        self._log.info("Connected to %s", node)

    def ended(self, node_id: int, state: ConnectionState, error: KafkaError, now_ms: int) -> KafkaError:
        """A connection in `state` ended with `error`; returns that error as the user should see it."""
        node = self._nodes[node_id]
        if state is ConnectionState.READY:
            self._log.info("Disconnected from %s: %s", node, error)
            return error
        failed = "authenticate again with" if state is ConnectionState.RENEWING_SESSION else "connect to"
        message = f"Cannot {failed} {node}: {error}"
        self._warnings.warn(_cause(node), f"{message}; it will be tried again", now_ms)
        if not error.retriable:
            return error
        step = "api_versions" if state is ConnectionState.CHECKING_API_VERSIONS else "tcp"
        return BootstrapError(message, host=node.host, port=node.port, step=step)

    def describe(self, node_id: int) -> str:
        """The node with its address, if that is known."""
        return str(self._nodes.get(node_id) or f"node {node_id}")


def _cause(node: Node) -> str:
    # By address: the same broker has one id before the first metadata answer and another one after it.
    return f"{node.host}:{node.port}"
