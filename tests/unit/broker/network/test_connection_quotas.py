"""Counting connections."""

from __future__ import annotations

import pytest

from kclient.broker.network.connection_quotas import ConnectionQuotas


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
