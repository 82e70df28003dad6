"""Descriptions of groups of all types, from requests that are answered by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.admin_operations import CONTEXT, Asked, drive
from kclient.admin.groups import GroupDescription
from kclient.admin.internals.driver import Target
from kclient.admin.internals.operations.group_descriptions import (
    describe_classic_groups,
    describe_consumer_groups,
    describe_groups,
    describe_share_groups,
)
from kclient.admin.internals.operations.groups import delete_groups
from kclient.common.acl import AclOperation
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    Errors,
    GroupAuthorizationError,
    GroupIdNotFoundError,
    KafkaError,
    KafkaTimeoutError,
    NotCoordinatorError,
    TopicAuthorizationError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.codec import encode_versioned
from kclient.protocol.messages import consumer_group_describe as new
from kclient.protocol.messages import share_group_describe as share
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition as Assigned
from kclient.protocol.messages.delete_groups import DeleteGroupsResponse
from kclient.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)

HOME = Node(3, "home", 9092)


def classic(group_id: str, **fields: Any) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[DescribedGroup(group_id=group_id, **fields)])


def describe(
    *group_ids: str,
    old: Any,
    consumer: Any = None,
    home: Any = HOME,
    operation: Any = describe_consumer_groups,
    with_operations: bool = False,
    asked_for: list[Asked] | None = None,
) -> Any:
    """The descriptions where each request gets the answers given, or made from the ids of groups."""

    def answer(asked: Asked) -> Any:
        if asked.api_key is ApiKeys.FIND_COORDINATOR:
            return home
        if asked_for is not None:
            asked_for.append(asked)
        is_old = asked.api_key is ApiKeys.DESCRIBE_GROUPS
        wanted = asked.message.groups if is_old else asked.message.group_ids
        made = old if is_old else consumer
        if not callable(made):
            return made
        found = [made(group_id) for group_id in wanted]
        error = next((each for each in found if isinstance(each, KafkaError)), None)
        found[0].groups = [group for each in found for group in each.groups] if error is None else []
        return error or found[0]

    return drive(operation(CONTEXT, group_ids, with_operations), answer)


def not_found(group_id: str) -> DescribeGroupsResponse:
    return classic(group_id, error_code=Errors.GROUP_ID_NOT_FOUND)


def refused_as_consumer(code: int) -> Callable[[str], Any]:
    return lambda group_id: new.ConsumerGroupDescribeResponse(
        groups=[new.DescribedGroup(group_id=group_id, error_code=code, error_message="because")]
    )


NOT_NEW = refused_as_consumer(Errors.GROUP_ID_NOT_FOUND)
TOO_OLD = UnsupportedVersionError("an old broker")


@pytest.mark.parametrize("protocol", ["consumer", "connect"])
def test_shares_are_read_only_in_groups_of_consumers(protocol: str) -> None:
    assigned = ConsumerProtocolAssignment(assigned_partitions=[Assigned(topic="t", partitions=[0, 2])])
    member = DescribedGroupMember(
        member_id="m", client_id="c", client_host="/h", member_assignment=encode_versioned(assigned, 0)
    )
    found = describe(
        "g",
        old=lambda group_id: classic(
            group_id, protocol_type=protocol, protocol_data="range", members=[member]
        ),
        operation=describe_classic_groups,
    )["g"]
    expected = (TopicPartition("t", 0), TopicPartition("t", 2)) if protocol == "consumer" else ()
    assert found.members[0].assignment == expected
    assert found.coordinator == HOME


@pytest.mark.parametrize("share", [b"", b"\0", b"\0\0\0\0\0\1what is this"])
def test_a_share_that_nobody_can_read_is_empty(share: bytes) -> None:
    member = DescribedGroupMember(member_id="m", member_assignment=share)
    found = describe(
        "g", old=lambda g: classic(g, protocol_type="consumer", members=[member]), consumer=TOO_OLD
    )
    assert found["g"].members[0].assignment == ()


def test_a_group_of_the_new_protocol_is_described_by_its_own_request() -> None:
    has = new.Assignment(topic_partitions=[new.TopicPartitions(topic_name="t", partitions=[1])])
    shall = new.Assignment(topic_partitions=[new.TopicPartitions(topic_name="t", partitions=[0, 1])])
    members = [
        new.Member(
            member_id=f"m{kind}",
            instance_id="i",
            rack_id="r",
            member_epoch=4,
            assignment=has,
            target_assignment=shall,
            member_type=kind,
        )
        for kind in (-1, 0, 1)
    ]
    group = new.DescribedGroup(
        group_id="g",
        group_state="Stable",
        group_epoch=5,
        assignment_epoch=4,
        assignor_name="uniform",
        members=members,
        authorized_operations=1 << AclOperation.READ | 1 << AclOperation.DELETE | 1,
    )
    found = describe("g", old=not_found, consumer=new.ConsumerGroupDescribeResponse(groups=[group]))["g"]
    assert (found.state, found.protocol_type, found.group_type) == ("Stable", "consumer", "consumer")
    assert (found.partition_assignor, found.group_epoch, found.target_assignment_epoch) == ("uniform", 5, 4)
    assert found.authorized_operations == {AclOperation.READ, AclOperation.DELETE}
    first = found.members[0]
    assert first.assignment == (TopicPartition("t", 1),)
    assert first.target_assignment == (TopicPartition("t", 0), TopicPartition("t", 1))
    assert (first.member_epoch, first.rack_id, first.group_instance_id) == (4, "r", "i")
    assert [member.upgraded for member in found.members] == [None, False, True]


def test_a_share_group_is_described_with_its_epochs() -> None:
    has = share.Assignment(topic_partitions=[share.TopicPartitions(topic_name="t", partitions=[1])])
    member = share.Member(member_id="m", member_epoch=3, client_id="c", client_host="/h", assignment=has)
    group = share.DescribedGroup(
        group_id="s",
        group_state="Stable",
        group_epoch=3,
        assignment_epoch=2,
        assignor_name="simple",
        members=[member],
    )
    answer = share.ShareGroupDescribeResponse(groups=[group])
    found: GroupDescription = describe("s", old=None, consumer=answer, operation=describe_share_groups)["s"]
    assert (found.group_type, found.protocol_type, found.group_epoch) == ("share", "share", 3)
    assert (found.target_assignment_epoch, found.partition_assignor) == (2, "simple")
    (described,) = found.members
    assert (described.assignment, described.member_epoch) == ((TopicPartition("t", 1),), 3)
    assert (described.target_assignment, described.upgraded) == (None, None)
    assert found.authorized_operations is None


OF_CONSUMERS = [
    ApiKeys.CONSUMER_GROUP_DESCRIBE,
    ApiKeys.DESCRIBE_GROUPS,
    ApiKeys.CONSUMER_GROUP_DESCRIBE,
]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (describe_consumer_groups, OF_CONSUMERS),
        (describe_classic_groups, [ApiKeys.DESCRIBE_GROUPS]),
        (describe_share_groups, [ApiKeys.SHARE_GROUP_DESCRIBE]),
        (
            describe_groups,
            [*OF_CONSUMERS, ApiKeys.SHARE_GROUP_DESCRIBE],
        ),
    ],
)
def test_a_group_is_asked_for_as_of_each_type_that_it_may_be_of(
    operation: Any, expected: list[ApiKeys]
) -> None:
    asked: list[Asked] = []
    with pytest.raises(GroupIdNotFoundError, match="Describing groups failed for g"):
        describe("g", old=not_found, consumer=NOT_NEW, operation=operation, asked_for=asked)
    assert [each.api_key for each in asked] == expected


def test_a_group_that_changes_its_protocol_meanwhile_is_found() -> None:
    answers = iter(
        [NOT_NEW("g"), new.ConsumerGroupDescribeResponse(groups=[new.DescribedGroup(group_id="g")])]
    )
    found = describe("g", old=not_found, consumer=lambda _: next(answers))
    assert found["g"].group_type == "consumer"


def test_a_classic_group_of_others_is_no_group_of_consumers() -> None:
    def old(group_id: str) -> Any:
        return classic(group_id, protocol_type="connect" if group_id == "c" else "")

    with pytest.raises(
        AdminError, match=r"Group c is not a consumer group, its protocol is connect\."
    ) as raised:
        describe("c", "simple", old=old, consumer=NOT_NEW)
    assert isinstance(raised.value.errors["c"], GroupIdNotFoundError)
    assert raised.value.results["simple"].is_simple_consumer_group
    found = describe("c", old=old, operation=describe_classic_groups)["c"]
    assert (found.protocol_type, found.is_simple_consumer_group) == ("connect", False)


def test_operations_are_asked_for_only_of_brokers_that_can_tell() -> None:
    asked: list[Asked] = []
    for wanted in (False, True):
        describe(
            "g",
            old=classic,
            operation=describe_classic_groups,
            with_operations=wanted,
            asked_for=asked,
        )
    assert [each.message.include_authorized_operations for each in asked] == [False, True]
    assert [each.options["min_version"] for each in asked] == [None, 3]


def test_without_its_coordinator_a_group_is_described_all_the_same() -> None:
    found = describe("g", old=classic, consumer=NOT_NEW, home=KafkaTimeoutError("not found"))
    assert found["g"].coordinator == Node(-1, "", -1)


def test_a_group_whose_coordinator_is_not_found_hides_no_other() -> None:
    lost = KafkaTimeoutError("not found")

    def answer(asked: Asked) -> Any:
        if asked.api_key is ApiKeys.FIND_COORDINATOR:
            return lost if asked.target == Target.of_group("lost") else HOME
        return classic(asked.message.groups[0])

    with pytest.raises(AdminError) as raised:
        drive(describe_classic_groups(CONTEXT, ["a", "lost"], False), answer)
    assert (list(raised.value.results), raised.value.errors) == (["a"], {"lost": lost})


@pytest.mark.parametrize("first", [NOT_NEW, TOO_OLD])
def test_a_group_that_neither_request_finds_does_not_exist(first: Any) -> None:
    with pytest.raises(GroupIdNotFoundError, match="Describing groups failed for g"):
        describe("g", old=not_found, consumer=first)


def test_a_broker_without_share_groups_has_no_such_group() -> None:
    with pytest.raises(UnsupportedVersionError):
        describe("g", old=None, consumer=TOO_OLD, operation=describe_share_groups)

    def answer(asked: Asked) -> Any:
        if asked.api_key is ApiKeys.DESCRIBE_GROUPS:
            return not_found("g")
        return TOO_OLD

    with pytest.raises(GroupIdNotFoundError):
        drive(describe_groups(CONTEXT, ["g"], False), answer)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (refused_as_consumer(Errors.TOPIC_AUTHORIZATION_FAILED), TopicAuthorizationError),
        (refused_as_consumer(Errors.GROUP_AUTHORIZATION_FAILED), GroupAuthorizationError),
        (KafkaTimeoutError("no answer"), KafkaTimeoutError),
        (NotCoordinatorError("moved"), NotCoordinatorError),
    ],
)
def test_a_group_that_may_exist_is_not_said_to_be_missing(first: Any, told: type[KafkaError]) -> None:
    with pytest.raises(told):
        describe("g", old=not_found, consumer=first)


def test_an_answer_without_the_group_is_an_error_of_that_group() -> None:
    with pytest.raises(UnknownServerError, match="failed for g: The broker's answer says nothing"):
        describe("g", old=DescribeGroupsResponse(groups=[]), consumer=NOT_NEW)
    with pytest.raises(UnknownServerError, match="failed for g: The broker's answer says nothing"):
        describe("g", old=not_found, consumer=new.ConsumerGroupDescribeResponse(groups=[]))
    empty = DeleteGroupsResponse(results=[])
    with pytest.raises(UnknownServerError, match="failed for g: The broker's answer says nothing"):
        drive(delete_groups(CONTEXT, ["g"]), lambda _: empty)


def test_one_group_that_fails_hides_no_other() -> None:
    def old(group_id: str) -> Any:
        return classic(group_id, error_code=Errors.GROUP_AUTHORIZATION_FAILED if group_id == "bad" else 0)

    with pytest.raises(AdminError) as raised:
        describe("a", "bad", "b", old=old, consumer=NOT_NEW)
    assert sorted(raised.value.results) == ["a", "b"]
    assert isinstance(raised.value.errors["bad"], GroupAuthorizationError)
