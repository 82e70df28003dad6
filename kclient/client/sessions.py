"""Sessions: the time that brokers grant a connection before its client has to authenticate again (KIP-368)."""

from __future__ import annotations

import random

import attrs

from kclient.client.connection_states import WAIT_FOR_EVENT_MS, ConnectionStates
from kclient.client.in_flight import InFlightRequests
from kclient.network.selector import Selector

_EARLIEST = 0.85  # of a session; a broker closes the connection at the first request after the session's end
_LATEST = 0.95
_SOONEST_MS = 1000  # Kafka refuses a connection that authenticates again within a second


@attrs.define(eq=False, repr=False)
class Sessions:
    """Renews the sessions of connections before they end. Belongs to the thread of its NetworkClient.

    A connection whose session ends soon takes no more requests. Once those in flight are answered, which is as much as
    a broker does at a time for a connection anyway, the client authenticates again over it.
    """

    _selector: Selector
    _states: ConnectionStates
    _in_flight: InFlightRequests
    _timeout_ms: int
    next_check_ms: int = attrs.field(default=WAIT_FOR_EVENT_MS, init=False)
    """Before this `end_soon` and `late_nodes` have nothing to do."""
    ending: set[int] = attrs.field(factory=set, init=False)
    """The nodes whose sessions end soon, and that may still have to answer."""
    _renew_at_ms: dict[int, int] = attrs.field(factory=dict, init=False)
    _deadline_ms: dict[int, int] = attrs.field(factory=dict, init=False)  # of those that authenticate again

    def begin(self, node_id: int, now_ms: int) -> None:
        """A connection is ready, for the first time or again."""
        self._deadline_ms.pop(node_id, None)
        lifetime_ms = self._selector.session_lifetime_ms(str(node_id))
        if lifetime_ms > 0:
            # At random, so that not all connections of all clients do it at once.
            renew_in_ms = int(lifetime_ms * random.uniform(_EARLIEST, _LATEST))
            self._renew_at_ms[node_id] = now_ms + max(renew_in_ms, _SOONEST_MS)
        self._set_next_check()

    def end_soon(self, now_ms: int) -> None:
        """Let the connections whose time has come take no more requests."""
        for node_id in [node_id for node_id, at_ms in self._renew_at_ms.items() if at_ms <= now_ms]:
            del self._renew_at_ms[node_id]
            self._states.renewing_session(node_id)
            self.ending.add(node_id)
        self._set_next_check()

    def renew(self, now_ms: int) -> None:
        """Authenticate again over the connections that have no more requests in flight."""
        for node_id in [node_id for node_id in self.ending if not self._in_flight.count(node_id)]:
            self.ending.remove(node_id)
            self._selector.authenticate_again(str(node_id))
            self._deadline_ms[node_id] = now_ms + self._timeout_ms
        self._set_next_check()

    def renewing_ms(self, node_id: int, now_ms: int) -> int:
        """Return for how long the node has been authenticating again."""
        return now_ms - self._deadline_ms.get(node_id, now_ms + self._timeout_ms) + self._timeout_ms

    def late_nodes(self, now_ms: int) -> list[int]:
        """Return the nodes that have not answered in time. Their connections must be closed."""
        return [node_id for node_id, deadline_ms in self._deadline_ms.items() if deadline_ms <= now_ms]

    def end(self, node_id: int) -> None:
        """The connection is gone."""
        self.ending.discard(node_id)
        self._renew_at_ms.pop(node_id, None)
        self._deadline_ms.pop(node_id, None)

    def _set_next_check(self) -> None:
        due_ms = [*self._renew_at_ms.values(), *self._deadline_ms.values()]
        self.next_check_ms = min(due_ms, default=WAIT_FOR_EVENT_MS)
