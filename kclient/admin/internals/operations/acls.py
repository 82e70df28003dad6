"""Creating, finding and deleting access rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kclient.admin.acl import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    ResourcePattern,
)
from kclient.admin.internals.context import OperationContext, said_of_each, settle, settle_each
from kclient.admin.internals.steps import Operation, accepted_answer_of, answer_of
from kclient.common.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kclient.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kclient.protocol.messages.describe_acls import DescribeAclsRequest


def create_acls(context: OperationContext, acls: Sequence[AclBinding]) -> Operation[dict[AclBinding, None]]:
    """CreateAcls at any broker, which forwards it to the controller. Rules that are there already are fine."""
    creations = [
        AclCreation(
            resource_type=acl.pattern.resource_type,
            resource_name=acl.pattern.name,
            resource_pattern_type=acl.pattern.pattern_type,
            principal=acl.entry.principal,
            host=acl.entry.host,
            operation=acl.entry.operation,
            permission_type=acl.entry.permission_type,
        )
        for acl in acls
    ]
    answer = yield from answer_of(context.call(ApiKeys.CREATE_ACLS, CreateAclsRequest(creations=creations)))
    said = {
        acl: Errors.for_code(result.error_code, result.error_message)
        for acl, result in zip(acls, answer.results, strict=False)
    }
    return settle_each(acls, said_of_each(acls, said), "Creating ACLs")


def describe_acls(context: OperationContext, wanted: AclBindingFilter) -> Operation[list[AclBinding]]:
    """DescribeAcls at any broker."""
    request = DescribeAclsRequest(**_fields(wanted))
    answer = yield from accepted_answer_of(context.call(ApiKeys.DESCRIBE_ACLS, request))
    return [_binding(resource, acl) for resource in answer.resources for acl in resource.acls]


def delete_acls(
    context: OperationContext, filters: Sequence[AclBindingFilter]
) -> Operation[dict[AclBindingFilter | AclBinding, list[AclBinding]]]:
    """DeleteAcls at any broker, which forwards it to the controller. A rule that could not be deleted is an error of
    its own, beside those that its filter has deleted.
    """
    asked = [DeleteAclsFilter(**_fields(each)) for each in filters]
    answer = yield from answer_of(context.call(ApiKeys.DELETE_ACLS, DeleteAclsRequest(filters=asked)))
    results: dict[AclBindingFilter | AclBinding, list[AclBinding]] = {}
    errors: dict[AclBindingFilter | AclBinding, KafkaError] = {}
    said = dict(zip(filters, answer.filter_results, strict=False))
    for each, result in said_of_each(filters, said).items():
        if isinstance(result, KafkaError):
            errors[each] = result
            continue
        error = Errors.for_code(result.error_code, result.error_message)
        if error is not None:
            errors[each] = error
            continue
        deleted = results[each] = []
        for match in result.matching_acls:
            failed = Errors.for_code(match.error_code, match.error_message)
            if failed is None:
                deleted.append(_binding(match, match))
            else:
                errors[_binding(match, match)] = failed
    return settle([*results, *errors], results, errors, "Deleting ACLs")


def _fields(wanted: AclBindingFilter) -> dict[str, Any]:
    """The fields of a filter, which have the same names in both requests."""
    pattern, entry = wanted.pattern_filter, wanted.entry_filter
    return {
        "resource_type_filter": pattern.resource_type,
        "resource_name_filter": pattern.name,
        "pattern_type_filter": pattern.pattern_type,
        "principal_filter": entry.principal,
        "host_filter": entry.host,
        "operation": entry.operation,
        "permission_type": entry.permission_type,
    }


def _binding(resource: Any, acl: Any) -> AclBinding:
    return AclBinding(
        ResourcePattern(
            ResourceType(resource.resource_type), resource.resource_name, PatternType(resource.pattern_type)
        ),
        AccessControlEntry(
            acl.principal,
            AclOperation(acl.operation),
            host=acl.host,
            permission_type=AclPermissionType(acl.permission_type),
        ),
    )
