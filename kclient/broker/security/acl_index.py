"""AclIndex: the access rules of one image, laid out so that a question meets those that are about its resource.

An index never changes. The next one is made of it and of the rules that go and come, and shares with it whatever is not
about them; so a change costs as much as it has rules, and copies of tables that are quick to copy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import attrs

from kclient.broker.metadata.image.security import AccessControlEntry
from kclient.common.acl import WILDCARD, AclOperation, AclPermissionType, PatternType

K = TypeVar("K")

ByPrincipal = dict[str, list[AccessControlEntry]]
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
        self.by_principal: ByPrincipal = {}
        self._literal: dict[str, ByPrincipal] = {}
        self._prefixed: dict[str, ByPrincipal] = {}
        self._prefixes: list[str] = []
        self._shorter: dict[str, str | None] = {}

    def changed(
        self, removed: Sequence[AccessControlEntry], added: Sequence[AccessControlEntry]
    ) -> _RulesOfType:
        """Return these rules without some and with others."""
        made = _RulesOfType()
        made.by_principal = _changed_rules(self.by_principal, removed, added)
        going, coming = (
            ([acl for acl in acls if _is_literal(acl)], [acl for acl in acls if not _is_literal(acl)])
            for acls in (removed, added)
        )
        made._literal = _changed_patterns(self._literal, going[0], coming[0])
        made._prefixed = _changed_patterns(self._prefixed, going[1], coming[1])
        if made._prefixed.keys() == self._prefixed.keys():
            made._prefixes, made._shorter = self._prefixes, self._shorter
        else:
            made._find_prefixes()
        return made

    def _find_prefixes(self) -> None:
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

    def __init__(self, acls: Iterable[AccessControlEntry] = ()) -> None:
        self._types: dict[int, _RulesOfType] = {}
        self._change((), acls)

    def changed(self, removed: Iterable[AccessControlEntry], added: Iterable[AccessControlEntry]) -> AclIndex:
        """Return the index of the next image. `removed` are the very objects that this index was given."""
        made = AclIndex()
        made._types = dict(self._types)
        made._change(removed, added)
        return made

    def _change(self, removed: Iterable[AccessControlEntry], added: Iterable[AccessControlEntry]) -> None:
        going, coming = (_grouped(acls, lambda acl: acl.resource_type) for acls in (removed, added))
        for kind in going.keys() | coming.keys():
            rules = self._types.get(kind) or _RulesOfType()
            self._types[kind] = rules.changed(going.get(kind, ()), coming.get(kind, ()))

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


def _is_literal(acl: AccessControlEntry) -> bool:
    # What is neither is something newer than this broker: as for Kafka, it holds for more rather than for less.
    return acl.pattern_type == PatternType.LITERAL


def _grouped(
    acls: Iterable[AccessControlEntry], key: Callable[[AccessControlEntry], K]
) -> dict[K, list[AccessControlEntry]]:
    groups: dict[K, list[AccessControlEntry]] = {}
    for acl in acls:
        groups.setdefault(key(acl), []).append(acl)
    return groups


def _changed_rules(
    rules: ByPrincipal, removed: Iterable[AccessControlEntry], added: Iterable[AccessControlEntry]
) -> ByPrincipal:
    after = dict(rules)
    going, coming = (_grouped(acls, lambda acl: acl.principal) for acls in (removed, added))
    for principal, acls in going.items():
        # By the objects, as the same rule may be there under two ids.
        gone = {id(acl) for acl in acls}
        after[principal] = [acl for acl in after[principal] if id(acl) not in gone]
        if not after[principal]:
            del after[principal]
    for principal, acls in coming.items():
        after[principal] = [*after.get(principal, ()), *acls]
    return after


def _changed_patterns(
    patterns: dict[str, ByPrincipal],
    removed: Iterable[AccessControlEntry],
    added: Iterable[AccessControlEntry],
) -> dict[str, ByPrincipal]:
    after = dict(patterns)
    going, coming = (_grouped(acls, lambda acl: acl.resource_name) for acls in (removed, added))
    for name in going.keys() | coming.keys():
        rules = _changed_rules(after.pop(name, {}), going.get(name, ()), coming.get(name, ()))
        if rules:
            after[name] = rules
    return after


def _is_wildcard(acl: AccessControlEntry) -> bool:
    return acl.pattern_type == PatternType.LITERAL and acl.resource_name == WILDCARD
