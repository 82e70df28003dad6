"""Access rules (ACLs): who may do what with which resource, and the filters that find them."""

from __future__ import annotations

from typing import ClassVar

import attrs

from kclient.admin.internals.fields import checked_principal, of_type
from kclient.common.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)


@attrs.frozen
class ResourcePatternFilter:
    """Finds patterns of resources; by default all of them."""

    resource_type: ResourceType = attrs.field(default=ResourceType.ANY, validator=of_type(ResourceType))
    name: str | None = attrs.field(default=None, validator=of_type(str, optional=True))
    pattern_type: PatternType = attrs.field(default=PatternType.ANY, validator=of_type(PatternType))

    def __str__(self) -> str:
        return _resource(self.resource_type, self.name, self.pattern_type)


@attrs.frozen
class ResourcePattern:
    """Resources by their name: the one that is called so (LITERAL), or all whose names begin so (PREFIXED)."""

    WILDCARD: ClassVar[str] = WILDCARD
    """As a LITERAL name: every resource of the type."""
    CLUSTER_NAME: ClassVar[str] = CLUSTER_NAME
    """The name of the only resource of type CLUSTER."""

    resource_type: ResourceType = attrs.field(validator=of_type(ResourceType))
    name: str = attrs.field(validator=of_type(str))
    pattern_type: PatternType = attrs.field(default=PatternType.LITERAL, validator=of_type(PatternType))

    def to_filter(self) -> ResourcePatternFilter:
        """The filter that finds this pattern alone."""
        return ResourcePatternFilter(self.resource_type, self.name, self.pattern_type)

    def __str__(self) -> str:
        return _resource(self.resource_type, self.name, self.pattern_type)


@attrs.frozen
class AccessControlEntryFilter:
    """Finds entries; by default all of them."""

    principal: str | None = attrs.field(default=None, validator=of_type(str, optional=True))
    operation: AclOperation = attrs.field(default=AclOperation.ANY, validator=of_type(AclOperation))
    host: str | None = attrs.field(default=None, kw_only=True, validator=of_type(str, optional=True))
    permission_type: AclPermissionType = attrs.field(
        default=AclPermissionType.ANY, kw_only=True, validator=of_type(AclPermissionType)
    )

    def __str__(self) -> str:
        return _entry(self.permission_type, self.operation, self.principal, self.host)


@attrs.frozen
class AccessControlEntry:
    """Somebody who may do something: a principal as "User:alice", from a host as its address, by default any."""

    principal: str = attrs.field(validator=of_type(str))
    operation: AclOperation = attrs.field(validator=of_type(AclOperation))
    host: str = attrs.field(default="*", kw_only=True, validator=of_type(str))
    permission_type: AclPermissionType = attrs.field(
        default=AclPermissionType.ALLOW, kw_only=True, validator=of_type(AclPermissionType)
    )

    def to_filter(self) -> AccessControlEntryFilter:
        """The filter that finds this entry alone."""
        return AccessControlEntryFilter(
            self.principal, self.operation, host=self.host, permission_type=self.permission_type
        )

    def __str__(self) -> str:
        return _entry(self.permission_type, self.operation, self.principal, self.host)


@attrs.frozen
class AclBindingFilter:
    """Finds rules by resource and entry; by default all of them."""

    pattern_filter: ResourcePatternFilter = attrs.field(
        factory=ResourcePatternFilter, validator=of_type(ResourcePatternFilter)
    )
    entry_filter: AccessControlEntryFilter = attrs.field(
        factory=AccessControlEntryFilter, validator=of_type(AccessControlEntryFilter)
    )

    def __str__(self) -> str:
        return f"{self.entry_filter} on {self.pattern_filter}"


@attrs.frozen
class AclBinding:
    """One rule: an entry for a pattern of resources."""

    pattern: ResourcePattern = attrs.field(validator=of_type(ResourcePattern))
    entry: AccessControlEntry = attrs.field(validator=of_type(AccessControlEntry))

    def to_filter(self) -> AclBindingFilter:
        """The filter that finds this rule alone."""
        return AclBindingFilter(self.pattern.to_filter(), self.entry.to_filter())

    def __str__(self) -> str:
        return f"{self.entry} on {self.pattern}"


def check_definite(argument: str, acl: AclBinding) -> None:
    """Raise ValueError for a rule that could only be a filter, and for a principal that is none."""
    for code in (
        acl.pattern.resource_type,
        acl.pattern.pattern_type,
        acl.entry.operation,
        acl.entry.permission_type,
    ):
        if code.name in {"UNKNOWN", "ANY", "MATCH"}:
            raise ValueError(
                f"{argument}: {acl} cannot be created: {type(code).__name__}.{code.name} is for filters"
            )
    checked_principal(f"{argument}: the principal of {acl}", acl.entry.principal)
    if not acl.pattern.name:
        raise ValueError(f"{argument}: {acl} cannot be created: the resource has no name")


def _resource(kind: ResourceType, name: str | None, pattern: PatternType) -> str:
    return f"{kind.name} {'(any name)' if name is None else name} ({pattern.name})"


def _entry(
    permission: AclPermissionType, operation: AclOperation, principal: str | None, host: str | None
) -> str:
    return f"{permission.name} {operation.name} to {principal or 'anybody'} from {host or 'any host'}"
