"""Reports on connections: which line is logged, which error users get, and when a failure is news again."""

from __future__ import annotations

import logging

import pytest

from kclient.client.connection_reports import ConnectionReports
from kclient.client.connection_states import ConnectionState
from kclient.common.node import Node
from kclient.errors import AuthenticationError, BootstrapError, DisconnectError
from kclient.utils.log_context import LogContext

CONNECTING, CHECKING, READY = (
    ConnectionState.CONNECTING,
    ConnectionState.CHECKING_API_VERSIONS,
    ConnectionState.READY,
)
REFUSED = DisconnectError("refused")


@pytest.fixture
def reports(caplog: pytest.LogCaptureFixture) -> ConnectionReports:
    caplog.set_level(logging.INFO)
    made = ConnectionReports(LogContext("[Test] "))
    made.connecting(Node(1, "host", 9092))
    return made


@pytest.mark.parametrize(("state", "step"), [(CONNECTING, "tcp"), (CHECKING, "api_versions")])
def test_a_connection_that_never_was_ready_says_where_and_how_far_it_came(
    reports: ConnectionReports, state: ConnectionState, step: str
) -> None:
    error = reports.ended(1, state, REFUSED, 0)
    assert isinstance(error, BootstrapError)
    assert (error.host, error.port, error.step) == ("host", 9092, step)
    assert "Cannot connect to" in str(error)
    assert "refused" in str(error)


def test_the_end_of_a_ready_connection_is_no_warning_and_its_error_stays_as_it_is(
    reports: ConnectionReports, caplog: pytest.LogCaptureFixture
) -> None:
    assert reports.ended(1, READY, REFUSED, 0) is REFUSED
    assert [record.levelno for record in caplog.records] == [logging.INFO]
    assert caplog.messages[0].startswith("[Test] Disconnected from ")


def test_what_trying_again_will_not_mend_is_not_hidden_in_another_error(
    reports: ConnectionReports, caplog: pytest.LogCaptureFixture
) -> None:
    error = AuthenticationError("wrong password")
    assert reports.ended(1, CONNECTING, error, 0) is error
    assert "wrong password" in caplog.text


def test_a_failure_that_repeats_is_logged_once_until_there_is_a_connection(
    reports: ConnectionReports, caplog: pytest.LogCaptureFixture
) -> None:
    for now_ms in range(5):
        reports.ended(1, CONNECTING, REFUSED, now_ms)
    assert len(caplog.messages) == 1
    reports.connected(1)
    reports.ended(1, CONNECTING, REFUSED, 6)
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.INFO, logging.WARNING]


def test_one_broker_under_two_ids_is_one_cause(
    reports: ConnectionReports, caplog: pytest.LogCaptureFixture
) -> None:
    reports.connecting(Node(-1, "host", 9092))
    reports.ended(-1, CONNECTING, REFUSED, 0)
    reports.ended(1, CONNECTING, REFUSED, 1)
    assert len(caplog.messages) == 1
    reports.connecting(Node(2, "host", 9093))
    reports.ended(2, CONNECTING, REFUSED, 2)
    assert len(caplog.messages) == 2


def test_a_node_is_spoken_of_by_the_address_it_was_last_connected_to(reports: ConnectionReports) -> None:
    reports.connecting(Node(1, "moved", 9099))
    assert reports.describe(1) == str(Node(1, "moved", 9099))
    error = reports.ended(1, CONNECTING, REFUSED, 0)
    assert isinstance(error, BootstrapError)
    assert error.host == "moved"
    assert reports.describe(7) == "node 7"
