"""The quota of a client: eight levels of users and client ids, the first of which counts."""

from __future__ import annotations

import math

import pytest

from kclient.broker.quota.entity_quotas import NONE, EntityQuotas, Level

LEVELS: list[Level] = [
    ("u", "c"),
    ("u", None),
    ("u", NONE),
    (None, "c"),
    (None, None),
    (None, NONE),
    (NONE, "c"),
    (NONE, None),
]
OWNERS = [("u", "c"), ("u", "c"), ("u", ""), ("u", "c"), ("u", "c"), ("u", ""), ("", "c"), ("", "c")]


@pytest.mark.parametrize("first", range(8))
def test_the_first_level_that_is_set_counts(first: int) -> None:
    limits = {level: float(number) for number, level in enumerate(LEVELS) if number >= first}
    assert EntityQuotas(limits).find("u", "c") == (OWNERS[first], first)


@pytest.mark.parametrize("only", range(8))
def test_a_level_counts_alone(only: int) -> None:
    quotas = EntityQuotas({LEVELS[only]: 5.0})
    assert quotas.find("u", "c") == (OWNERS[only], 5.0)
    of_anybody = {level for level in LEVELS if "u" not in level and "c" not in level}
    assert (quotas.find("v", "d") is not None) == (LEVELS[only] in of_anybody)


def test_a_client_without_an_id_belongs_to_no_client_id() -> None:
    quotas = EntityQuotas({(NONE, None): 1.0, (None, None): 2.0, ("u", None): 3.0})
    assert quotas.find("u", "") is None
    assert EntityQuotas({**quotas.limits, (None, NONE): 4.0}).find("u", "") == (("u", ""), 4.0)


def test_only_its_own_kind_and_values_that_limit_are_taken_from_the_metadata() -> None:
    entities = {
        frozenset({("user", "a")}): {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0},
        frozenset({("user", None), ("client-id", "c")}): {"producer_byte_rate": 3.0},
        frozenset({("client-id", None)}): {"producer_byte_rate": math.nan},
        frozenset({("ip", "1.2.3.4")}): {"producer_byte_rate": 5.0},
    }
    quotas = EntityQuotas.of("producer_byte_rate", entities)
    assert quotas.limits == {("a", NONE): 1.0, (None, "c"): 3.0}
