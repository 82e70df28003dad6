"""LeaveGroup: one member in old versions, many in new ones, each with its own code."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.leave_group import leave_group
from kclient.broker.group.group import GroupState
from kclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity

pytestmark = pytest.mark.usefixtures("coordinator")

NOT_COORDINATOR, INVALID_GROUP_ID, UNKNOWN_MEMBER, FENCED_INSTANCE = 16, 24, 25, 82


def leave(handlers: Handlers, *members: tuple[str, str | None], version: int = 5, group_id: str = "g") -> Any:
    if version < 3:
        ((member_id, _),) = members
        request = LeaveGroupRequest(group_id=group_id, member_id=member_id)
    else:
        identities = [
            MemberIdentity(member_id=name, group_instance_id=instance) for name, instance in members
        ]
        request = LeaveGroupRequest(group_id=group_id, members=identities)
    return handlers.ask(leave_group, request, version)


def state(handlers: Handlers) -> GroupState:
    group = handlers.groups.group("g")
    assert group is not None
    return group.state


@pytest.mark.parametrize("version", range(6))
def test_a_member_leaves_in_every_version(handlers: Handlers, version: int) -> None:
    joined = handlers.member()
    answer = leave(handlers, (joined.member_id, None), version=version)
    assert answer.error_code == 0
    assert [member.error_code for member in answer.members] == ([0] if version >= 3 else [])
    handlers.run_due()
    assert state(handlers) is GroupState.EMPTY


@pytest.mark.parametrize(("version", "of_all", "of_one"), [(2, UNKNOWN_MEMBER, []), (3, 0, [UNKNOWN_MEMBER])])
def test_the_error_of_one_member_is_told_where_its_version_has_a_place(
    handlers: Handlers, version: int, of_all: int, of_one: list[int]
) -> None:
    handlers.member()
    answer = leave(handlers, ("nobody", None), version=version)
    assert (answer.error_code, [member.error_code for member in answer.members]) == (of_all, of_one)
    assert state(handlers) is GroupState.STABLE


@pytest.mark.parametrize("version", [0, 3, 5])
def test_a_wrong_name_of_a_group_is_told_for_all_members_together(handlers: Handlers, version: int) -> None:
    answer = leave(handlers, ("m", None), version=version, group_id="")
    assert (answer.error_code, answer.members) == (INVALID_GROUP_ID, [])


@pytest.mark.parametrize(("version", "of_all", "of_one"), [(2, UNKNOWN_MEMBER, []), (3, 0, [UNKNOWN_MEMBER])])
def test_a_group_that_is_not_there_knows_no_member(
    handlers: Handlers, version: int, of_all: int, of_one: list[int]
) -> None:
    answer = leave(handlers, ("m", None), version=version, group_id="none")
    assert (answer.error_code, [member.error_code for member in answer.members]) == (of_all, of_one)


def test_each_member_leaves_or_fails_by_itself(handlers: Handlers) -> None:
    joined = handlers.member(instance_id="static")
    answer = leave(
        handlers, ("nobody", None), ("other", "static"), (joined.member_id, "static"), ("", "none")
    )
    assert [(member.member_id, member.group_instance_id, member.error_code) for member in answer.members] == [
        ("nobody", None, UNKNOWN_MEMBER),
        ("other", "static", FENCED_INSTANCE),
        (joined.member_id, "static", 0),
        ("", "none", UNKNOWN_MEMBER),
    ]


def test_a_static_member_is_named_in_the_answer_as_in_the_request(handlers: Handlers) -> None:
    handlers.member(instance_id="static")
    (member,) = leave(handlers, ("", "static")).members
    assert (member.member_id, member.group_instance_id, member.error_code) == ("", "static", 0)


def test_who_leaves_with_nobody_named_changes_nothing(handlers: Handlers) -> None:
    handlers.member()
    answer = leave(handlers)
    assert (answer.error_code, answer.members) == (0, [])
    assert state(handlers) is GroupState.STABLE


def test_a_group_that_could_not_be_read_is_not_taken_for_one_that_is_not_there(handlers: Handlers) -> None:
    handlers.lose_groups()
    assert leave(handlers, ("m", None)).error_code == NOT_COORDINATOR
