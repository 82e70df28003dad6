"""Listing and deleting groups and removing members, by requests that are answered by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.admin_operations import CONTEXT, Asked, drive
from kclient.admin.internals.driver import Role, Target
from kclient.admin.internals.operations.groups import delete_groups, list_groups, remove_members
from kclient.common.node import Node
from kclient.errors import (
    AdminError,
    Errors,
    GroupNotEmptyError,
    KafkaError,
    KafkaTimeoutError,
    NotCoordinatorError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import consumer_group_describe as new
from kclient.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from kclient.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from kclient.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from kclient.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker

HOME = Node(3, "home", 9092)


@pytest.mark.parametrize(
    ("states", "types", "first"),
    [((), (), None), (("Stable",), (), 4), ((), ("classic",), 5), (("S",), ("c",), 5)],
)
def test_brokers_that_cannot_filter_are_not_asked_to(
    states: tuple[str, ...], types: tuple[str, ...], first: int | None
) -> None:
    asked: list[Asked] = []

    def answer(each: Asked) -> Any:
        if each.api_key is ApiKeys.METADATA:
            return MetadataResponse(brokers=[MetadataResponseBroker(node_id=7)])
        asked.append(each)
        return ListGroupsResponse()

    assert drive(list_groups(CONTEXT, states, types, ()), answer) == {}
    assert [each.options["min_version"] for each in asked] == [first]
    assert asked[0].target == Target(Role.NODE, node_id=7)
    assert (asked[0].message.states_filter, asked[0].message.types_filter) == (list(states), list(types))


def test_the_groups_of_all_brokers_are_listed_together_and_one_that_fails_is_named() -> None:
    answers: dict[int, Any] = {
        1: ListGroupsResponse(groups=[ListedGroup(group_id="a"), ListedGroup(group_id="b")]),
        2: ListGroupsResponse(error_code=Errors.COORDINATOR_NOT_AVAILABLE),
        3: KafkaTimeoutError("no answer"),
    }

    def answer(asked: Asked) -> Any:
        if asked.api_key is ApiKeys.METADATA:
            return MetadataResponse(brokers=[MetadataResponseBroker(node_id=i) for i in answers])
        assert asked.target is not None
        return answers[asked.target.node_id]

    with pytest.raises(AdminError, match="broker 2: ") as raised:
        drive(list_groups(CONTEXT, (), (), ()), answer)
    assert sorted(raised.value.results) == ["a", "b"]
    assert sorted(raised.value.errors) == ["broker 2", "broker 3"]


def deleted(each: Asked, **codes: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id, error_code=codes.get(group_id, 0))
            for group_id in each.message.groups_names
        ]
    )


def at(**nodes: int) -> Callable[[Asked], Any]:
    """Coordinators of groups, by the ids of nodes."""
    return lambda asked: next(
        Node(node, f"host{node}", 9092)
        for group, node in nodes.items()
        if asked.target == Target.of_group(group)
    )


def test_each_coordinator_is_asked_about_all_of_its_groups_at_once() -> None:
    asked: list[Asked] = []
    find = at(a=1, b=2, c=1)

    def answer(each: Asked) -> Any:
        if each.api_key is ApiKeys.FIND_COORDINATOR:
            return find(each)
        asked.append(each)
        return deleted(each)

    assert drive(delete_groups(CONTEXT, ["a", "b", "c"]), answer) == dict.fromkeys("abc")
    assert [(each.target, each.message.groups_names) for each in asked] == [
        (Target.of_group("a"), ["a", "c"]),
        (Target.of_group("b"), ["b"]),
    ]


@pytest.mark.parametrize("first", [Errors.NOT_COORDINATOR, UnsupportedVersionError("one by one")])
def test_groups_whose_coordinator_has_moved_are_asked_for_alone(first: Any) -> None:
    asked: list[Asked] = []

    def answer(each: Asked) -> Any:
        if each.api_key is ApiKeys.FIND_COORDINATOR:
            return HOME
        asked.append(each)
        if len(each.message.groups_names) == 1:
            return deleted(each)
        return first if isinstance(first, KafkaError) else deleted(each, b=first)

    assert drive(delete_groups(CONTEXT, ["a", "b"]), answer) == dict.fromkeys("ab")
    alone = ["a", "b"] if isinstance(first, KafkaError) else ["b"]
    assert [each.message.groups_names for each in asked] == [["a", "b"], *([each] for each in alone)]
    assert [each.retry is None for each in asked] == [True, *(False for _ in alone)]


def test_a_group_that_is_not_empty_is_not_deleted() -> None:
    with pytest.raises(GroupNotEmptyError, match="Deleting groups failed for busy"):
        drive(
            delete_groups(CONTEXT, ["busy"]),
            lambda each: deleted(each, busy=Errors.NON_EMPTY_GROUP),
        )


def test_only_a_coordinator_that_moved_is_looked_up_again() -> None:
    generator = delete_groups(CONTEXT, ["g"])
    assert next(generator) == []  # of one group alone none is asked together
    (asked,) = generator.send([])

    def retried(code: int) -> object:
        return asked.retry(DeleteGroupsResponse(results=[DeletableGroupResult(error_code=code)]))

    assert isinstance(retried(Errors.NOT_COORDINATOR), NotCoordinatorError)
    assert retried(Errors.NON_EMPTY_GROUP) is None
    assert retried(0) is None


def test_groups_are_narrowed_to_protocol_types_here() -> None:
    def answer(asked: Asked) -> Any:
        if asked.api_key is ApiKeys.METADATA:
            return MetadataResponse(brokers=[MetadataResponseBroker(node_id=1)])
        kinds = {"a": "consumer", "b": "", "c": "connect"}
        return ListGroupsResponse(
            groups=[ListedGroup(group_id=group, protocol_type=kind) for group, kind in kinds.items()]
        )

    found = drive(list_groups(CONTEXT, (), (), ("consumer", "")), answer)
    assert {group: one.is_simple_consumer_group for group, one in found.items()} == {"a": False, "b": True}


class TestRemovingMembers:
    def remove(self, *arguments: Any, members: Any, asked: list[Asked], code: int = 0) -> Any:
        def answer(each: Asked) -> Any:
            if each.api_key is ApiKeys.FIND_COORDINATOR:
                return HOME
            if each.api_key is ApiKeys.CONSUMER_GROUP_DESCRIBE:
                return new.ConsumerGroupDescribeResponse(
                    groups=[new.DescribedGroup(group_id="g", members=members)]
                )
            asked.append(each)
            return LeaveGroupResponse(
                members=[
                    MemberResponse(
                        member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code
                    )
                    for each in each.message.members
                ]
            )

        return drive(remove_members(CONTEXT, "g", *arguments), answer)

    def test_static_members_leave_by_their_names_for_a_reason(self) -> None:
        asked: list[Asked] = []
        assert self.remove(["i", "j"], "x" * 300, members=[], asked=asked) == {"i": None, "j": None}
        (leave,) = asked
        assert [(m.member_id, m.group_instance_id) for m in leave.message.members] == [("", "i"), ("", "j")]
        reason = leave.message.members[0].reason
        assert (reason[:36], len(reason)) == ("member was removed by an admin: xxxx", 255)
        assert (leave.target, leave.options["min_version"]) == (Target.of_group("g"), 3)

    def test_all_members_leave_by_what_the_group_is_described_with(self) -> None:
        members = [new.Member(member_id="m1", instance_id="i"), new.Member(member_id="m2")]
        asked: list[Asked] = []
        assert self.remove(None, None, members=members, asked=asked) == {"i": None, "m2": None}
        said = [(m.member_id, m.group_instance_id, m.reason) for m in asked[0].message.members]
        reason = "member was removed by an admin"
        assert said == [("", "i", reason), ("m2", None, reason)]

    def test_a_group_without_members_has_none_to_remove(self) -> None:
        asked: list[Asked] = []
        assert self.remove(None, None, members=[], asked=asked) == {}
        assert not asked

    def test_a_member_that_is_not_there_is_named(self) -> None:
        with pytest.raises(UnknownMemberIdError, match="failed for i"):
            self.remove(["i"], None, members=[], asked=[], code=Errors.UNKNOWN_MEMBER_ID)
