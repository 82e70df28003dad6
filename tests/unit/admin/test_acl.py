"""Access rules and their filters as values."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kclient.admin import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kclient.admin.acl import check_definite

TOPIC = ResourcePattern(ResourceType.TOPIC, "orders")
READ = AccessControlEntry("User:alice", AclOperation.READ)


def test_a_rule_allows_from_everywhere_for_the_name_as_it_is_unless_it_says_more() -> None:
    assert TOPIC.pattern_type is PatternType.LITERAL
    assert (READ.host, READ.permission_type) == ("*", AclPermissionType.ALLOW)


def test_a_filter_finds_everything_unless_it_says_more() -> None:
    every = AclBindingFilter()
    assert every.pattern_filter == ResourcePatternFilter(ResourceType.ANY, None, PatternType.ANY)
    assert every.entry_filter == AccessControlEntryFilter(
        None, AclOperation.ANY, host=None, permission_type=AclPermissionType.ANY
    )


def test_the_filter_of_a_rule_has_all_that_the_rule_has() -> None:
    entry = AccessControlEntry(
        "User:bob", AclOperation.WRITE, host="10.0.0.1", permission_type=AclPermissionType.DENY
    )
    pattern = ResourcePattern(ResourceType.GROUP, "g-", PatternType.PREFIXED)
    assert AclBinding(pattern, entry).to_filter() == AclBindingFilter(
        ResourcePatternFilter(ResourceType.GROUP, "g-", PatternType.PREFIXED),
        AccessControlEntryFilter(
            "User:bob", AclOperation.WRITE, host="10.0.0.1", permission_type=AclPermissionType.DENY
        ),
    )


def test_rules_can_be_keys_can_be_pickled_and_read_as_sentences() -> None:
    rule = AclBinding(TOPIC, READ)
    assert {rule: 1}[AclBinding(ResourcePattern(ResourceType.TOPIC, "orders"), READ)] == 1
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert str(rule) == "ALLOW READ to User:alice from * on TOPIC orders (LITERAL)"
    assert str(AclBindingFilter()) == "ANY ANY to anybody from any host on ANY (any name) (ANY)"


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: ResourcePattern("TOPIC", "t"), "resource_type"),
        (lambda: ResourcePattern(3, "t"), "resource_type"),
        (lambda: ResourcePattern(ResourceType.TOPIC, None), "name"),
        (lambda: ResourcePattern(ResourceType.TOPIC, "t", 3), "pattern_type"),
        (lambda: AccessControlEntry(None, AclOperation.READ), "principal"),
        (lambda: AccessControlEntry("User:a", "*"), "operation"),
        (lambda: AccessControlEntry("User:a", AclOperation.READ, host=None), "host"),
        (lambda: AccessControlEntry("User:a", AclOperation.READ, permission_type=3), "permission_type"),
        (lambda: ResourcePatternFilter(name=5), "name"),
        (lambda: AccessControlEntryFilter(b"User:a"), "principal"),
        (lambda: AclBinding(READ, READ), "pattern"),
        (lambda: AclBinding(TOPIC, TOPIC), "entry"),
        (lambda: AclBindingFilter(TOPIC), "pattern_filter"),
    ],
)
def test_a_field_of_another_type_is_refused_by_its_name(make: Any, field: str) -> None:
    with pytest.raises(TypeError, match=rf": {field} must be an? "):
        make()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (AclBinding(ResourcePattern(ResourceType.ANY, "t"), READ), r"ResourceType\.ANY is for filters"),
        (AclBinding(ResourcePattern(ResourceType.UNKNOWN, "t"), READ), r"ResourceType\.UNKNOWN"),
        (
            AclBinding(ResourcePattern(ResourceType.TOPIC, "t", PatternType.MATCH), READ),
            r"PatternType\.MATCH is for filters",
        ),
        (AclBinding(TOPIC, AccessControlEntry("User:a", AclOperation.ANY)), r"AclOperation\.ANY"),
        (
            AclBinding(
                TOPIC, AccessControlEntry("User:a", AclOperation.READ, permission_type=AclPermissionType.ANY)
            ),
            r"AclPermissionType\.ANY",
        ),
        (AclBinding(TOPIC, AccessControlEntry("alice", AclOperation.READ)), "such as 'User:alice'"),
        (AclBinding(ResourcePattern(ResourceType.TOPIC, ""), READ), "the resource has no name"),
    ],
)
def test_what_can_only_be_a_filter_is_not_created(rule: AclBinding, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_definite("acls", rule)


def test_a_code_of_a_newer_broker_may_be_created_again() -> None:
    check_definite("acls", AclBinding(TOPIC, AccessControlEntry("User:a", AclOperation(99))))
