"""Counting connections."""

from __future__ import annotations

import threading

import pytest

from kclient.broker.network.connection_quotas import (
    ConnectionLimits,
    ConnectionQuotas,
    by_address,
    parse_overrides,
)
from kclient.errors import ConfigError

BROKERS, OTHERS = 0, 1


def never() -> bool:
    return False


def always() -> bool:
    return True


class Waiting:
    """Somebody who waits for a place on a thread."""

    def __init__(self, quotas: ConnectionQuotas, listener: int = 0) -> None:
        self.outcomes: list[bool] = []
        self.stopped = False
        self._thread = threading.Thread(
            target=lambda: self.outcomes.append(quotas.take_place(listener, lambda: self.stopped))
        )
        self._thread.start()

    def waits(self) -> bool:
        self._thread.join(0.05)
        return self._thread.is_alive()

    def outcome(self) -> bool:
        self._thread.join(10)
        return self.outcomes[0]


def test_who_comes_when_all_places_are_taken_waits_for_one() -> None:
    quotas = ConnectionQuotas(ConnectionLimits(1))
    assert quotas.take_place(0, never)
    assert quotas.admit("a") is None
    waiting = Waiting(quotas)
    assert waiting.waits()
    quotas.release("a", 0)
    assert waiting.outcome()
    assert quotas.total == 1


def test_a_listener_has_places_of_its_own() -> None:
    quotas = ConnectionQuotas(ConnectionLimits(3, listeners=[1, 3]))
    assert quotas.take_place(0, never)
    waiting = Waiting(quotas, 0)
    assert waiting.waits()
    assert quotas.take_place(1, never)
    quotas.give_back(1)
    assert waiting.waits(), "it took a place of another listener"
    quotas.give_back(0)
    assert waiting.outcome()


def test_more_places_end_the_waiting() -> None:
    quotas = ConnectionQuotas(ConnectionLimits(0))
    waiting = Waiting(quotas)
    assert waiting.waits()
    quotas.set_limits(ConnectionLimits(1))
    assert waiting.outcome()


def test_who_is_stopped_takes_no_place() -> None:
    quotas = ConnectionQuotas(ConnectionLimits(0))
    waiting = Waiting(quotas)
    waiting.stopped = True
    quotas.wake()
    assert not waiting.outcome()
    assert not ConnectionQuotas(ConnectionLimits()).take_place(0, always)
    assert quotas.total == 0


def test_the_listener_of_brokers_takes_places_that_others_have_to_give_up() -> None:
    quotas = ConnectionQuotas(ConnectionLimits(1, protected=BROKERS))
    assert quotas.take_place(OTHERS, never)
    assert not quotas.exceeded(OTHERS)
    assert quotas.take_place(BROKERS, never)
    assert quotas.exceeded(OTHERS)
    assert not quotas.exceeded(BROKERS)
    quotas.give_back(OTHERS)
    assert not quotas.exceeded(OTHERS)


def test_an_address_may_have_so_many_and_no_more() -> None:
    quotas = ConnectionQuotas(ConnectionLimits(per_address=2))
    assert [quotas.admit("a") for _ in range(3)] == [None, None, "max.connections.per.ip"]
    assert quotas.admit("b") is None


def test_giving_back_what_was_not_taken_is_an_error() -> None:
    with pytest.raises(ValueError, match="No connection from a"):
        ConnectionQuotas(ConnectionLimits()).release("a", 0)


def test_some_addresses_have_a_number_of_their_own() -> None:
    overrides = by_address(parse_overrides(["10.0.0.1:2", "10.0.0.2:0", "[::1]:3"]))
    quotas = ConnectionQuotas(ConnectionLimits(per_address=1, overrides=overrides))
    assert [quotas.admit("10.0.0.1") for _ in range(3)] == [None, None, "max.connections.per.ip.overrides"]
    assert quotas.admit("10.0.0.2") == "max.connections.per.ip.overrides"
    assert [quotas.admit("::1") for _ in range(3)] == [None] * 3
    assert [quotas.admit("10.0.0.3") for _ in range(2)] == [None, "max.connections.per.ip"]


def test_a_host_stands_for_its_addresses() -> None:
    assert by_address({"localhost": 7})["127.0.0.1"] == 7
    with pytest.raises(ConfigError, match="cannot be resolved"):
        by_address({"no such host.invalid": 7})


@pytest.mark.parametrize("entry", ["host", ":7", "host:", "host:-1", "host:x", "host:9999999999"])
def test_an_override_that_is_none_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
        parse_overrides([entry])
