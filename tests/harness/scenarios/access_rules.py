"""Rules as a super user adds, finds and removes them, on the embedded broker and a real one with the same answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from harness.broker.wire import Wire
from harness.waiting import wait_until
from kclient.common.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from kclient.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kclient.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kclient.protocol.messages.describe_acls import DescribeAclsRequest
from kclient.protocol.schema import Message

UNKNOWN_SERVER_ERROR, OK, INVALID_REQUEST, POLICY_VIOLATION = -1, 0, 42, 44
MOST = 10_000
Rule = tuple[int, str, int, str, str, int, int]

_VALID: Mapping[str, Any] = {
    "resource_type": ResourceType.TOPIC,
    "resource_name": "rules",
    "resource_pattern_type": PatternType.LITERAL,
    "principal": "User:rules",
    "host": "*",
    "operation": AclOperation.READ,
    "permission_type": AclPermissionType.ALLOW,
}
_CREATIONS: Sequence[tuple[Mapping[str, Any], int]] = [
    ({}, OK),
    ({}, OK),
    ({"resource_pattern_type": PatternType.PREFIXED}, OK),
    ({"permission_type": AclPermissionType.DENY}, OK),
    ({"resource_type": 42}, INVALID_REQUEST),
    ({"resource_type": ResourceType.CLUSTER}, INVALID_REQUEST),
    ({"resource_type": ResourceType.CLUSTER, "resource_name": "kafka-cluster"}, OK),
    ({"resource_type": ResourceType.USER, "resource_name": "User:rules"}, OK),
    ({"resource_name": ""}, INVALID_REQUEST),
    ({"resource_pattern_type": 42}, INVALID_REQUEST),
    ({"operation": 42}, INVALID_REQUEST),
    ({"operation": AclOperation.TWO_PHASE_COMMIT}, OK),
    ({"permission_type": 42}, INVALID_REQUEST),
    ({"principal": "rules"}, INVALID_REQUEST),
    ({"principal": ""}, INVALID_REQUEST),
    ({"principal": "User:"}, OK),
    ({"host": ""}, OK),
    ({"host": "no address"}, OK),
]
_FOR_FILTERS: Sequence[Mapping[str, Any]] = [
    {"resource_type": ResourceType.ANY},
    {"resource_pattern_type": PatternType.ANY},
    {"resource_pattern_type": PatternType.MATCH},
    {"operation": AclOperation.ANY},
    {"permission_type": AclPermissionType.ANY},
]
_CODES = ("resource_type", "resource_pattern_type", "operation", "permission_type")


def creation(**changes: Any) -> AclCreation:
    """A rule that can be added, but for `changes`."""
    return AclCreation(**{**_VALID, **changes})


def check_creations(address: str) -> None:
    """Add rules that can be added and such that cannot, in one request; each has an answer of its own."""
    with Wire(address) as wire:
        request = CreateAclsRequest(creations=[creation(**changes) for changes, _ in _CREATIONS])
        answer = wire.ask(request, 3)
        results = zip(_CREATIONS, answer.results, strict=True)
        wrong = [(asked, each.error_code) for asked, each in results if asked[1] != each.error_code]
        assert not wrong, wrong
        added = {_rule(creation(**changes)) for changes, code in _CREATIONS if code == OK}
        ours = {rule for rule in added if rule[3] == "User:rules"}
        wait_until(lambda: _found(wire, principal_filter="User:rules") == ours, 10, "the rules")
        for changes in _FOR_FILTERS:
            valid = creation(principal="User:valid")
            request = CreateAclsRequest(creations=[valid, creation(**changes)])
            codes = [result.error_code for result in wire.ask(request, 3).results]
            assert codes == [UNKNOWN_SERVER_ERROR] * 2, (changes, codes)
        assert _found(wire, principal_filter="User:valid") == set()
    for field in _CODES:
        _check_closes(address, CreateAclsRequest(creations=[creation(**{field: 0})]))


def check_filters(address: str) -> None:
    """Find rules by every part of a filter."""
    who = "User:filters"
    rules = [
        creation(principal=who, resource_name="filters"),
        creation(principal=who, resource_name="filters", operation=AclOperation.WRITE),
        creation(principal=who, resource_name="filters", host="10.0.0.1"),
        creation(principal=who, resource_name="filters", permission_type=AclPermissionType.DENY),
        creation(principal=who, resource_name="filt", resource_pattern_type=PatternType.PREFIXED),
        creation(principal=who, resource_name="*"),
        creation(principal=who, resource_name="filters", resource_type=ResourceType.GROUP),
        creation(principal=who, resource_name="filt"),
    ]
    every = [_rule(rule) for rule in rules]
    table: Sequence[tuple[Mapping[str, Any], Sequence[int]]] = [
        ({}, range(8)),
        ({"resource_type_filter": ResourceType.TOPIC}, (0, 1, 2, 3, 4, 5, 7)),
        ({"resource_name_filter": "filters"}, (0, 1, 2, 3, 6)),
        ({"pattern_type_filter": PatternType.PREFIXED}, (4,)),
        ({"pattern_type_filter": PatternType.LITERAL, "resource_name_filter": "filt"}, (7,)),
        ({"pattern_type_filter": PatternType.ANY, "resource_name_filter": "filt"}, (4, 7)),
        (
            {"pattern_type_filter": PatternType.MATCH, "resource_name_filter": "filters"},
            (0, 1, 2, 3, 4, 5, 6),
        ),
        ({"pattern_type_filter": PatternType.MATCH, "resource_name_filter": "filtx"}, (4, 5)),
        ({"pattern_type_filter": PatternType.MATCH}, range(8)),
        ({"host_filter": "10.0.0.1"}, (2,)),
        ({"host_filter": "*", "operation": AclOperation.WRITE}, (1,)),
        ({"permission_type": AclPermissionType.DENY}, (3,)),
        ({"operation": AclOperation.ALL}, ()),
        ({"operation": 42}, ()),
    ]
    with Wire(address) as wire:
        assert {r.error_code for r in wire.ask(CreateAclsRequest(creations=rules), 3).results} == {OK}
        wait_until(lambda: _found(wire, principal_filter=who) == set(every), 10, "the rules")
        for parts, expected in table:
            assert _found(wire, principal_filter=who, **parts) == {every[at] for at in expected}, parts
    for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        _check_closes(address, _description(**{field: 0}))


def check_removals(address: str) -> None:
    """Remove rules by filters: each is told what it has found, also if another one has found it, too."""
    who = "User:removals"
    rules = [creation(principal=who, resource_name=name) for name in ("r1", "r2", "r3")]
    with Wire(address) as wire:
        wire.ask(CreateAclsRequest(creations=rules), 3)
        wait_until(lambda: len(_found(wire, principal_filter=who)) == 3, 10, "the rules")
        filters = [
            _filter(principal_filter=who, resource_name_filter="r1"),
            _filter(principal_filter=who, operation=42),
            _filter(principal_filter=who, resource_name_filter="none"),
            _filter(principal_filter=who, resource_name_filter="r1"),
            _filter(principal_filter=who, pattern_type_filter=PatternType.MATCH, resource_name_filter="r2"),
        ]
        results = wire.ask(DeleteAclsRequest(filters=filters), 3).filter_results
        assert [result.error_code for result in results] == [OK, INVALID_REQUEST, OK, OK, OK]
        assert [sorted(acl.resource_name for acl in result.matching_acls) for result in results] == [
            ["r1"], [], [], ["r1"], ["r2"],
        ]  # fmt: skip
        assert {acl.error_code for result in results for acl in result.matching_acls} == {OK}
        wait_until(lambda: _found(wire, principal_filter=who) == {_rule(rules[2])}, 10, "the rest")


def check_bounds(address: str) -> None:
    """Add and remove more rules than fit into one change of the metadata; nothing of it is done."""
    who = "User:bounds"
    with Wire(address, timeout_s=60) as wire:
        rules = [creation(principal=who, resource_name=f"b{number}") for number in range(MOST + 1)]
        answer = wire.ask(CreateAclsRequest(creations=rules), 3)
        assert {result.error_code for result in answer.results} == {POLICY_VIOLATION}
        assert len(answer.results) == MOST + 1
        assert _found(wire, principal_filter=who) == set()
        for some in (rules[:-1], rules[-2:]):
            assert {r.error_code for r in wire.ask(CreateAclsRequest(creations=some), 3).results} == {OK}
        wait_until(lambda: len(_found(wire, principal_filter=who)) == MOST + 1, 60, "the rules")
        filters = [_filter(principal_filter="User:nobody"), _filter(principal_filter=who)]
        results = wire.ask(DeleteAclsRequest(filters=filters), 3).filter_results
        assert [(result.error_code, result.matching_acls) for result in results] == [
            (INVALID_REQUEST, [])
        ] * 2
        assert len(_found(wire, principal_filter=who)) == MOST + 1


def _filter(**parts: Any) -> DeleteAclsFilter:
    fields: dict[str, Any] = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    return DeleteAclsFilter(**{**fields, **parts})


def _description(**parts: Any) -> DescribeAclsRequest:
    wanted = _filter(**parts)
    return DescribeAclsRequest(
        **{field.name: getattr(wanted, field.name) for field in attrs.fields(DeleteAclsFilter)}
    )


def _found(wire: Wire, **parts: Any) -> set[Rule]:
    answer = wire.ask(_description(**parts), 3)
    assert answer.error_code == OK, answer.error_message
    return {
        (
            *(resource.resource_type, resource.resource_name, resource.pattern_type),
            *(acl.principal, acl.host, acl.operation, acl.permission_type),
        )
        for resource in answer.resources
        for acl in resource.acls
    }


def _rule(acl: AclCreation) -> Rule:
    return (
        *(acl.resource_type, acl.resource_name, acl.resource_pattern_type),
        *(acl.principal, acl.host, acl.operation, acl.permission_type),
    )


def _check_closes(address: str, request: Message) -> None:
    """A code of 0, which stands for none, is no request that could be answered."""
    with Wire(address) as wire, pytest.raises((EOFError, ConnectionError)):
        wire.ask(request, 3)


CHECKS = (check_creations, check_filters, check_removals, check_bounds)
"""All that is checked of rules themselves."""
