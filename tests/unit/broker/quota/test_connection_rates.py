"""Rates of new connections (KIP-612), on a clock set by hand."""

from __future__ import annotations

import logging

import pytest

from harness.mock_time import MockTime
from kclient.broker.config import BrokerConfig
from kclient.broker.quota.connection_rates import ConnectionRates
from kclient.utils.log_context import LogContext

LISTENERS = "ONE://127.0.0.1:0,TWO://127.0.0.1:0"


def rates(time: MockTime, **settings: object) -> ConnectionRates:
    given = {
        "log.dirs": "/nowhere",
        "listeners": LISTENERS,
        "listener.security.protocol.map": "ONE:PLAINTEXT,TWO:PLAINTEXT",
        "quota.window.num": 2,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return ConnectionRates.of(BrokerConfig.parse(given), time, LogContext())


def limit(address: str | None, value: float) -> dict[frozenset[tuple[str, str | None]], dict[str, float]]:
    return {frozenset({("ip", address)}): {"connection_creation_rate": value}}


def test_without_limits_everybody_is_let_in() -> None:
    made = rates(MockTime())
    assert not any(made.record(0) or made.refuse(0, "1.2.3.4") for _ in range(10_000))


def test_a_listener_waits_when_the_broker_has_too_many() -> None:
    time = MockTime()
    made = rates(time, max_connection_creation_rate=5)
    assert [made.record(number % 2) for number in range(6)] == [0, 0, 0, 0, 0, 200]
    time.advance(2200)
    assert made.record(0) == 0


def test_a_listener_may_have_a_limit_of_its_own() -> None:
    made = rates(MockTime(), **{"listener.name.two.max.connection.creation.rate": 2})
    assert [made.record(1) for _ in range(3)] == [0, 0, 500]
    assert not any(made.record(0) for _ in range(100))


def test_nobody_waits_for_longer_than_a_window() -> None:
    made = rates(MockTime(), max_connection_creation_rate=1)
    assert max(made.record(0) for _ in range(100)) == 1000
    assert rates(MockTime(), max_connection_creation_rate=0).record(0) == 1000


def test_an_address_has_its_quota_or_the_default_and_what_was_refused_counts_as_none() -> None:
    time = MockTime()
    made = rates(time)
    made.update({**limit("10.0.0.1", 3), **limit(None, 1)})
    assert [made.refuse(0, "10.0.0.1") for _ in range(5)] == [0, 0, 0, 333, 333]
    assert [made.refuse(0, "10.0.0.2") for _ in range(2)] == [0, 1000]
    (first, second) = made.usage()
    assert (first.address, first.limit, first.used) == ("10.0.0.1", 3, 3)
    assert (second.address, second.limit, second.used) == ("10.0.0.2", 1, 1)
    time.advance(2000)
    assert made.refuse(0, "10.0.0.2") == 0
    made.update({})
    assert not any(made.refuse(0, "10.0.0.2") for _ in range(100))
    assert made.usage() == []


def test_a_refused_connection_does_not_count_for_the_broker() -> None:
    made = rates(MockTime(), max_connection_creation_rate=2)
    made.update(limit(None, 1))
    assert (made.record(0), made.refuse(0, "10.0.0.1")) == (0, 0)
    for _ in range(5):
        assert made.record(0) == 0
        assert made.refuse(0, "10.0.0.1") > 0


@pytest.mark.parametrize("seen", ["10.0.0.1", "::ffff:10.0.0.1"])
def test_an_address_is_known_in_every_form(seen: str) -> None:
    made = rates(MockTime())
    made.update(limit("::ffff:10.0.0.1", 1))
    assert made.refuse(0, seen) == 0
    assert made.refuse(0, seen) > 0


def test_the_quota_of_a_host_is_that_of_its_address() -> None:
    made = rates(MockTime())
    made.update(limit("localhost", 1))
    assert [bool(made.refuse(0, "127.0.0.1")) for _ in range(2)] == [False, True]


def test_a_host_whose_address_is_not_found_is_said_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    made = rates(MockTime())
    with caplog.at_level(logging.WARNING):
        made.update(limit("no.such.host.invalid", 1))
    assert "no.such.host.invalid" in caplog.text
    assert made.refuse(0, "10.0.0.1") == 0
