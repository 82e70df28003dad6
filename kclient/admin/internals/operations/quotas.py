"""Client quotas: finding and changing them."""

from __future__ import annotations

from collections.abc import Sequence

from kclient.admin.internals.context import OperationContext, said_of_each, settle_each
from kclient.admin.internals.steps import Operation, accepted_answer_of, answer_of
from kclient.admin.quotas import ClientQuotaAlteration, ClientQuotaEntity, ClientQuotaFilter
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kclient.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest


def describe_client_quotas(
    context: OperationContext, wanted: ClientQuotaFilter
) -> Operation[dict[ClientQuotaEntity, dict[str, float]]]:
    """DescribeClientQuotas at any broker."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=each.entity_type, match_type=each.match_type, match=each.match)
            for each in wanted.components
        ],
        strict=wanted.strict,
    )
    answer = yield from accepted_answer_of(context.call(ApiKeys.DESCRIBE_CLIENT_QUOTAS, request))
    return {
        ClientQuotaEntity({part.entity_type: part.entity_name for part in entry.entity}): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or ()
        if entry.entity
    }


def alter_client_quotas(
    context: OperationContext, alterations: Sequence[ClientQuotaAlteration], validate_only: bool
) -> Operation[dict[ClientQuotaEntity, None]]:
    """AlterClientQuotas at any broker, which forwards it to the controller."""
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[
                    AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
                    for kind, name in each.entity.entries.items()
                ],
                ops=[
                    OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
                    for key, value in each.ops.items()
                ],
            )
            for each in alterations
        ],
        validate_only=validate_only,
    )
    answer = yield from answer_of(context.call(ApiKeys.ALTER_CLIENT_QUOTAS, request))
    said = {
        ClientQuotaEntity({part.entity_type: part.entity_name for part in entry.entity}): Errors.for_code(
            entry.error_code, entry.error_message
        )
        for entry in answer.entries
        if entry.entity
    }
    entities = [each.entity for each in alterations]
    return settle_each(entities, said_of_each(entities, said), "Altering client quotas")
