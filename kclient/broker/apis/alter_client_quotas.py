"""AlterClientQuotas (49), versions 0 and 1: quotas of users, clients and addresses, set and taken away (KIP-546).

Version 1 is flexible. Behaviour: each entity succeeds or fails by itself, with all that is asked for it. Of an entity
that comes twice the first entry is carried out, and an error is answered, as Kafka does. Values that are not finite are
refused, which Kafka takes. Access: ALTER_CONFIGS on the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kclient.broker.apis.call import ApiCall
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.quotas import QuotaEntity
from kclient.broker.quota.quota_keys import check_entity, check_quota
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import Errors, InvalidRequestError, KafkaError
from kclient.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from kclient.protocol.messages.metadata_records import ClientQuotaRecord, EntityData
from kclient.protocol.schema import Message

_Changes = Mapping[str, float | None]


def alter_client_quotas(call: ApiCall, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Change the quotas of each entity."""
    try:
        call.require(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER)
    except KafkaError as denied:
        return AlterClientQuotasResponse(
            entries=[_result(_entity(entry), denied) for entry in request.entries]
        )
    changes: dict[QuotaEntity, _Changes] = {}
    errors: dict[QuotaEntity, KafkaError | None] = {}
    for entry in request.entries:
        entity = _entity(entry)
        try:
            if entity in errors:
                raise InvalidRequestError(
                    "The entity is in the request more than once; only the first counts"
                )
            errors[entity] = None
            # Before the metadata is asked and its lock taken: this may ask the resolver for an address.
            changes[entity] = _checked(dict(entity), entry)
        except KafkaError as error:
            errors[entity] = error

    def plan(image: MetadataImage) -> list[Message]:
        return [
            record
            for entity, wanted in changes.items()
            for record in _records(entity, wanted, image.client_quotas.entities.get(entity, {}))
        ]

    if not request.validate_only:
        try:
            call.broker.controller.change(plan)
        except KafkaError as error:
            errors |= {entity: errors[entity] or error for entity in changes}
    return AlterClientQuotasResponse(entries=[_result(entity, error) for entity, error in errors.items()])


def _entity(entry: AlterClientQuotasRequestEntryData) -> QuotaEntity:
    return frozenset({part.entity_type: part.entity_name for part in entry.entity}.items())


def _checked(entity: Mapping[str, str | None], entry: AlterClientQuotasRequestEntryData) -> _Changes:
    """Return the changes by the names of quotas, None for one that goes. Raises InvalidRequestError."""
    changes = {op.key: None if op.remove else op.value for op in entry.ops}
    if len(changes) != len(entry.ops):
        raise InvalidRequestError("A quota is in the request more than once for the same entity")
    check_entity(entity)
    for key, value in changes.items():
        if value is not None:
            check_quota(entity, key, value)
    return changes


def _records(entity: QuotaEntity, changes: _Changes, before: Mapping[str, float]) -> Sequence[Message]:
    """Return what makes the changes; nothing for what is so already."""
    return [
        ClientQuotaRecord(
            entity=[
                EntityData(entity_type=kind, entity_name=name)
                for kind, name in sorted(entity, key=lambda part: part[0])
            ],
            key=key,
            value=0.0 if value is None else value,
            remove=value is None,
        )
        for key, value in changes.items()
        if before.get(key) != value
    ]


def _result(entity: QuotaEntity, error: KafkaError | None) -> AlterClientQuotasResponseEntryData:
    return AlterClientQuotasResponseEntryData(
        error_code=0 if error is None else Errors.code_for(error),
        error_message=None if error is None else str(error),
        entity=[
            AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=name)
            for kind, name in sorted(entity, key=lambda part: part[0])
        ],
    )
