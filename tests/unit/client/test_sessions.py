"""Times at which sessions are renewed."""

from __future__ import annotations

import pytest

from harness.network.client_parts import ClientParts
from kclient.client.connection_states import WAIT_FOR_EVENT_MS, ConnectionState
from kclient.client.sessions import Sessions

TIMEOUT_MS = 30_000


def sessions_of(parts: ClientParts, *lifetimes_ms: int) -> Sessions:
    """Return the sessions of nodes 1, 2, ..., which are ready since 0 and were granted these times."""
    sessions = Sessions(parts.selector, parts.states, parts.pipeline.in_flight, TIMEOUT_MS)
    for node_id, lifetime_ms in enumerate(lifetimes_ms, 1):
        parts.make_ready(node_id)
        parts.selector.lifetime_ms = lifetime_ms
        sessions.begin(node_id, 0)
    return sessions


def test_a_session_is_renewed_at_random_between_85_and_95_percent_of_its_time(parts: ClientParts) -> None:
    due = {sessions_of(ClientParts(), 100_000).next_check_ms for _ in range(50)}
    assert len(due) > 10
    assert all(85_000 <= each <= 95_000 for each in due)


def test_a_short_session_is_renewed_no_sooner_than_kafka_takes_it(parts: ClientParts) -> None:
    assert sessions_of(parts, 500).next_check_ms == 1000


def test_only_connections_whose_time_has_come_take_no_more_requests(parts: ClientParts) -> None:
    sessions = sessions_of(parts, 10_000, 100_000, 0)
    sessions.end_soon(sessions.next_check_ms - 1)
    assert sessions.ending == set()
    sessions.end_soon(10_000)
    assert sessions.ending == {1}
    assert parts.states.state(1) is ConnectionState.RENEWING_SESSION
    assert parts.states.state(2) is parts.states.state(3) is ConnectionState.READY
    assert 85_000 <= sessions.next_check_ms <= 95_000


def test_a_renewal_that_is_not_answered_is_late_after_the_timeout(parts: ClientParts) -> None:
    sessions = sessions_of(parts, 10_000)
    sessions.end_soon(10_000)
    sessions.renew(11_000)
    assert parts.selector.again == ["1"]
    assert sessions.ending == set()
    assert sessions.next_check_ms == 11_000 + TIMEOUT_MS
    assert sessions.late_nodes(11_000 + TIMEOUT_MS - 1) == []
    assert sessions.late_nodes(11_000 + TIMEOUT_MS) == [1]


def test_a_renewed_session_counts_from_its_renewal(parts: ClientParts) -> None:
    sessions = sessions_of(parts, 10_000)
    sessions.end_soon(10_000)
    sessions.renew(10_000)
    parts.states.ready(1)
    sessions.begin(1, 12_000)
    assert 20_500 <= sessions.next_check_ms <= 21_500
    assert sessions.late_nodes(10**9) == []


@pytest.mark.parametrize("step", ["ready", "ending", "renewing"])
def test_a_connection_that_is_gone_is_not_seen_to_any_more(parts: ClientParts, step: str) -> None:
    sessions = sessions_of(parts, 10_000)
    if step != "ready":
        sessions.end_soon(10_000)
    if step == "renewing":
        sessions.renew(10_000)
    sessions.end(1)
    sessions.end_soon(100_000)
    sessions.renew(100_000)
    assert sessions.late_nodes(10**9) == []
    assert sessions.next_check_ms == WAIT_FOR_EVENT_MS
    assert parts.selector.again == (["1"] if step == "renewing" else [])
