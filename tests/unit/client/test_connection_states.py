from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest

from kclient.client.connection_states import WAIT_FOR_EVENT_MS, ConnectionState, ConnectionStates
from kclient.errors import AuthenticationError, IllegalStateError


class Names:
    def __init__(self) -> None:
        self.addresses: list[str] = ["10.0.0.1"]
        self.lookups = 0

    def __call__(self, host: str) -> Sequence[str]:
        self.lookups += 1
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return self.addresses


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def states(names: Names) -> ConnectionStates:
    return ConnectionStates(
        reconnect_backoff_ms=100,
        reconnect_backoff_max_ms=1000,
        setup_timeout_ms=1000,
        setup_timeout_max_ms=8000,
        resolve=names,
    )


def make_ready(states: ConnectionStates, now_ms: int = 0) -> None:
    states.connecting(1, "host", now_ms)
    states.checking_api_versions(1)
    states.ready(1)


def test_a_node_never_heard_of_can_be_connected_to_at_once(states: ConnectionStates) -> None:
    assert states.can_connect(1, 0)
    assert states.connection_delay_ms(1, 0) == 0
    assert not states.is_disconnected(1)
    assert states.state(1) is ConnectionState.DISCONNECTED


def test_a_connection_becomes_ready_step_by_step(states: ConnectionStates) -> None:
    assert states.connecting(1, "host", 0) == "10.0.0.1"
    assert states.state(1) is ConnectionState.CONNECTING
    assert not states.can_connect(1, 0)
    states.checking_api_versions(1)
    assert states.is_preparing(1)
    assert states.state(1) is ConnectionState.CHECKING_API_VERSIONS
    assert not states.is_ready(1, 0)
    states.ready(1)
    assert states.is_ready(1, 0)
    assert states.connection_delay_ms(1, 0) == WAIT_FOR_EVENT_MS


def test_a_state_cannot_be_skipped(states: ConnectionStates) -> None:
    states.connecting(1, "host", 0)
    with pytest.raises(IllegalStateError, match="from CONNECTING to READY"):
        states.ready(1)


def test_the_wait_before_a_new_attempt_doubles_with_jitter_up_to_its_maximum(
    states: ConnectionStates,
) -> None:
    now = 0
    for expected in (100, 200, 400, 800, 1000, 1000):
        states.connecting(1, "host", now)
        states.disconnected(1, now)
        delay = states.connection_delay_ms(1, now)
        assert 0.8 * expected <= delay <= min(1.2 * expected, 1000)
        assert not states.can_connect(1, now + delay - 1)
        now += delay
        assert states.can_connect(1, now)


def test_a_working_connection_starts_the_waits_anew(states: ConnectionStates) -> None:
    for _ in range(5):
        states.connecting(1, "host", 0)
        states.disconnected(1, 0)
    make_ready(states)
    states.disconnected(1, 0)
    assert states.connection_delay_ms(1, 0) <= 120


def test_setting_up_may_take_twice_as_long_after_each_failure(states: ConnectionStates) -> None:
    for expected in (1000, 2000, 4000, 8000, 8000):
        states.connecting(1, "host", 0)
        timeout = states.setup_timeout_ms(1)
        assert 0.8 * expected <= timeout <= min(1.2 * expected, 8000)
        assert states.next_setup_deadline_ms() == timeout
        assert states.nodes_with_setup_timeout(timeout - 1) == []
        assert states.nodes_with_setup_timeout(timeout) == [1]
        states.disconnected(1, 0)
    states.connecting(1, "host", 0)
    states.checking_api_versions(1)
    assert states.setup_timeout_ms(1) <= 1200
    assert states.next_setup_deadline_ms() is None


def test_every_address_of_a_name_is_tried_before_the_name_is_resolved_again(
    states: ConnectionStates, names: Names
) -> None:
    names.addresses = ["10.0.0.1", "10.0.0.2"]
    tried = []
    for now in (0, 10_000, 20_000, 30_000):
        tried.append(states.connecting(1, "host", now))
        states.disconnected(1, now)
    assert tried == ["10.0.0.1", "10.0.0.2"] * 2
    assert names.lookups == 2


def test_a_lost_connection_resolves_the_name_again(states: ConnectionStates, names: Names) -> None:
    names.addresses = ["10.0.0.1", "10.0.0.2"]
    make_ready(states)
    states.disconnected(1, 0)
    names.addresses = ["10.0.0.9"]
    assert states.connecting(1, "host", 10_000) == "10.0.0.9"


def test_a_name_that_does_not_resolve_counts_as_a_failed_attempt(
    states: ConnectionStates, names: Names
) -> None:
    names.addresses = []
    with pytest.raises(OSError, match="unknown"):
        states.connecting(1, "host", 0)
    states.disconnected(1, 0)
    assert not states.can_connect(1, 0)
    names.addresses = ["10.0.0.5"]
    assert states.connecting(1, "host", 10_000) == "10.0.0.5"


def test_another_host_under_the_same_id_begins_without_the_past(
    states: ConnectionStates, names: Names
) -> None:
    for _ in range(5):
        states.connecting(1, "host", 0)
        states.disconnected(1, 0)
    states.connecting(1, "moved", 0)
    states.disconnected(1, 0)
    assert states.connection_delay_ms(1, 0) <= 120


def test_throttling_mutes_one_node_until_it_is_over(states: ConnectionStates) -> None:
    make_ready(states)
    states.throttle(1, 500)
    states.throttle(1, 300)
    assert not states.is_ready(1, 499)
    assert states.throttle_delay_ms(1, 100) == states.poll_delay_ms(1, 100) == 400
    assert states.is_ready(1, 500)
    assert states.poll_delay_ms(1, 500) == WAIT_FOR_EVENT_MS
    assert states.throttle_delay_ms(2, 0) == 0


def test_a_refused_authentication_is_remembered_until_the_next_attempt(states: ConnectionStates) -> None:
    states.connecting(1, "host", 0)
    error = AuthenticationError("no")
    states.disconnected(1, 0, error)
    assert states.authentication_error(1) is error
    assert states.state(1) is ConnectionState.AUTHENTICATION_FAILED
    states.connecting(1, "host", 10_000)
    assert states.authentication_error(1) is None
