"""Filters of access rules as DescribeAcls and DeleteAcls have them."""

from __future__ import annotations

from collections.abc import Iterator

from kclient.broker.apis.call import UnreadableRequestError
from kclient.broker.metadata.image.security import AccessControlEntry, AclsImage
from kclient.common.acl import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType
from kclient.common.uuid import Uuid
from kclient.errors import InvalidRequestError
from kclient.protocol.messages.delete_acls import DeleteAclsFilter
from kclient.protocol.messages.describe_acls import DescribeAclsRequest

AclFilter = DescribeAclsRequest | DeleteAclsFilter


def check_told(*codes: int) -> None:
    """Raise UnreadableRequestError for a code that says that its sender does not know it."""
    if 0 in codes:
        raise UnreadableRequestError("a code of an access rule is 0, which stands for none")


def codes_of(wanted: AclFilter) -> tuple[int, int, int, int]:
    """The numbers of all enumerations of a filter."""
    return (
        wanted.resource_type_filter,
        wanted.pattern_type_filter,
        wanted.operation,
        wanted.permission_type,
    )


def check_filter(wanted: DeleteAclsFilter) -> None:
    """Raise InvalidRequestError for a filter with a code that this broker does not know: it could mean anything."""
    known = (ResourceType, PatternType, AclOperation, AclPermissionType)
    for kind, code in zip(known, codes_of(wanted), strict=True):
        if code not in kind.__members__.values():
            raise InvalidRequestError(f"The filter has an unknown {kind.__name__}, {code}")


def matching(image: AclsImage, wanted: AclFilter) -> Iterator[tuple[Uuid, AccessControlEntry]]:
    """The rules that a filter finds, with their ids."""
    for acl_id, acl in image.acls.items():
        if (
            wanted.resource_type_filter in {ResourceType.ANY, acl.resource_type}
            and _is_named(wanted, acl)
            and wanted.principal_filter in {None, acl.principal}
            and wanted.host_filter in {None, acl.host}
            and wanted.operation in {AclOperation.ANY, acl.operation}
            and wanted.permission_type in {AclPermissionType.ANY, acl.permission_type}
        ):
            yield acl_id, acl


def _is_named(wanted: AclFilter, acl: AccessControlEntry) -> bool:
    name, pattern_type = wanted.resource_name_filter, wanted.pattern_type_filter
    if pattern_type == PatternType.MATCH:
        # Every pattern that the resource of that name falls under.
        if name is None:
            return True
        if acl.pattern_type == PatternType.LITERAL:
            return acl.resource_name in {name, WILDCARD}
        return name.startswith(acl.resource_name)
    return pattern_type in {PatternType.ANY, acl.pattern_type} and name in {None, acl.resource_name}
