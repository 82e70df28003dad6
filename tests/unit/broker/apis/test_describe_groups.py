"""DescribeGroups: groups that are there, that are not, and of which nothing is known."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import CLIENT_HOST, CLIENT_ID, Handlers
from kclient.broker.apis.describe_groups import describe_groups
from kclient.protocol.messages.describe_groups import DescribeGroupsRequest

pytestmark = pytest.mark.usefixtures("coordinator")

NOT_COORDINATOR, INVALID_GROUP_ID = 16, 24
EVERY_OPERATION = 3400
NOT_TOLD = -(2**31)
EVERY_OPERATION = 3400


def describe(handlers: Handlers, *names: str, version: int = 5, operations: bool = False) -> list[Any]:
    request = DescribeGroupsRequest(groups=list(names), include_authorized_operations=operations)
    groups: list[Any] = handlers.ask(describe_groups, request, version).groups
    return groups


def test_a_group_is_described_with_its_members(handlers: Handlers) -> None:
    joined = handlers.member("g", instance_id="static")
    (group,) = describe(handlers, "g")
    assert (group.error_code, group.group_state, group.protocol_type, group.protocol_data) == (
        0, "Stable", "consumer", "range",
    )  # fmt: skip
    (member,) = group.members
    assert (member.member_id, member.group_instance_id) == (joined.member_id, "static")
    assert (member.client_id, member.client_host, member.member_assignment) == (
        CLIENT_ID, f"/{CLIENT_HOST}", b"its part",
    )  # fmt: skip


def test_a_group_that_is_not_there_is_dead_and_no_error(handlers: Handlers) -> None:
    (group,) = describe(handlers, "none")
    assert (group.group_id, group.error_code, group.group_state, group.members) == ("none", 0, "Dead", [])


def test_an_empty_name_fails_alone(handlers: Handlers) -> None:
    handlers.member("g")
    groups = describe(handlers, "", "g", "none")
    assert [(group.group_id, group.error_code, group.group_state) for group in groups] == [
        ("", INVALID_GROUP_ID, ""), ("g", 0, "Stable"), ("none", 0, "Dead"),
    ]  # fmt: skip


def test_a_group_that_could_not_be_read_is_not_taken_for_one_that_is_not_there(handlers: Handlers) -> None:
    handlers.lose_groups()
    (group,) = describe(handlers, "g")
    assert (group.group_id, group.error_code, group.group_state) == ("g", NOT_COORDINATOR, "")


def test_operations_are_told_to_who_asks_for_them(handlers: Handlers) -> None:
    handlers.member("g")
    names = ("g", "none", "")
    assert [group.authorized_operations for group in describe(handlers, *names)] == [NOT_TOLD] * 3
    told = describe(handlers, *names, operations=True)
    assert [group.authorized_operations for group in told] == [EVERY_OPERATION, EVERY_OPERATION, NOT_TOLD]


def test_versions_without_static_members_leave_their_names_out(handlers: Handlers) -> None:
    handlers.member("g", instance_id="static")
    assert [describe(handlers, "g", version=version)[0].members[0].group_instance_id for version in (3, 4)] == [
        None, "static",
    ]  # fmt: skip


def test_a_group_that_is_named_twice_is_described_twice(handlers: Handlers) -> None:
    assert [group.group_id for group in describe(handlers, "a", "a")] == ["a", "a"]
    assert describe(handlers) == []
