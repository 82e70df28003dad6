"""Client quotas: as values, and as a broker sees them."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.admin import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    KafkaAdminClient,
    QuotaMatchType,
)
from kclient.errors import (
    AdminError,
    ClusterAuthorizationError,
    Errors,
    InvalidRequestError,
    UnknownServerError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import alter_client_quotas as alter
from kclient.protocol.messages import describe_client_quotas as describe

ALICE = ClientQuotaEntity({ClientQuotaEntity.USER: "alice", ClientQuotaEntity.CLIENT_ID: None})
BOB = ClientQuotaEntity({"user": "bob"})


def test_entities_are_the_same_in_any_order_and_can_be_keys_and_pickled() -> None:
    other = ClientQuotaEntity({"client-id": None, "user": "alice"})
    assert other == ALICE
    assert {ALICE: 1}[other] == 1
    assert ClientQuotaEntity({"user": "alice"}) != ALICE
    assert pickle.loads(pickle.dumps(ALICE)) == ALICE
    assert str(ALICE) == "default client-id, user alice"


def test_an_entity_is_not_changed_by_who_made_it() -> None:
    names: dict[str, str | None] = {"user": "alice"}
    made = ClientQuotaEntity(names)
    names["user"] = "eve"
    assert made == ClientQuotaEntity({"user": "alice"})


def test_quotas_are_found_by_the_parts_of_a_filter(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    entry = describe.EntryData(
        entity=[
            describe.EntityData(entity_type="user", entity_name="alice"),
            describe.EntityData(entity_type="client-id", entity_name=None),
        ],
        values=[describe.ValueData(key="producer_byte_rate", value=1024.5)],
    )
    answer = describe.DescribeClientQuotasResponse(error_message=None, entries=[entry])
    nothing = describe.DescribeClientQuotasResponse(error_message=None, entries=None)
    scripted.answer(ApiKeys.DESCRIBE_CLIENT_QUOTAS, answer, nothing, nothing)
    one = ClientQuotaFilterComponent
    wanted = ClientQuotaFilter.contains_only(
        [one.of_entity("user", "alice"), one.of_default_entity("client-id"), one.of_entity_type("ip")]
    )
    assert client.describe_client_quotas(wanted) == {ALICE: {"producer_byte_rate": 1024.5}}
    assert client.describe_client_quotas(ClientQuotaFilter.all()) == {}
    assert client.describe_client_quotas() == {}
    first, second, third = scripted.received(ApiKeys.DESCRIBE_CLIENT_QUOTAS)
    assert second == third
    assert [(c.entity_type, c.match_type, c.match) for c in first.components] == [
        ("user", 0, "alice"),
        ("client-id", 1, None),
        ("ip", 2, None),
    ]
    assert first.strict
    assert (second.components, second.strict) == ([], False)
    assert not ClientQuotaFilter.contains(wanted.components).strict


def test_a_listing_that_is_refused_raises(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    code = Errors.CLUSTER_AUTHORIZATION_FAILED
    answer = describe.DescribeClientQuotasResponse(error_code=code, error_message="no", entries=None)
    scripted.answer(ApiKeys.DESCRIBE_CLIENT_QUOTAS, answer)
    with pytest.raises(ClusterAuthorizationError, match="no"):
        client.describe_client_quotas(ClientQuotaFilter.all())


def altered(*entries: tuple[dict[str, str | None], int]) -> alter.AlterClientQuotasResponse:
    return alter.AlterClientQuotasResponse(
        entries=[
            alter.AlterClientQuotasResponseEntryData(
                error_code=code,
                error_message="because",
                entity=[
                    alter.AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=name)
                    for kind, name in names.items()
                ],
            )
            for names, code in entries
        ]
    )


def test_values_are_set_and_taken_away(scripted: ScriptedBroker, client: KafkaAdminClient) -> None:
    scripted.answer(ApiKeys.ALTER_CLIENT_QUOTAS, altered(({"client-id": None, "user": "alice"}, 0)))
    change = ClientQuotaAlteration(ALICE, {"producer_byte_rate": 1, "consumer_byte_rate": None})
    assert client.alter_client_quotas([change], validate_only=True) == {ALICE: None}
    (request,) = scripted.received(ApiKeys.ALTER_CLIENT_QUOTAS)
    assert request.validate_only
    (entry,) = request.entries
    assert [(part.entity_type, part.entity_name) for part in entry.entity] == [
        ("user", "alice"),
        ("client-id", None),
    ]
    assert [(op.key, op.value, op.remove) for op in entry.ops] == [
        ("producer_byte_rate", 1.0, False),
        ("consumer_byte_rate", 0.0, True),
    ]


def test_entities_fail_by_themselves_also_those_that_the_answer_leaves_out(
    scripted: ScriptedBroker, client: KafkaAdminClient
) -> None:
    scripted.answer(ApiKeys.ALTER_CLIENT_QUOTAS, altered(({"user": "bob"}, Errors.INVALID_REQUEST)))
    with pytest.raises(AdminError, match="user bob: because") as raised:
        client.alter_client_quotas([ClientQuotaAlteration(each, {"x": 1}) for each in (ALICE, BOB)])
    assert isinstance(raised.value.errors[BOB], InvalidRequestError)
    assert isinstance(raised.value.errors[ALICE], UnknownServerError)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: ClientQuotaEntity({}), ValueError, "entries must not be empty"),
        (lambda: ClientQuotaEntity("user"), TypeError, "entries must map types to names"),
        (lambda: ClientQuotaEntity({"user": 5}), TypeError, "entries must map str to str or None"),
        (lambda: ClientQuotaEntity({None: "a"}), TypeError, "entries must map str to str or None"),
        (lambda: ClientQuotaAlteration("alice", {}), TypeError, "entity must be a ClientQuotaEntity"),
        (lambda: ClientQuotaAlteration(BOB, ["x"]), TypeError, "ops must map names to numbers"),
        (lambda: ClientQuotaAlteration(BOB, {5: 1}), TypeError, "ops must have names of quotas"),
        (lambda: ClientQuotaAlteration(BOB, {"x": "1"}), TypeError, "ops: x must be a number or None"),
        (lambda: ClientQuotaAlteration(BOB, {"x": True}), TypeError, "ops: x must be a number or None"),
        (lambda: ClientQuotaAlteration(BOB, {"x": math.nan}), ValueError, "ops: x must be finite"),
        (lambda: ClientQuotaAlteration(BOB, {"x": 10**400}), ValueError, "ops: x must be finite"),
        (lambda: ClientQuotaFilter(["x"]), TypeError, "components must be a tuple"),
        (lambda: ClientQuotaFilter.contains(["x"]), TypeError, "'x' is none"),
        (lambda: ClientQuotaFilterComponent.of_entity("user", None), TypeError, "entity_name must be a str"),
        (lambda: ClientQuotaFilterComponent(5, QuotaMatchType.EXACT), TypeError, "entity_type must be a str"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_made(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()
