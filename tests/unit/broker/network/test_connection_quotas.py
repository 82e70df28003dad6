"""Counting connections."""

from __future__ import annotations

import pytest

from kclient.broker.network.connection_quotas import ConnectionQuotas, by_address, parse_overrides
from kclient.errors import ConfigError


def test_places_are_taken_and_given_back() -> None:
    quotas = ConnectionQuotas(3, 2)
    assert [quotas.acquire("a") for _ in range(3)] == [None, None, "max.connections.per.ip"]
    assert [quotas.acquire("b") for _ in range(2)] == [None, "max.connections"]
    quotas.release("a")
    assert quotas.acquire("c") is None
    assert quotas.total == 3


def test_giving_back_what_was_not_taken_is_an_error() -> None:
    with pytest.raises(ValueError, match="No connection from a"):
        ConnectionQuotas(1, 1).release("a")


def test_some_addresses_have_a_number_of_their_own() -> None:
    quotas = ConnectionQuotas(
        100, 1, 100, by_address(parse_overrides(["10.0.0.1:2", "10.0.0.2:0", "[::1]:3"]))
    )
    assert [quotas.acquire("10.0.0.1") for _ in range(3)] == [None, None, "max.connections.per.ip.overrides"]
    assert quotas.acquire("10.0.0.2") == "max.connections.per.ip.overrides"
    assert [quotas.acquire("::1") for _ in range(3)] == [None] * 3
    assert [quotas.acquire("10.0.0.3") for _ in range(2)] == [None, "max.connections.per.ip"]


def test_a_host_stands_for_its_addresses() -> None:
    assert by_address({"localhost": 7})["127.0.0.1"] == 7
    with pytest.raises(ConfigError, match="cannot be resolved"):
        by_address({"no such host.invalid": 7})


@pytest.mark.parametrize("entry", ["host", ":7", "host:", "host:-1", "host:x", "host:9999999999"])
def test_an_override_that_is_none_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
        parse_overrides([entry])
