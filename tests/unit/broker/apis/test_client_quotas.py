"""Quotas of users, clients and addresses: set, told and taken away."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.alter_client_quotas import alter_client_quotas
from kclient.broker.apis.describe_client_quotas import describe_client_quotas
from kclient.errors import Errors
from kclient.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kclient.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

EXACT, DEFAULT, SPECIFIED = range(3)
Entity = Mapping[str, str | None]


def entry(entity: Entity, *changes: tuple[str, float | None]) -> AlterClientQuotasRequestEntryData:
    return AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes],
    )


def alter(
    handlers: Handlers, *entries: AlterClientQuotasRequestEntryData, validate_only: bool = False
) -> list[int]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    answer = handlers.ask(alter_client_quotas, request, 1)
    assert all((each.error_message is None) == (each.error_code == 0) for each in answer.entries)
    return [each.error_code for each in answer.entries]


def described(handlers: Handlers, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ],
        strict=strict,
    )
    answer = handlers.ask(describe_client_quotas, request, 1)
    if answer.entries is None:
        assert answer.error_message
        return answer.error_code
    return [
        ({part.entity_type: part.entity_name for part in each.entity}, {v.key: v.value for v in each.values})
        for each in answer.entries
    ]


def test_quotas_are_set_changed_told_and_taken_away(handlers: Handlers) -> None:
    user: Entity = {"user": "a"}
    assert alter(handlers, entry(user, ("producer_byte_rate", 1000.0), ("request_percentage", 12.5))) == [0]
    assert alter(handlers, entry(user, ("producer_byte_rate", 2000.0))) == [0]
    assert described(handlers) == [(user, {"producer_byte_rate": 2000.0, "request_percentage": 12.5})]
    assert alter(handlers, entry(user, ("producer_byte_rate", None), ("nothing", None))) == [0]
    assert described(handlers) == [(user, {"request_percentage": 12.5})]
    assert alter(handlers, entry(user, ("request_percentage", None))) == [0]
    assert described(handlers) == []


def test_what_is_only_to_be_checked_changes_nothing(handlers: Handlers) -> None:
    good, bad = entry({"user": "a"}, ("consumer_byte_rate", 1.0)), entry({"user": "b"}, ("no_quota", 1.0))
    assert alter(handlers, good, bad, validate_only=True) == [0, Errors.INVALID_REQUEST]
    assert described(handlers) == []


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ({"user": "a"}, "producer_byte_rate", 0.0),
        ({"user": "a"}, "producer_byte_rate", -1.0),
        ({"user": "a"}, "producer_byte_rate", 1.5),
        ({"user": "a"}, "producer_byte_rate", 1e19),
        ({"user": "a"}, "request_percentage", math.nan),
        ({"user": "a"}, "request_percentage", math.inf),
        ({"user": "a"}, "connection_creation_rate", 1.0),
        ({"user": "a"}, "no_quota", 1.0),
        ({"ip": "1.2.3.4"}, "producer_byte_rate", 1.0),
        ({"ip": "1.2.3.4"}, "connection_creation_rate", 1.5),
        ({"ip": "1.2.3.4"}, "connection_creation_rate", 2.0**31),
        ({"ip": "no.such.host.invalid"}, "connection_creation_rate", 1.0),
        ({"ip": "1.2.3.4", "user": "a"}, "connection_creation_rate", 1.0),
        ({"user": ""}, "producer_byte_rate", 1.0),
        ({"group": "g"}, "producer_byte_rate", 1.0),
        ({"": "g"}, "producer_byte_rate", 1.0),
        ({}, "producer_byte_rate", 1.0),
    ],
)
def test_what_kafka_refuses_is_refused(handlers: Handlers, entity: Entity, key: str, value: float) -> None:
    assert alter(handlers, entry(entity, (key, value))) == [Errors.INVALID_REQUEST]
    assert described(handlers) == []


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ({"user": "a"}, "producer_byte_rate", 1.0000001),
        ({"client-id": "c"}, "consumer_byte_rate", 2.0**63),
        ({"user": None, "client-id": None}, "controller_mutation_rate", 0.5),
        ({"ip": None}, "connection_creation_rate", 1.0),
        ({"ip": "::1"}, "connection_creation_rate", 1.0),
        ({"ip": "localhost"}, "connection_creation_rate", 2.0**31 - 1),
    ],
)
def test_what_kafka_takes_is_taken(handlers: Handlers, entity: Entity, key: str, value: float) -> None:
    assert alter(handlers, entry(entity, (key, value))) == [0]
    assert described(handlers) == [(entity, {key: value})]


def test_of_an_entity_all_is_changed_or_nothing(handlers: Handlers) -> None:
    mixed = entry({"user": "a"}, ("producer_byte_rate", 1.0), ("consumer_byte_rate", -1.0))
    assert alter(handlers, mixed, entry({"user": "b"}, ("producer_byte_rate", 1.0))) == [42, 0]
    assert described(handlers) == [({"user": "b"}, {"producer_byte_rate": 1.0})]


def test_of_an_entity_that_comes_twice_the_first_entry_counts_and_an_error_is_answered(
    handlers: Handlers,
) -> None:
    first = entry({"user": "a"}, ("producer_byte_rate", 1.0))
    second = entry({"user": "a"}, ("consumer_byte_rate", 1.0))
    assert alter(handlers, first, second) == [Errors.INVALID_REQUEST]
    assert described(handlers) == [({"user": "a"}, {"producer_byte_rate": 1.0})]


def test_a_quota_that_comes_twice_is_refused(handlers: Handlers) -> None:
    twice = entry({"user": "a"}, ("producer_byte_rate", 1.0), ("producer_byte_rate", 1.0))
    assert alter(handlers, twice) == [Errors.INVALID_REQUEST]
    assert described(handlers) == []


def test_filters_find_names_defaults_and_all_of_a_kind(handlers: Handlers) -> None:
    rate = ("producer_byte_rate", 1.0)
    entities: list[Entity] = [
        {"user": "a"},
        {"user": None},
        {"client-id": "c"},
        {"client-id": "c", "user": "a"},
    ]
    assert alter(handlers, *(entry(entity, rate) for entity in entities)) == [0] * 4

    def found(*components: tuple[str, int, str | None], strict: bool = False) -> list[Entity]:
        return [entity for entity, _ in described(handlers, *components, strict=strict)]

    plain, default, client, both = entities
    assert found() == entities
    assert found(strict=True) == []
    assert found(("user", SPECIFIED, None)) == [plain, default, both]
    assert found(("user", SPECIFIED, None), strict=True) == [plain, default]
    assert found(("user", EXACT, "a")) == [plain, both]
    assert found(("user", DEFAULT, None)) == [default]
    assert found(("user", EXACT, "a"), ("client-id", EXACT, "c"), strict=True) == [both]
    assert found(("client-id", EXACT, "c")) == [client, both]
    assert found(("ip", SPECIFIED, None)) == []


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("user", EXACT, None)], Errors.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], Errors.INVALID_REQUEST),
        ([("user", SPECIFIED, "a")], Errors.INVALID_REQUEST),
        ([("user", 3, None)], Errors.INVALID_REQUEST),
        ([("", SPECIFIED, None)], Errors.INVALID_REQUEST),
        ([("group", SPECIFIED, None)], Errors.UNSUPPORTED_VERSION),
        ([("user", SPECIFIED, None), ("user", EXACT, "a")], Errors.INVALID_REQUEST),
        ([("ip", SPECIFIED, None), ("user", EXACT, "a")], Errors.INVALID_REQUEST),
    ],
)
def test_filters_that_mean_nothing_are_refused(handlers: Handlers, components: Any, error: Errors) -> None:
    assert described(handlers, *components) == error
