from __future__ import annotations

import pytest

from harness.network.client_parts import NODE, ClientParts
from kclient.client.connection_states import ConnectionState
from kclient.errors import (
    BootstrapError,
    DisconnectError,
    Errors,
    SaslAuthenticationError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.heartbeat import HeartbeatResponse

ASKED = ApiKeys.API_VERSIONS
NEWEST = ASKED.max_version
KNOWN = ApiVersionsResponse(api_keys=[ApiVersion(api_key=ApiKeys.HEARTBEAT, min_version=0, max_version=2)])


def establish(parts: ClientParts) -> None:
    """Connect to the node and ask it for its versions."""
    assert parts.connections.connect_if_allowed(NODE, 0)
    parts.connections.established(1)
    parts.connections.ask_versions(0)
    parts.selector.write()


def test_a_connection_is_made_once_and_ready_when_the_versions_are_known(parts: ClientParts) -> None:
    establish(parts)
    assert parts.selector.connected == [("1", "10.0.0.1", 9092)]
    assert not parts.connections.connect_if_allowed(NODE, 0)
    assert not parts.pipeline.can_send(1, 0)
    assert not parts.connections.to_ask
    assert parts.answer(KNOWN, number=1, api_key=ASKED, version=NEWEST) is None
    assert parts.pipeline.can_send(1, 10)
    assert parts.connections.versions[1].usable_version(ApiKeys.HEARTBEAT, None) == 2
    assert parts.failures == []


def test_a_node_is_asked_only_when_its_connection_takes_a_request(parts: ClientParts) -> None:
    parts.connections.connect_if_allowed(NODE, 0)
    parts.connections.established(1)
    parts.selector.closed.append("1")
    parts.connections.ask_versions(0)
    assert list(parts.connections.to_ask) == [1]
    assert not parts.selector.under_way


def test_a_node_that_has_older_versions_is_asked_again(parts: ClientParts) -> None:
    establish(parts)
    refusal = ApiVersionsResponse(
        error_code=35, api_keys=[ApiVersion(api_key=ASKED, min_version=0, max_version=1)]
    )
    assert parts.answer(refusal, number=1, api_key=ASKED, version=0) is None
    assert list(parts.connections.to_ask) == [1]
    parts.connections.ask_versions(10)
    parts.selector.write()
    assert parts.answer(KNOWN, number=2, api_key=ASKED, version=1) is None
    assert parts.states.state(1) is ConnectionState.READY


def test_a_node_with_no_version_in_common_is_closed_with_the_reason(parts: ClientParts) -> None:
    establish(parts)
    refusal = ApiVersionsResponse(error_code=35, api_keys=[])
    parts.answer(refusal, number=1, api_key=ASKED, version=0)
    parts.connections.ask_versions(10)
    parts.selector.write()
    assert parts.selector.closed == []
    parts.answer(refusal, number=2, api_key=ASKED, version=0)
    assert parts.selector.closed == ["1"]
    assert isinstance(parts.failures[0], UnsupportedVersionError)
    assert parts.connections.connect_if_allowed(NODE, 10_000)


def test_what_cannot_be_connected_to_counts_as_an_attempt(parts: ClientParts) -> None:
    parts.selector.refuses = OSError(101, "unreachable")
    assert parts.connections.connect_if_allowed(NODE, parts.time.monotonic_ms())
    assert isinstance(parts.failures[0], BootstrapError)
    assert parts.states.is_disconnected(1)
    assert not parts.connections.connect_if_allowed(NODE, parts.time.monotonic_ms())


def test_a_connection_that_is_not_set_up_in_time_is_given_up(parts: ClientParts) -> None:
    parts.connections.connect_if_allowed(NODE, 0)
    limit_ms = parts.connections.next_check_ms
    assert limit_ms == parts.states.setup_timeout_ms(1)
    parts.connections.check(limit_ms - 1)
    assert parts.selector.closed == []
    parts.connections.check(limit_ms)
    assert parts.selector.closed == ["1"]
    assert "socket.connection.setup.timeout.ms" in str(parts.failures[0])
    assert parts.connections.next_check_ms > 1 << 60


def ready(parts: ClientParts, lifetime_ms: int) -> int:
    """Make the connection ready in a session of `lifetime_ms`; returns the time when it is renewed."""
    parts.selector.lifetime_ms = lifetime_ms
    establish(parts)
    parts.answer(KNOWN, number=1, api_key=ASKED, version=NEWEST)
    parts.connections.check(parts.connections.next_check_ms)  # the time that setting it up could take is over
    return parts.connections.next_check_ms


def test_a_connection_whose_session_ends_soon_authenticates_again_and_keeps_its_versions(
    parts: ClientParts,
) -> None:
    began_ms = parts.time.monotonic_ms()
    renew_ms = ready(parts, 10_000)
    assert began_ms + 8_500 <= renew_ms <= began_ms + 9_500
    parts.connections.check(renew_ms - 1)
    assert not parts.connections.ending_sessions
    parts.connections.check(renew_ms)
    parts.connections.renew_sessions(renew_ms)
    assert parts.selector.again == ["1"]
    assert not parts.pipeline.can_send(1, renew_ms)
    assert not parts.connections.connect_if_allowed(NODE, renew_ms)
    parts.connections.established(1)
    assert parts.pipeline.can_send(1, renew_ms)
    assert not parts.connections.to_ask
    assert list(parts.connections.versions) == [1]
    assert parts.failures == []


def test_a_session_is_renewed_once_the_answers_in_flight_have_come(parts: ClientParts) -> None:
    renew_ms = ready(parts, 10_000)
    done = parts.transmit()
    parts.connections.check(renew_ms)
    parts.connections.renew_sessions(renew_ms)
    assert parts.selector.again == []
    assert parts.connections.ending_sessions == {1}
    parts.answer(HeartbeatResponse(), number=2, api_key=ApiKeys.HEARTBEAT)
    assert [response.failed for response in parts.pipeline.complete()] == [False]
    assert len(done) == 1
    parts.connections.renew_sessions(renew_ms)
    assert parts.selector.again == ["1"]


def test_a_broker_that_does_not_answer_the_renewal_is_left(parts: ClientParts) -> None:
    renew_ms = ready(parts, 10_000)
    parts.connections.check(renew_ms)
    parts.connections.renew_sessions(renew_ms)
    parts.connections.check(renew_ms + 29_999)
    assert parts.selector.closed == []
    parts.connections.check(renew_ms + 30_000)
    assert parts.selector.closed == ["1"]
    assert "authenticate again" in str(parts.failures[0])
    assert parts.connections.next_check_ms > 1 << 60


def test_a_refusal_in_the_renewal_ends_the_connection_with_the_reason(parts: ClientParts) -> None:
    renew_ms = ready(parts, 10_000)
    parts.connections.check(renew_ms)
    parts.connections.renew_sessions(renew_ms)
    parts.connections.ended(1, renew_ms, SaslAuthenticationError("the user is gone"))
    assert isinstance(parts.states.authentication_error(1), SaslAuthenticationError)
    parts.connections.check(renew_ms + 60_000)
    assert parts.selector.again == ["1"]


@pytest.mark.parametrize("lifetime_ms", [0, -1])
def test_a_connection_without_a_limited_session_is_never_renewed(
    parts: ClientParts, lifetime_ms: int
) -> None:
    ready(parts, lifetime_ms)
    parts.connections.check(1 << 50)
    assert not parts.connections.ending_sessions


def test_a_connection_that_ends_takes_its_session_with_it(parts: ClientParts) -> None:
    renew_ms = ready(parts, 10_000)
    parts.connections.check(renew_ms)
    parts.connections.ended(1, renew_ms, DisconnectError("gone"))
    parts.connections.renew_sessions(renew_ms)
    assert parts.selector.again == []


def test_the_end_of_a_connection_fails_what_is_in_flight_and_forgets_the_versions(parts: ClientParts) -> None:
    establish(parts)
    parts.answer(KNOWN, number=1, api_key=ASKED, version=NEWEST)
    done = parts.transmit()
    error = DisconnectError("reset")
    parts.connections.ended(1, 20, error)
    (failure,) = parts.failures
    assert failure.__cause__ is error
    assert 1 not in parts.connections.versions
    parts.pipeline.complete()
    assert done[0].cause is failure


def test_an_end_that_was_wished_for_is_no_failure(parts: ClientParts) -> None:
    parts.connections.disconnect(1, 0)
    assert parts.selector.closed == []
    establish(parts)
    parts.answer(KNOWN, number=1, api_key=ASKED, version=NEWEST)
    done = parts.transmit()
    parts.connections.disconnect(1, 20)
    assert parts.selector.closed == ["1"]
    assert parts.failures == []
    parts.pipeline.complete()
    assert done[0].disconnected


def test_forgetting_a_node_leaves_nothing_of_it(parts: ClientParts) -> None:
    establish(parts)
    parts.answer(KNOWN, number=1, api_key=ASKED, version=NEWEST)
    done = parts.transmit()
    parts.connections.forget(1, 20)
    assert not done
    assert not parts.states.is_disconnected(1)
    assert parts.pipeline.in_flight.count() == 0
    assert parts.connections.connect_if_allowed(NODE, 20)


def test_a_broker_that_is_another_one_than_was_meant_is_left_and_the_client_begins_again(
    parts: ClientParts,
) -> None:
    parts.updater.checked_cluster_id = "here"
    establish(parts)
    refusal = ApiVersionsResponse(error_code=Errors.REBOOTSTRAP_REQUIRED)
    parts.answer(refusal, number=1, api_key=ASKED, version=NEWEST)
    assert parts.selector.closed == ["1"]
    assert parts.states.state(1) is ConnectionState.DISCONNECTED
    assert len(parts.updater.start_again_for) == 1
    assert "host:9092 (id 1) was misrouted" in parts.updater.start_again_for[0]
    assert "metadata.cluster.check.enable" in str(parts.failures[0])
