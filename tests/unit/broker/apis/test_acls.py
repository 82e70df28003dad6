"""Access rules that are added, found and removed: every version, what the metadata log keeps, who is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.create_acls import create_acls
from kclient.broker.apis.delete_acls import delete_acls
from kclient.broker.apis.describe_acls import describe_acls
from kclient.broker.metadata.image.security import AccessControlEntry
from kclient.broker.security.authorizer_config import STANDARD_AUTHORIZER
from kclient.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kclient.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kclient.protocol.messages.describe_acls import DescribeAclsRequest

CLUSTER_AUTHORIZATION_FAILED, SECURITY_DISABLED = 31, 54
ANY, TOPIC, LITERAL, READ, ALLOW = 1, 2, 3, 3, 3
RULE = AccessControlEntry(TOPIC, "t", LITERAL, "User:a", "*", READ, ALLOW)
CREATION = AclCreation(
    resource_type=TOPIC,
    resource_name="t",
    principal="User:a",
    host="*",
    operation=READ,
    permission_type=ALLOW,
)
EVERY: dict[str, Any] = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "pattern_type_filter": ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Callable[..., Handlers]]:
    """Handlers of a broker with an authorizer."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Handlers:
            return Handlers(tmp_path, stack, authorizer_class_name=STANDARD_AUTHORIZER, **settings)

        yield make


def added(handlers: Handlers, *rules: AclCreation, version: int = 3) -> list[int]:
    answer = handlers.ask(create_acls, CreateAclsRequest(creations=list(rules)), version)
    return [result.error_code for result in answer.results]


def found(handlers: Handlers, version: int = 3) -> list[AccessControlEntry]:
    answer = handlers.ask(describe_acls, DescribeAclsRequest(**EVERY), version)
    assert answer.error_code == 0
    return [
        AccessControlEntry(
            *(resource.resource_type, resource.resource_name, resource.pattern_type),
            *(acl.principal, acl.host, acl.operation, acl.permission_type),
        )
        for resource in answer.resources
        for acl in resource.acls
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rules_are_added_found_and_removed_in_every_version(
    guarded: Callable[..., Handlers], version: int
) -> None:
    handlers = guarded(super_users="User:ANONYMOUS")
    assert added(handlers, CREATION, version=version) == [0]
    assert found(handlers, version) == [RULE]
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERY)])
    (result,) = handlers.ask(delete_acls, request, version).filter_results
    assert [acl.resource_name for acl in result.matching_acls] == ["t"]
    assert found(handlers, version) == []


def test_a_rule_that_is_there_already_adds_nothing_to_the_metadata_log(
    guarded: Callable[..., Handlers],
) -> None:
    handlers = guarded(super_users="User:ANONYMOUS")
    assert added(handlers, CREATION, CREATION) == [0, 0]
    assert list(handlers.topics.logged.acls.acls.values()) == [RULE]
    before = handlers.topics.store.end_offset
    assert added(handlers, CREATION) == [0]
    assert handlers.topics.store.end_offset == before
    handlers.ask(delete_acls, DeleteAclsRequest(filters=[DeleteAclsFilter(**EVERY)]), 3)
    assert handlers.topics.logged.acls.acls == {}


@pytest.mark.parametrize(
    ("settings", "error"),
    [({"authorizer_class_name": ""}, SECURITY_DISABLED), ({}, CLUSTER_AUTHORIZATION_FAILED)],
)
def test_without_an_authorizer_and_without_rights_rules_are_neither_told_nor_changed(
    tmp_path: Path, settings: dict[str, Any], error: int
) -> None:
    with ExitStack() as stack:
        handlers = Handlers(tmp_path, stack, **{"authorizer_class_name": STANDARD_AUTHORIZER, **settings})
        assert added(handlers, CREATION, CREATION) == [error, error]
        filters = [DeleteAclsFilter(**EVERY)] * 2
        removed = handlers.ask(delete_acls, DeleteAclsRequest(filters=filters), 3).filter_results
        assert [result.error_code for result in removed] == [error, error]
        assert handlers.ask(describe_acls, DescribeAclsRequest(**EVERY), 3).error_code == error
        assert handlers.topics.logged.acls.acls == {}
