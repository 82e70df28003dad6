"""AclIndex: the access rules of one image, laid out so that a question meets those that are about its resource."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

import attrs

from kclient.broker.metadata.image.security import AccessControlEntry
from kclient.common.acl import WILDCARD, AclOperation, AclPermissionType, PatternType

ByPrincipal = Mapping[str, list[AccessControlEntry]]
"""Rules of one pattern by the principals that they name."""

_IMPLYING: Mapping[int, frozenset[int]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
_NOTHING: frozenset[int] = frozenset()


@attrs.frozen
class Question:
    """One question: the principal, its host, and the operation."""

    principal: str
    host: str
    operation: int

    @property
    def principals(self) -> tuple[str, str]:
        """The principals whose rules hold for whoever asks."""
        return self.principal, _EVERYBODY

    def is_met_by(self, acl: AccessControlEntry, *, implied: bool = True) -> bool:
        """True if a rule for one of `principals` is about this. A rule that allows one operation may, with `implied`,
        allow another with it.
        """
        if acl.host not in {WILDCARD, self.host}:
            return False
        if acl.operation in {self.operation, AclOperation.ALL}:
            return True
        return (
            implied
            and acl.permission_type == AclPermissionType.ALLOW
            and acl.operation in _IMPLYING.get(self.operation, _NOTHING)
        )


_EVERYBODY = f"User:{WILDCARD}"


class _RulesOfType:
    """The rules for one type of resources.

    A prefix knows the longest other one that it begins with. So all that a name begins with are found by one binary
    search and one step for each, however many others there are.
    """

    def __init__(self) -> None:
        self.by_principal: dict[str, list[AccessControlEntry]] = {}
        self._literal: dict[str, dict[str, list[AccessControlEntry]]] = {}
        self._prefixed: dict[str, dict[str, list[AccessControlEntry]]] = {}
        self._prefixes: list[str] = []
        self._shorter: dict[str, str | None] = {}

    def add(self, acl: AccessControlEntry) -> None:
        # What is neither is something newer than this broker: as for Kafka, it holds for more rather than for less.
        patterns = self._literal if acl.pattern_type == PatternType.LITERAL else self._prefixed
        patterns.setdefault(acl.resource_name, {}).setdefault(acl.principal, []).append(acl)
        self.by_principal.setdefault(acl.principal, []).append(acl)

    def complete(self) -> None:
        """Be ready for questions: everything was added."""
        self._prefixes = sorted(self._prefixed)
        around: list[str] = []  # the prefixes that the current one begins with, the shortest first
        for prefix in self._prefixes:
            while around and not prefix.startswith(around[-1]):
                around.pop()
            self._shorter[prefix] = around[-1] if around else None
            around.append(prefix)

    def about(self, name: str) -> Iterator[ByPrincipal]:
        """The rules of every pattern that the resource `name` falls under."""
        literal = self._literal
        if name in literal:
            yield literal[name]
        if WILDCARD in literal and name != WILDCARD:
            yield literal[WILDCARD]
        at = bisect_right(self._prefixes, name)
        # Of all prefixes that do not come after the name, the last one begins with each that the name begins with.
        prefix = self._prefixes[at - 1] if at else None
        while prefix is not None:
            if name.startswith(prefix):
                yield self._prefixed[prefix]
            prefix = self._shorter[prefix]


class AclIndex:
    """The rules of an image. Immutable."""

    def __init__(self, acls: Iterable[AccessControlEntry]) -> None:
        self._types: dict[int, _RulesOfType] = {}
        for acl in acls:
            rules = self._types.get(acl.resource_type)
            if rules is None:
                rules = self._types[acl.resource_type] = _RulesOfType()
            rules.add(acl)
        for rules in self._types.values():
            rules.complete()

    def find(
        self, question: Question, resource_type: int, name: str
    ) -> tuple[AccessControlEntry | None, bool]:
        """Return the rule that decides on a resource, and whether there is any about it, for whomever.

        A rule that denies comes before all that allow. None decides if none is about the question.
        """
        rules = self._types.get(resource_type)
        if rules is None:
            return None, False
        allowing, any_rule = None, False
        for by_principal in rules.about(name):
            any_rule = True
            for principal in question.principals:
                for acl in by_principal.get(principal, ()):
                    if question.is_met_by(acl):
                        if acl.permission_type != AclPermissionType.ALLOW:
                            return acl, True
                        allowing = acl
        return allowing, any_rule

    def allows_any(self, question: Question, resource_type: int) -> bool:
        """True if there could be a resource of the type for which the operation is allowed by the rules.

        As in Kafka, operations that others imply do not count.
        """
        rules = self._types.get(resource_type)
        if rules is None:
            return False
        allowed: list[AccessControlEntry] = []
        denied: set[str] = set()
        denied_prefixes: list[str] = []
        for principal in question.principals:
            for acl in rules.by_principal.get(principal, ()):
                if not question.is_met_by(acl, implied=False):
                    continue
                if acl.permission_type == AclPermissionType.ALLOW:
                    allowed.append(acl)
                elif acl.pattern_type != PatternType.LITERAL:
                    denied_prefixes.append(acl.resource_name)
                else:
                    denied.add(acl.resource_name)
        if WILDCARD in denied:
            return False
        prefixes = tuple(denied_prefixes)
        return any(
            _is_wildcard(acl)
            or not (
                (acl.pattern_type == PatternType.LITERAL and acl.resource_name in denied)
                or acl.resource_name.startswith(prefixes)
            )
            for acl in allowed
        )


def _is_wildcard(acl: AccessControlEntry) -> bool:
    return acl.pattern_type == PatternType.LITERAL and acl.resource_name == WILDCARD
