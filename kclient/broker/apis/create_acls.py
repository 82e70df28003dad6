"""CreateAcls (30), versions 1 to 3: add access rules.

Behaviour: each rule succeeds or fails by itself, one that is there already succeeds. If one could only be a filter,
none is added. Access: ALTER on the cluster.
"""

from __future__ import annotations

import logging

from kclient.broker.apis.acl_filters import check_told
from kclient.broker.apis.call import ApiCall
from kclient.broker.metadata.controller import MAX_RECORDS_PER_REQUEST
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.security import AccessControlEntry
from kclient.common.acl import CLUSTER_NAME, AclOperation, AclPermissionType, PatternType, ResourceType
from kclient.common.uuid import Uuid
from kclient.errors import (
    Errors,
    InvalidRequestError,
    KafkaError,
    PolicyViolationError,
    SecurityDisabledError,
    UnknownServerError,
)
from kclient.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from kclient.protocol.schema import Message

log = logging.getLogger(__name__)

_RESOURCE_TYPES = frozenset(ResourceType) - {ResourceType.UNKNOWN, ResourceType.ANY}
_PATTERN_TYPES = frozenset({PatternType.LITERAL, PatternType.PREFIXED})
_OPERATIONS = frozenset(AclOperation) - {AclOperation.UNKNOWN, AclOperation.ANY}
_PERMISSION_TYPES = frozenset({AclPermissionType.ALLOW, AclPermissionType.DENY})


def create_acls(call: ApiCall, request: CreateAclsRequest) -> CreateAclsResponse:
    """Add the rules that can be added, all at once."""
    for wanted in request.creations:
        check_told(
            wanted.resource_type, wanted.resource_pattern_type, wanted.operation, wanted.permission_type
        )
    errors: list[KafkaError | None] = [_refusal(wanted) for wanted in request.creations]
    valid = [_entry(wanted) for wanted, error in zip(request.creations, errors, strict=True) if error is None]

    records: list[Message] = []

    def plan(image: MetadataImage) -> list[Message]:
        known = set(image.acls.acls.values())
        new = [acl for acl in dict.fromkeys(valid) if acl not in known]
        if len(new) > MAX_RECORDS_PER_REQUEST:
            raise PolicyViolationError(
                f"One request can create at most {MAX_RECORDS_PER_REQUEST} access rules, not {len(new)}"
            )
        records.extend(acl.record(Uuid.random()) for acl in new)
        return records

    try:
        call.require(AclOperation.ALTER, ResourceType.CLUSTER)
        if call.broker.authorizer is None:
            raise SecurityDisabledError
        _check_definite(request)
    except KafkaError as error:
        errors = [error] * len(errors)
    else:
        try:
            call.broker.controller.change(plan)
            log.info("%s has added %d access rules", call.principal, len(records))
        except KafkaError as error:
            errors = [refusal or error for refusal in errors]
    return CreateAclsResponse(
        results=[
            AclCreationResult()
            if error is None
            else AclCreationResult(error_code=Errors.code_for(error), error_message=str(error))
            for error in errors
        ]
    )


def _check_definite(request: CreateAclsRequest) -> None:
    """Raise UnknownServerError, Kafka's answer for all rules together, if one of them could only be a filter."""
    for wanted in request.creations:
        if (
            wanted.resource_type == ResourceType.ANY
            or wanted.resource_pattern_type in {PatternType.ANY, PatternType.MATCH}
            or wanted.operation == AclOperation.ANY
            or wanted.permission_type == AclPermissionType.ANY
        ):
            raise UnknownServerError("An access rule has a code that is for filters alone: ANY or MATCH")


def _refusal(wanted: AclCreation) -> KafkaError | None:
    """The error for a rule that cannot be one."""
    principal = wanted.principal
    if wanted.resource_type not in _RESOURCE_TYPES:
        return InvalidRequestError(f"{wanted.resource_type} is no resource type of access rules")
    if wanted.resource_type == ResourceType.CLUSTER and wanted.resource_name != CLUSTER_NAME:
        return InvalidRequestError(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not wanted.resource_name:
        return InvalidRequestError("The resource of an access rule has no name")
    if wanted.resource_pattern_type not in _PATTERN_TYPES:
        return InvalidRequestError(f"{wanted.resource_pattern_type} is no pattern type of access rules")
    if wanted.operation not in _OPERATIONS:
        return InvalidRequestError(f"{wanted.operation} is no operation of access rules")
    if wanted.permission_type not in _PERMISSION_TYPES:
        return InvalidRequestError(f"{wanted.permission_type} is no permission type of access rules")
    if ":" not in principal:
        return InvalidRequestError(f"{principal!r} is no principal such as User:alice")
    return None


def _entry(wanted: AclCreation) -> AccessControlEntry:
    return AccessControlEntry(
        wanted.resource_type,
        wanted.resource_name,
        wanted.resource_pattern_type,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission_type,
    )
