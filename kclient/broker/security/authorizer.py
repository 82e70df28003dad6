"""StandardAuthorizer: decides who may do what, by the access rules that the metadata has, as Kafka's of that name does.

It fails closed: what no rule allows is denied, and so is what cannot be decided because something went wrong.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterable

import attrs

from kclient.broker.config import BrokerConfig
from kclient.broker.metadata.cache import MetadataCache
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.security import AccessControlEntry
from kclient.broker.security.acl_index import AclIndex, Question
from kclient.broker.security.authorizer_config import principals
from kclient.common.acl import AclOperation, AclPermissionType, PatternType, ResourceType

log = logging.getLogger(__name__)
audit_log = logging.getLogger("kafka.authorizer.logger")
"""Every decision, under the name and in the words of Kafka's: denials at INFO, the rest at DEBUG."""

_SUPER_USER, _DEFAULT_ALLOW, _DEFAULT_DENY = "SuperUser", "DefaultAllow", "DefaultDeny"
# Kafka asks with this name for what holds for every resource of a type.
_ANY_NAME = "hardcode"


@attrs.frozen
class Requester:
    """The sender of a request, and which request it is."""

    principal: str
    host: str
    """The address in the form of `java_address`."""
    request: str
    """The name of the API, as `ListOffsets`."""


def java_address(host: str) -> str:
    """Return a client's address as Java writes it, and so as rules name it: `0:0:0:0:0:0:0:1` for `::1`."""
    if ":" not in host:
        return host
    plain, percent, scope = host.partition("%")
    address = ipaddress.IPv6Address(plain)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    groups = (f"{int(group, 16):x}" for group in address.exploded.split(":"))
    return ":".join(groups) + percent + scope


class StandardAuthorizer:
    """Decisions by the newest rules that were published. Thread-safe; takes no lock, and makes nothing of the rules:
    whoever publishes a change has brought the index up to date before anybody can see it.

    `super_users`, principals such as `User:alice`, may do everything. Where no rule is about a resource at all, it
    is for them alone, or for everyone with `everyone_without_rules`.
    """

    def __init__(
        self,
        metadata: MetadataCache,
        super_users: Iterable[str] = (),
        *,
        everyone_without_rules: bool = False,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._without_rules = _DEFAULT_ALLOW if everyone_without_rules else _DEFAULT_DENY
        self._index = AclIndex(metadata.image.acls.acls.values())
        metadata.add_listener(self._on_metadata_update)

    def authorized(
        self,
        who: Requester,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        count: int = 1,
        log_allowed: bool = True,
        log_denied: bool = True,
    ) -> bool:
        """True if `who` may do `operation` on the resource, which the request names `count` times. Never raises."""
        try:
            rule = self._rule(Question(who.principal, who.host, operation), resource_type, name)
            allowed = _allows(rule)
            if log_allowed if allowed else log_denied:
                level = logging.DEBUG if allowed else logging.INFO
                if audit_log.isEnabledFor(level):
                    said = _said(who, operation, resource_type, name, count, rule)
                    audit_log.log(level, "%s", said)
        except Exception:
            log.exception("Denied, as it could not be decided")
            return False
        return allowed

    def authorized_for_any(
        self, who: Requester, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """True if there could be a resource of the type on which `who` may do `operation`. Never raises."""
        if self.authorized(who, operation, resource_type, _ANY_NAME, count=0, log_denied=False):
            return True
        try:
            question = Question(who.principal, who.host, operation)
            return self._index.allows_any(question, resource_type)
        except Exception:
            log.exception("Denied, as it could not be decided")
            return False

    def _rule(self, question: Question, resource_type: int, name: str) -> AccessControlEntry | str:
        """The rule that decides, or the name of what does where none is about it."""
        if question.principal in self._super_users:
            return _SUPER_USER
        rule, any_rule = self._index.find(question, resource_type, name)
        if rule is not None:
            return rule
        return _DEFAULT_DENY if any_rule else self._without_rules

    def _on_metadata_update(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.acls is None:
            return
        try:
            self._index = self._index.changed(delta.acls.removed(), delta.acls.added())
        except Exception:
            # Rules that were taken away must not hold any longer.
            log.exception("The index of access rules is made anew, as it could not be changed")
            self._index = AclIndex(image.acls.acls.values())


def configured_authorizer(config: BrokerConfig, metadata: MetadataCache) -> StandardAuthorizer | None:
    """Return the authorizer that the settings ask for; None if everybody may do everything."""
    if not config.authorizer_class_name:
        return None
    log.info("Clients may do what access rules allow; super users: %s", config.super_users or "none")
    return StandardAuthorizer(
        metadata,
        principals(config.super_users),
        everyone_without_rules=config.allow_everyone_if_no_acl_found,
    )


def _allows(rule: AccessControlEntry | str) -> bool:
    if isinstance(rule, AccessControlEntry):
        return rule.permission_type == AclPermissionType.ALLOW
    return rule in {_SUPER_USER, _DEFAULT_ALLOW}


def _said(
    who: Requester,
    operation: AclOperation,
    resource_type: ResourceType,
    name: str,
    count: int,
    rule: AccessControlEntry | str,
) -> str:
    kind = resource_type.name.title().replace("_", "")
    decided = _described(rule) if isinstance(rule, AccessControlEntry) else rule
    return (
        f"Principal = {_printable(who.principal)} is {'Allowed' if _allows(rule) else 'Denied'} "
        f"operation = {operation.name} from host = {who.host} on resource = {kind}:LITERAL:{_printable(name)} "
        f"for request = {who.request} with resourceRefCount = {count} based on rule {decided}"
    )


def _described(acl: AccessControlEntry) -> str:
    return (
        f"MatchingAcl(acl=StandardAcl[resourceType={ResourceType(acl.resource_type).name}, "
        f"resourceName={_printable(acl.resource_name)}, patternType={PatternType(acl.pattern_type).name}, "
        f"principal={_printable(acl.principal)}, host={_printable(acl.host)}, "
        f"operation={AclOperation(acl.operation).name}, "
        f"permissionType={AclPermissionType(acl.permission_type).name}])"
    )


def _printable(text: str) -> str:
    """Return text that clients chose as one line, or they could write lines of their own into the log."""
    return text if text.isprintable() else ascii(text)
