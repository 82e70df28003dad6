"""The state of the connection to each broker, and the time to try again.

Waits between attempts grow exponentially with jitter (KIP-580), as does the time that setting up a connection
may take (KIP-601). Every address of a name is tried in turn (KIP-302); the name is resolved again once all
were tried or a working connection was lost, so that a broker that moved is found.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

import attrs

from kclient.errors import AuthenticationError, IllegalStateError
from kclient.utils.backoff import ExponentialBackoff

WAIT_FOR_EVENT_MS = 1 << 62
"""A delay that no clock reaches: something else will happen first."""


class ConnectionState(enum.Enum):
    """The state of the connection to a broker."""

    DISCONNECTED = enum.auto()
    CONNECTING = enum.auto()
    CHECKING_API_VERSIONS = enum.auto()
    READY = enum.auto()
    RENEWING_SESSION = enum.auto()
    AUTHENTICATION_FAILED = enum.auto()


_OVER = frozenset({ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED})
_PREPARING = frozenset(
    {ConnectionState.CONNECTING, ConnectionState.CHECKING_API_VERSIONS, ConnectionState.RENEWING_SESSION}
)
VALID_TRANSITIONS: dict[ConnectionState, frozenset[ConnectionState]] = {
    ConnectionState.DISCONNECTED: frozenset({ConnectionState.CONNECTING}),
    ConnectionState.AUTHENTICATION_FAILED: frozenset({ConnectionState.CONNECTING}),
    ConnectionState.CONNECTING: _OVER | {ConnectionState.CHECKING_API_VERSIONS},
    ConnectionState.CHECKING_API_VERSIONS: _OVER | {ConnectionState.READY},
    ConnectionState.READY: _OVER | {ConnectionState.RENEWING_SESSION},
    ConnectionState.RENEWING_SESSION: _OVER | {ConnectionState.READY},
}


@attrs.define(eq=False)
class _NodeConnection:
    host: str
    state: ConnectionState = ConnectionState.DISCONNECTED
    last_attempt_ms: int = 0
    failed_attempts: int = 0
    failed_setups: int = 0
    reconnect_delay_ms: int = 0
    setup_timeout_ms: int = 0
    throttled_until_ms: int = 0
    addresses: list[str] = attrs.field(factory=list)
    next_address: int = 0
    authentication_error: AuthenticationError | None = None

    def transition_to(self, state: ConnectionState) -> None:
        if state not in VALID_TRANSITIONS[self.state]:
            raise IllegalStateError(
                f"The connection to {self.host} cannot go from {self.state.name} to {state.name}"
            )
        self.state = state


_UNTRIED = _NodeConnection("", last_attempt_ms=-WAIT_FOR_EVENT_MS)
"""The connection of a node never heard of; never changed."""


class ConnectionStates:
    """The connection state of every node that was ever connected to. Used by one thread.

    `resolve` gives the IP addresses of a host name, best first; it raises OSError if there are none.
    """

    def __init__(
        self,
        *,
        reconnect_backoff_ms: int,
        reconnect_backoff_max_ms: int,
        setup_timeout_ms: int,
        setup_timeout_max_ms: int,
        resolve: Callable[[str], Sequence[str]],
    ) -> None:
        self._reconnect = ExponentialBackoff(reconnect_backoff_ms, reconnect_backoff_max_ms)
        self._setup = ExponentialBackoff(setup_timeout_ms, setup_timeout_max_ms)
        self._resolve = resolve
        self._nodes: dict[int, _NodeConnection] = {}
        self._connecting: set[int] = set()

    def state(self, node_id: int) -> ConnectionState:
        """The state; DISCONNECTED for a node never heard of."""
        return self._nodes.get(node_id, _UNTRIED).state

    def can_connect(self, node_id: int, now_ms: int) -> bool:
        """True if there is no connection and the wait since the last attempt is over."""
        node = self._nodes.get(node_id, _UNTRIED)
        return node.state in _OVER and now_ms - node.last_attempt_ms >= node.reconnect_delay_ms

    def connection_delay_ms(self, node_id: int, now_ms: int) -> int:
        """The time until something can change: the wait before the next attempt, or the rest of this one."""
        node = self._nodes.get(node_id, _UNTRIED)
        if node.state is ConnectionState.CONNECTING:
            return max(node.setup_timeout_ms - (now_ms - node.last_attempt_ms), 0)
        if node.state in _OVER:
            return max(node.reconnect_delay_ms - (now_ms - node.last_attempt_ms), 0)
        return WAIT_FOR_EVENT_MS

    def connecting(self, node_id: int, host: str, now_ms: int) -> str:
        """A connection attempt begins now; returns the IP address to use.

        Raises OSError if the name cannot be resolved; the attempt still counts, so call `disconnected` after
        it.
        """
        node = self._nodes.get(node_id)
        if node is None or node.host != host:
            # Another host under the same id is another machine: nothing of the past applies.
            node = self._nodes[node_id] = _NodeConnection(host)
            node.setup_timeout_ms = self._setup.backoff_ms(0)
        node.transition_to(ConnectionState.CONNECTING)
        node.last_attempt_ms = now_ms
        node.authentication_error = None
        self._connecting.add(node_id)
        if node.next_address >= len(node.addresses):
            node.addresses = []
            node.next_address = 0
            node.addresses = list(self._resolve(host))
        address = node.addresses[node.next_address]
        node.next_address += 1
        return address

    def checking_api_versions(self, node_id: int) -> None:
        """The connection is made; the broker is asked for its versions."""
        self._known(node_id).transition_to(ConnectionState.CHECKING_API_VERSIONS)
        self._connecting.discard(node_id)
        self._reset_setup(node_id)

    def ready(self, node_id: int) -> None:
        """Requests can be sent."""
        node = self._known(node_id)
        node.transition_to(ConnectionState.READY)
        node.failed_attempts = 0
        node.reconnect_delay_ms = 0

    def renewing_session(self, node_id: int) -> None:
        """The session ends soon (KIP-368): no requests until the client has authenticated again, and is `ready`."""
        self._known(node_id).transition_to(ConnectionState.RENEWING_SESSION)

    def disconnected(self, node_id: int, now_ms: int, error: AuthenticationError | None = None) -> None:
        """The connection is gone, or could not be made; with `error` because the peer refused who we are."""
        node = self._known(node_id)
        was = node.state
        if was not in _OVER:
            node.transition_to(
                ConnectionState.DISCONNECTED if error is None else ConnectionState.AUTHENTICATION_FAILED
            )
        node.authentication_error = error
        node.last_attempt_ms = now_ms
        node.throttled_until_ms = 0
        node.reconnect_delay_ms = self._reconnect.backoff_ms(node.failed_attempts)
        node.failed_attempts += 1
        if was is ConnectionState.CONNECTING:
            self._connecting.discard(node_id)
            node.failed_setups += 1
            node.setup_timeout_ms = self._setup.backoff_ms(node.failed_setups)
        else:
            self._reset_setup(node_id)
        if was is ConnectionState.READY or was is ConnectionState.RENEWING_SESSION:
            node.addresses = []

    def forget(self, node_id: int) -> None:
        """Drop everything known of a node."""
        self._nodes.pop(node_id, None)
        self._connecting.discard(node_id)

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """True if requests may be sent: connected, versions known, not throttled."""
        node = self._nodes.get(node_id, _UNTRIED)
        return node.state is ConnectionState.READY and node.throttled_until_ms <= now_ms

    def is_preparing(self, node_id: int) -> bool:
        """True while there will be a connection to send over soon: it is set up, or its session is renewed."""
        return self.state(node_id) in _PREPARING

    def is_connected_or_connecting(self, node_id: int) -> bool:
        """True while there is a connection, or one is being made."""
        return self.state(node_id) not in _OVER

    def overview(self) -> list[tuple[int, ConnectionState, int]]:
        """Id, state and time of the last attempt or end of every node's connection. For any thread."""
        return [(node_id, node.state, node.last_attempt_ms) for node_id, node in tuple(self._nodes.items())]

    def connected_or_connecting(self) -> list[int]:
        """Ids of the nodes with a connection, or with one that is being made."""
        return [node_id for node_id, node in self._nodes.items() if node.state not in _OVER]

    def is_disconnected(self, node_id: int) -> bool:
        """True if the last connection broke and no new one has begun; False for a node never connected to."""
        node = self._nodes.get(node_id)
        return node is not None and node.state in _OVER

    def authentication_error(self, node_id: int) -> AuthenticationError | None:
        """The reason why the peer refused the last connection; None if it did not."""
        return self._nodes.get(node_id, _UNTRIED).authentication_error

    def any_authentication_error(self) -> AuthenticationError | None:
        """Return the reason of a peer that refused the last connection to it, None if there is no such peer."""
        errors = (node.authentication_error for node in tuple(self._nodes.values()))  # also for other threads
        return next((error for error in errors if error is not None), None)

    def last_attempt_ms(self, node_id: int) -> int:
        """The time when the last attempt began, or its connection ended; very long ago if there was none."""
        return self._nodes.get(node_id, _UNTRIED).last_attempt_ms

    def throttle(self, node_id: int, until_ms: int) -> None:
        """The broker asked for silence (KIP-219); a shorter wish does not shorten a longer one."""
        node = self._nodes.get(node_id)
        if node is not None:
            node.throttled_until_ms = max(node.throttled_until_ms, until_ms)

    def throttle_delay_ms(self, node_id: int, now_ms: int) -> int:
        """The time for which the silence still lasts."""
        return max(self._nodes.get(node_id, _UNTRIED).throttled_until_ms - now_ms, 0)

    def poll_delay_ms(self, node_id: int, now_ms: int) -> int:
        """The throttling if there is any, else the connection delay."""
        return self.throttle_delay_ms(node_id, now_ms) or self.connection_delay_ms(node_id, now_ms)

    def nodes_with_setup_timeout(self, now_ms: int) -> list[int]:
        """Nodes whose connection takes longer to set up than allowed."""
        return [
            node_id
            for node_id in self._connecting
            if now_ms - self._nodes[node_id].last_attempt_ms >= self._nodes[node_id].setup_timeout_ms
        ]

    def setup_timeout_ms(self, node_id: int) -> int:
        """The time that setting up this node's connection may take now."""
        return self._known(node_id).setup_timeout_ms

    def next_setup_deadline_ms(self) -> int | None:
        """The time when the first connection attempt under way is given up, None if there is none."""
        return min(
            (self._nodes[n].last_attempt_ms + self._nodes[n].setup_timeout_ms for n in self._connecting),
            default=None,
        )

    def _reset_setup(self, node_id: int) -> None:
        node = self._known(node_id)
        node.failed_setups = 0
        node.setup_timeout_ms = self._setup.backoff_ms(0)

    def _known(self, node_id: int) -> _NodeConnection:
        node = self._nodes.get(node_id)
        if node is None:
            raise IllegalStateError(f"Nothing is known of a connection to node {node_id}")
        return node
