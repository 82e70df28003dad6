"""Reports on connections: what failed, where and how far it came, once in the log and in every error that it causes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final

import attrs

from kclient.client.connection_states import ConnectionState
from kclient.common.node import Node
from kclient.errors import (
    BootstrapError,
    ConnectionFailure,
    ConnectionStep,
    IllegalSaslStateError,
    InvalidReceiveError,
    KafkaError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
)
from kclient.utils.log_context import LogContext, RepeatedWarning
from kclient.utils.text import counted, host_and_port

_NO_ANSWER: Final = "closed by the peer before any answer, as listeners with SASL do to clients without it"
_ONCE_READY = frozenset({ConnectionState.READY, ConnectionState.RENEWING_SESSION})


@attrs.define(eq=False)
class _Attempts:
    """The attempts to connect to a broker since there was last a connection to it."""

    began_ms: int
    count: int = 0
    over: bool = False  # there is a connection
    failure: KafkaError | None = None


class ConnectionReports:
    """Remembers nodes as they were when last connected to, and speaks of them. Used by one thread.

    `answered` tells whether any broker has answered a request yet; `protocol` is that of `security.protocol`, and
    `proxy` what leads to the brokers, for its text.
    """

    __slots__ = (
        "_addresses",
        "_answered",
        "_attempts",
        "_failed_last",
        "_log",
        "_nodes",
        "_protocol",
        "_proxy",
        "_warnings",
    )

    def __init__(
        self,
        log_context: LogContext,
        protocol: str,
        answered: Callable[[], bool],
        proxy: object | None = None,
    ) -> None:
        self._log = log_context.logger(__name__)
        self._warnings = RepeatedWarning(self._log)
        self._protocol = protocol
        self._answered = answered
        self._proxy = None if proxy is None else str(proxy)
        self._nodes: dict[int, Node] = {}
        self._addresses: dict[int, str] = {}
        self._attempts: dict[str, _Attempts] = {}
        self._failed_last: _Attempts | None = None

    def connecting(self, node: Node, now_ms: int) -> None:
        """An attempt begins."""
        self._nodes[node.id] = node
        self._addresses.pop(node.id, None)
        attempts = self._attempts.get(_cause(node))
        if attempts is None or self._succeeded(attempts):
            attempts = self._attempts[_cause(node)] = _Attempts(now_ms)
            self._warnings.clear(_cause(node))
        attempts.over = False
        attempts.count += 1

    def resolved(self, node_id: int, address: str) -> None:
        """The attempt goes to this IP address."""
        self._addresses[node_id] = address

    def connected(self, node_id: int) -> None:
        """Requests can be sent; once one was answered, the next failure is news again."""
        node = self._nodes[node_id]
        self._attempts[_cause(node)].over = True
        self._log.info("Connected to %s", node)

    def ended(
        self,
        node_id: int,
        state: ConnectionState,
        error: KafkaError,
        now_ms: int,
        step: ConnectionStep,
        *,
        by_peer: bool,
    ) -> KafkaError:
        """A connection in `state` ended at `step` with `error`; returns that error as the user should see it.

        It was ended `by_peer`, or by this client, because of `error`.
        """
        node = self._nodes[node_id]
        refused = by_peer and state is ConnectionState.READY and self._is_refusal(error)
        failure = self._failure(node, error, step, refused=refused)
        if refused or state not in _ONCE_READY:
            attempts = self._attempts[_cause(node)]
            elapsed_ms = max(now_ms - attempts.began_ms, 0)
            failure = attrs.evolve(failure, attempts=attempts.count, elapsed_ms=elapsed_ms)
        if state is ConnectionState.READY and not refused:
            told = _told(error, f"{self._place(failure)}: {error}", failure)
            self._log.info("Disconnected from %s: %s", node, error)
            return told
        cause = _NO_ANSWER if refused else str(error).rstrip(".")
        text = f"{self._place(failure)}: {step.replace('_', ' ')}: {cause}"
        if failure.attempts:
            text += f"; {counted(failure.attempts, 'attempt')} in {failure.elapsed_ms / 1000:.1f} s"
        if failure.setting is not None and failure.setting not in text:
            text += f"; see {failure.setting}"
        failed = "authenticate again with" if state is ConnectionState.RENEWING_SESSION else "connect to"
        self._warnings.warn(_cause(node), f"Cannot {failed} {text}; it will be tried again", now_ms)
        if not error.retriable or refused:
            told = _told(error, text, failure)
        else:
            told = BootstrapError(text, connection=failure).because_of(error)
        self._failed_last = self._attempts[_cause(node)]
        self._failed_last.failure = told
        return told

    def failure(self, node_id: int | None) -> KafkaError | None:
        """The reason why a node cannot be reached, None if it can; without `node_id` that of the one that failed last.

        The latter may be asked for by any thread.
        """
        if node_id is None:
            attempts = self._failed_last
        else:
            node = self._nodes.get(node_id)
            attempts = None if node is None else self._attempts[_cause(node)]
        return None if attempts is None or self._succeeded(attempts) else attempts.failure

    def node(self, node_id: int) -> Node | None:
        """Return the node as it was when last connected to. For any thread."""
        return self._nodes.get(node_id)

    def describe(self, node_id: int) -> str:
        """The node with its address, if that is known."""
        return str(self._nodes.get(node_id) or f"node {node_id}")

    def _succeeded(self, attempts: _Attempts) -> bool:
        # A connection that never brought an answer was none.
        return attempts.over and self._answered()

    def _is_refusal(self, error: KafkaError) -> bool:
        """Return True if a listener with SASL would have ended the connection so, too."""
        return error.retriable and not self._protocol.startswith("SASL") and not self._answered()

    def _failure(
        self, node: Node, error: KafkaError, step: ConnectionStep, *, refused: bool
    ) -> ConnectionFailure:
        known = error.connection or ConnectionFailure()
        setting = known.setting
        if setting is None:
            setting = (
                "security.protocol"
                if refused
                else setting_to_look_at(node, error, step, self._proxy is not None)
            )
        return ConnectionFailure(
            host=node.host,
            port=node.port,
            address=self._addresses.get(node.id),
            proxy=self._proxy,
            step=step,
            setting=setting,
        )

    def _place(self, failure: ConnectionFailure) -> str:
        broker = host_and_port(str(failure.host), failure.port)
        if failure.proxy is not None:
            at = "" if failure.address is None else f" at {failure.address}"
            return f"{broker} (through {failure.proxy}{at})"
        return broker if failure.address in {None, failure.host} else f"{broker} ({failure.address})"


def _told(error: KafkaError, text: str, failure: ConnectionFailure) -> KafkaError:
    """`error` with another text: whoever raised it may raise it again for another broker."""
    told = copy.copy(error)
    told.args = (text,)
    told.connection = failure
    return told.because_of(error)


def setting_to_look_at(node: Node, error: KafkaError, step: ConnectionStep, proxied: bool) -> str | None:
    """Return the setting that is most likely wrong where a connection to `node` failed, if there is one."""
    if step == "proxy" or (proxied and step in {"dns", "tcp"}):
        return "kclient.proxy.url"
    if step in {"dns", "tcp"}:
        return "bootstrap.servers" if node.id < 0 else "advertised.listeners"
    if isinstance(error, UnsupportedSaslMechanismError):
        return "sasl.mechanism"
    if isinstance(error, SaslAuthenticationError):
        return "sasl.jaas.config"
    if step == "request" and not isinstance(error, InvalidReceiveError):
        return None
    if error.retriable or isinstance(error, InvalidReceiveError | IllegalSaslStateError):
        return "security.protocol"
    return None


def _cause(node: Node) -> str:
    # By address: the same broker has one id before the first metadata answer and another one after it.
    return f"{node.host}:{node.port}"
