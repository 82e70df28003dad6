"""Reports on connections: which line is logged, which error users get, and when a failure is news again."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kclient.client.connection_reports import ConnectionReports
from kclient.client.connection_states import ConnectionState
from kclient.common.node import Node
from kclient.errors import (
    AuthenticationError,
    BootstrapError,
    ConnectionFailure,
    ConnectionStep,
    DisconnectError,
    IllegalSaslStateError,
    InvalidReceiveError,
    KafkaError,
    SaslAuthenticationError,
    SslAuthenticationError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)
from kclient.utils.log_context import LogContext

CONNECTING, CHECKING, READY, RENEWING = (
    ConnectionState.CONNECTING,
    ConnectionState.CHECKING_API_VERSIONS,
    ConnectionState.READY,
    ConnectionState.RENEWING_SESSION,
)
REFUSED = DisconnectError("refused")


class Reported:
    """Reports of a client, and what brokers have answered so far."""

    def __init__(self, protocol: str = "PLAINTEXT", proxy: str | None = None, answered: bool = True) -> None:
        self.answered = answered
        self.reports = ConnectionReports(LogContext("[Test] "), protocol, lambda: self.answered, proxy)

    def connect(self, node: Node, now_ms: int = 0, address: str | None = "10.0.0.1") -> None:
        self.reports.connecting(node, now_ms)
        if address is not None:
            self.reports.resolved(node.id, address)

    def end(
        self,
        state: ConnectionState = CONNECTING,
        error: KafkaError = REFUSED,
        now_ms: int = 0,
        step: ConnectionStep = "tcp",
        by_peer: bool = True,
        node_id: int = 1,
    ) -> KafkaError:
        return self.reports.ended(node_id, state, error, now_ms, step, by_peer=by_peer)


@pytest.fixture
def made(caplog: pytest.LogCaptureFixture) -> Reported:
    caplog.set_level(logging.INFO)
    made = Reported()
    made.connect(Node(1, "host", 9092))
    return made


def connection(error: KafkaError) -> ConnectionFailure:
    assert error.connection is not None
    return error.connection


@pytest.mark.parametrize(
    ("state", "step"),
    [(CONNECTING, "dns"), (CONNECTING, "tcp"), (CONNECTING, "tls"), (CHECKING, "api_versions")],
)
def test_a_connection_that_never_was_ready_says_where_and_how_far_it_came(
    made: Reported, state: ConnectionState, step: ConnectionStep, caplog: pytest.LogCaptureFixture
) -> None:
    error = made.end(state, step=step)
    assert isinstance(error, BootstrapError)
    assert error.__cause__ is REFUSED
    found = connection(error)
    assert (found.host, found.port, found.address, found.step) == ("host", 9092, "10.0.0.1", step)
    assert str(error).startswith(
        f"host:9092 (10.0.0.1): {step.replace('_', ' ')}: refused; 1 attempt in 0.0 s; see "
    )
    assert caplog.messages[-1] == f"[Test] Cannot connect to {error}; it will be tried again"


def test_attempts_and_their_time_count_from_the_last_connection_on(made: Reported) -> None:
    node = Node(1, "host", 9092)
    made.end(now_ms=100)
    made.connect(Node(-1, "host", 9092), 1000)  # the same broker, by its address
    made.end(now_ms=1100, node_id=-1)
    made.connect(node, 4000)
    error = made.end(now_ms=4900)
    assert (connection(error).attempts, connection(error).elapsed_ms) == (3, 4900)
    assert "; 3 attempts in 4.9 s; see " in str(error)
    made.connect(node, 5000)
    made.reports.connected(1)
    made.end(READY, now_ms=9000, step="request")
    made.connect(node, 9100)
    assert (connection(made.end(now_ms=9200)).attempts, connection(made.end(now_ms=9200)).elapsed_ms) == (
        1,
        100,
    )


def test_what_was_connected_before_any_broker_answered_counts_on() -> None:
    made = Reported(answered=False)
    for now_ms in (0, 1000):
        made.connect(Node(-1, "host", 9092), now_ms)
        made.reports.connected(-1)
        error = made.end(READY, now_ms=now_ms + 10, step="request", node_id=-1)
    assert (connection(error).attempts, connection(error).elapsed_ms) == (2, 1010)


@pytest.mark.parametrize(
    ("node", "address", "proxy", "place"),
    [
        (Node(1, "host", 1), "10.0.0.1", None, "host:1 (10.0.0.1): "),
        (Node(1, "host", 1), None, None, "host:1: "),
        (Node(1, "10.0.0.1", 1), "10.0.0.1", None, "10.0.0.1:1: "),
        (Node(1, "::1", 1), "::1", None, "[::1]:1: "),
        (
            Node(1, "host", 1),
            "10.0.0.9",
            "http://proxy:3128",
            "host:1 (through http://proxy:3128 at 10.0.0.9): ",
        ),
        (Node(1, "host", 1), None, "http://proxy:3128", "host:1 (through http://proxy:3128): "),
    ],
)
def test_the_place_is_named_with_its_address_and_the_proxy(
    node: Node, address: str | None, proxy: str | None, place: str
) -> None:
    made = Reported(proxy=proxy)
    made.connect(node, address=address)
    error = made.end()
    assert str(error).startswith(place)
    assert (connection(error).address, connection(error).proxy) == (address, proxy)


@pytest.mark.parametrize(
    ("error", "step", "setting"),
    [
        (REFUSED, "dns", "bootstrap.servers"),
        (REFUSED, "tcp", "bootstrap.servers"),
        (REFUSED, "proxy", "kclient.proxy.url"),
        (REFUSED, "tls", "security.protocol"),
        (REFUSED, "sasl", "security.protocol"),
        (REFUSED, "api_versions", "security.protocol"),
        (UnsupportedVersionError("too old"), "api_versions", None),
        (InvalidReceiveError("TLS"), "api_versions", "security.protocol"),
        (IllegalSaslStateError("no"), "sasl", "security.protocol"),
        (SaslAuthenticationError("no"), "sasl", "sasl.jaas.config"),
        (UnsupportedSaslMechanismError("no"), "sasl", "sasl.mechanism"),
        (
            SslAuthenticationError(
                "no", connection=ConnectionFailure(step="tls", setting="ssl.cipher.suites")
            ),
            "tls",
            "ssl.cipher.suites",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_setting_to_look_at_is_that_of_the_step_and_its_error(
    error: KafkaError, step: ConnectionStep, setting: str | None
) -> None:
    made = Reported()
    made.connect(Node(-1, "host", 9092))
    told = made.end(error=error, step=step, node_id=-1)
    assert connection(told).setting == setting
    assert ("; see" in str(told)) is (setting is not None)


def test_names_that_brokers_advertise_are_not_those_of_the_bootstrap_servers() -> None:
    for proxy, setting in ((None, "advertised.listeners"), ("socks5://proxy:1080", "kclient.proxy.url")):
        made = Reported(proxy=proxy)
        made.connect(Node(1, "host", 9092))
        assert connection(made.end(step="dns")).setting == setting


def test_a_setting_that_the_cause_names_is_not_named_again(made: Reported) -> None:
    error = DisconnectError("late (a.b.ms)", connection=ConnectionFailure(setting="a.b.ms"))
    assert "; see" not in str(made.end(error=error, by_peer=False))


def test_the_end_of_a_ready_connection_is_no_warning(
    made: Reported, caplog: pytest.LogCaptureFixture
) -> None:
    error = made.end(READY, step="request")
    assert type(error) is DisconnectError
    assert str(error) == "host:9092 (10.0.0.1): refused"
    assert (connection(error).step, connection(error).attempts) == ("request", 0)
    assert [record.levelno for record in caplog.records] == [logging.INFO]
    assert caplog.messages[0].startswith("[Test] Disconnected from ")
    assert str(REFUSED) == "refused"  # whoever raised it may raise it again


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, True),
        ({"protocol": "SSL"}, True),
        ({"protocol": "SASL_SSL"}, False),
        ({"answered": True}, False),
        ({"by_peer": False}, False),
        ({"error": SaslAuthenticationError("no")}, False),
    ],
    ids=str,
)
def test_only_who_does_not_authenticate_and_never_had_an_answer_is_told_of_sasl(
    changes: dict[str, Any], told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ends = {key: changes[key] for key in ("by_peer", "error") if key in changes}
    made = Reported(**{"answered": False, **{key: changes[key] for key in changes.keys() - ends.keys()}})
    made.connect(Node(-1, "host", 9092))
    made.reports.connected(-1)
    error = made.end(READY, step="request", node_id=-1, **ends)
    assert ("as listeners with SASL do" in str(error)) is told
    assert (connection(error).setting == "security.protocol") is told
    assert ("Cannot connect to host:9092" in caplog.text) is told
    assert error.retriable is not isinstance(error, SaslAuthenticationError)


def test_a_session_that_could_not_be_renewed_is_told_as_that(
    made: Reported, caplog: pytest.LogCaptureFixture
) -> None:
    error = made.end(RENEWING, SaslAuthenticationError("the user is gone."), step="sasl")
    assert str(error) == "host:9092 (10.0.0.1): sasl: the user is gone; see sasl.jaas.config"
    assert "Cannot authenticate again with host:9092" in caplog.text


def test_what_trying_again_will_not_mend_is_not_hidden_in_another_error(
    made: Reported, caplog: pytest.LogCaptureFixture
) -> None:
    error = made.end(error=AuthenticationError("wrong password"), step="sasl")
    assert type(error) is AuthenticationError
    assert "host:9092 (10.0.0.1): sasl: wrong password; 1 attempt" in str(error)
    assert "wrong password" in caplog.text


def test_a_failure_that_repeats_is_logged_once_until_there_is_a_connection(
    made: Reported, caplog: pytest.LogCaptureFixture
) -> None:
    for now_ms in range(5):
        made.end(now_ms=now_ms)
    assert len(caplog.messages) == 1
    made.reports.connected(1)
    made.connect(Node(1, "host", 9092))
    made.end(now_ms=6)
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.INFO, logging.WARNING]


def test_one_broker_under_two_ids_is_one_cause(made: Reported, caplog: pytest.LogCaptureFixture) -> None:
    made.connect(Node(-1, "host", 9092))
    made.end(node_id=-1)
    made.end(now_ms=1)
    assert len(caplog.messages) == 1
    made.connect(Node(2, "host", 9093))
    made.end(now_ms=2, node_id=2)
    assert len(caplog.messages) == 2


def test_a_node_is_spoken_of_by_the_address_it_was_last_connected_to(made: Reported) -> None:
    made.connect(Node(1, "moved", 9099))
    assert made.reports.describe(1) == str(Node(1, "moved", 9099))
    assert connection(made.end()).host == "moved"
    assert made.reports.describe(7) == "node 7"
