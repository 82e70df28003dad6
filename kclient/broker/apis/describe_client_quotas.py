"""DescribeClientQuotas (48), versions 0 and 1: the quotas of users, clients and addresses (KIP-546).

Version 1 is flexible. Access: DESCRIBE_CONFIGS on the cluster.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from kclient.broker.apis.call import ApiCall
from kclient.broker.quota.quota_keys import ENTITY_TYPES, IP
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import Errors, InvalidRequestError, KafkaError, UnsupportedVersionError
from kclient.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


class MatchType(enum.IntEnum):
    """The names that a component of a filter takes, by its number in the protocol."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


def describe_client_quotas(
    call: ApiCall, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Find the entities that match all components, and no other kinds if the filter is strict."""
    try:
        call.require(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
        names, kinds = _filter(request.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(
            error_code=Errors.code_for(error), error_message=str(error), entries=None
        )
    found = []
    for entity, quotas in call.broker.controller.cache.image.client_quotas.entities.items():
        parts = dict(entity)
        if request.strict and len(parts) != len(kinds):
            continue
        if kinds <= parts.keys() and all(parts[kind] == name for kind, name in names.items()):
            found.append((parts, quotas))
    return DescribeClientQuotasResponse(entries=[_entry(parts, quotas) for parts, quotas in found])


def _filter(components: Sequence[ComponentData]) -> tuple[dict[str, str | None], set[str]]:
    """Return the names that are asked for by kinds, and all kinds that are."""
    names: dict[str, str | None] = {}
    kinds: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise InvalidRequestError("A component of the filter has no entity type")
        if kind in kinds:
            raise InvalidRequestError(f"The entity type {kind} is in the filter more than once")
        if kind not in ENTITY_TYPES:
            raise UnsupportedVersionError(f"There is no entity type {kind}")
        if component.match_type not in MatchType.__members__.values():
            raise InvalidRequestError(f"There is no match type {component.match_type}")
        exact = component.match_type == MatchType.EXACT
        if exact != (component.match is not None):
            wants = "a name" if exact else "no name"
            raise InvalidRequestError(f"The component for {kind} must have {wants} for its match type")
        if component.match_type != MatchType.SPECIFIED:
            names[kind] = component.match
        kinds.add(kind)
    if IP in kinds and len(kinds) > 1:
        raise InvalidRequestError("A filter for ip cannot be one for user or client-id as well")
    return names, kinds


def _entry(entity: Mapping[str, str | None], quotas: Mapping[str, float]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=entity[kind]) for kind in sorted(entity)],
        values=[ValueData(key=key, value=quotas[key]) for key in sorted(quotas)],
    )
