"""Operations on groups as generators, whose requests are answered by hand: filters, both kinds of groups, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from kclient.admin.internals.context import OperationContext
from kclient.admin.internals.driver import Role, Target
from kclient.admin.internals.operations.groups import delete_groups, describe_groups, list_groups
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    Errors,
    GroupAuthorizationError,
    GroupIdNotFoundError,
    GroupNotEmptyError,
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
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition as Assigned
from kclient.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from kclient.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kclient.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from kclient.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker

HOME = Node(3, "home", 9092)


class Asked:
    """One call, noted instead of sent."""

    def __init__(
        self, api_key: ApiKeys, message: Any, target: Target | None, retry: Any, options: dict[str, Any]
    ) -> None:
        self.api_key, self.message, self.target, self.retry = api_key, message, target, retry
        self.options = options


class Context:
    """Notes calls; what it returns in place of futures is yielded by the operation."""

    def call(
        self,
        api_key: ApiKeys,
        message: Any,
        target: Target | None = None,
        retry_on: Any = None,
        **options: Any,
    ) -> Any:
        return Asked(api_key, message, target, retry_on, options)

    def coordinator(self, target: Target) -> Any:
        return Asked(ApiKeys.FIND_COORDINATOR, None, target, None, {})


CONTEXT = cast(OperationContext, Context())


def drive(operation: Iterator[Any], answer: Callable[[Asked], Any]) -> Any:
    """Answer every call of an operation."""
    generator = cast(Any, operation)
    try:
        asked = next(generator)
        while True:
            asked = generator.send([answer(each) for each in asked])
    except StopIteration as end:
        return end.value


def classic(group_id: str, **fields: Any) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[DescribedGroup(group_id=group_id, **fields)])


def describe(*group_ids: str, old: Any, consumer: Any = None, home: Any = HOME) -> Any:
    """The descriptions where each request gets the answer given, or made from the group's id."""

    def answer(asked: Asked) -> Any:
        if asked.api_key is ApiKeys.FIND_COORDINATOR:
            return home
        is_old = asked.api_key is ApiKeys.DESCRIBE_GROUPS
        (group_id,) = asked.message.groups if is_old else asked.message.group_ids
        made = old if is_old else consumer
        return made(group_id) if callable(made) else made

    return drive(cast(Any, describe_groups(CONTEXT, group_ids)), answer)


def not_found(group_id: str) -> DescribeGroupsResponse:
    return classic(group_id, error_code=Errors.GROUP_ID_NOT_FOUND)


def refused_as_consumer(code: int) -> Callable[[str], Any]:
    return lambda group_id: new.ConsumerGroupDescribeResponse(
        groups=[new.DescribedGroup(group_id=group_id, error_code=code, error_message="because")]
    )


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

    assert drive(cast(Any, list_groups(CONTEXT, states, types)), answer) == {}
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
        drive(cast(Any, list_groups(CONTEXT, (), ())), answer)
    assert sorted(raised.value.results) == ["a", "b"]
    assert sorted(raised.value.errors) == ["broker 2", "broker 3"]


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
    )["g"]
    expected = (TopicPartition("t", 0), TopicPartition("t", 2)) if protocol == "consumer" else ()
    assert found.members[0].assignment == expected
    assert found.coordinator == HOME


@pytest.mark.parametrize("share", [b"", b"\0", b"\0\0\0\0\0\1what is this"])
def test_a_share_that_nobody_can_read_is_empty(share: bytes) -> None:
    member = DescribedGroupMember(member_id="m", member_assignment=share)
    found = describe("g", old=lambda g: classic(g, protocol_type="consumer", members=[member]))
    assert found["g"].members[0].assignment == ()


def test_a_group_of_the_new_protocol_is_described_by_its_own_request() -> None:
    share = new.Assignment(topic_partitions=[new.TopicPartitions(topic_name="t", partitions=[1])])
    group = new.DescribedGroup(
        group_id="g",
        group_state="Stable",
        assignor_name="uniform",
        members=[new.Member(member_id="m", assignment=share)],
    )
    found = describe("g", old=not_found, consumer=new.ConsumerGroupDescribeResponse(groups=[group]))["g"]
    assert (found.state, found.protocol_type, found.members[0].assignment) == (
        "Stable",
        "consumer",
        (TopicPartition("t", 1),),
    )


def test_without_its_coordinator_a_group_is_described_all_the_same() -> None:
    found = describe("g", old=classic, home=KafkaTimeoutError("not found"))
    assert found["g"].coordinator == Node(-1, "", -1)


@pytest.mark.parametrize(
    "second", [refused_as_consumer(Errors.GROUP_ID_NOT_FOUND), UnsupportedVersionError("an old broker")]
)
def test_a_group_that_neither_request_finds_does_not_exist(second: Any) -> None:
    with pytest.raises(GroupIdNotFoundError, match="Describing groups failed for g"):
        describe("g", old=not_found, consumer=second)


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (refused_as_consumer(Errors.TOPIC_AUTHORIZATION_FAILED), TopicAuthorizationError),
        (refused_as_consumer(Errors.GROUP_AUTHORIZATION_FAILED), GroupAuthorizationError),
        (KafkaTimeoutError("no answer"), KafkaTimeoutError),
        (NotCoordinatorError("moved"), NotCoordinatorError),
    ],
)
def test_a_group_that_may_exist_is_not_said_to_be_missing(second: Any, told: type[KafkaError]) -> None:
    with pytest.raises(told):
        describe("g", old=not_found, consumer=second)


def test_an_answer_without_the_group_is_an_error_of_that_group() -> None:
    with pytest.raises(UnknownServerError, match="failed for g: The coordinator's answer says nothing"):
        describe("g", old=DescribeGroupsResponse(groups=[]))
    with pytest.raises(UnknownServerError, match="failed for g: The coordinator's answer says nothing"):
        describe("g", old=not_found, consumer=new.ConsumerGroupDescribeResponse(groups=[]))
    empty = DeleteGroupsResponse(results=[])
    with pytest.raises(UnknownServerError, match="failed for g: The coordinator's answer says nothing"):
        drive(cast(Any, delete_groups(CONTEXT, ["g"])), lambda _: empty)


def test_one_group_that_fails_hides_no_other() -> None:
    def old(group_id: str) -> Any:
        return classic(group_id, error_code=Errors.GROUP_AUTHORIZATION_FAILED if group_id == "bad" else 0)

    with pytest.raises(AdminError) as raised:
        describe("a", "bad", "b", old=old)
    assert sorted(raised.value.results) == ["a", "b"]
    assert isinstance(raised.value.errors["bad"], GroupAuthorizationError)


def test_groups_are_deleted_one_by_one_at_their_coordinators() -> None:
    asked: list[Asked] = []

    def answer(each: Asked) -> Any:
        asked.append(each)
        (group_id,) = each.message.groups_names
        code = Errors.NON_EMPTY_GROUP if group_id == "busy" else 0
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=group_id, error_code=code)])

    assert drive(cast(Any, delete_groups(CONTEXT, ["a", "b"])), answer) == {"a": None, "b": None}
    assert [each.target for each in asked] == [Target.of_group("a"), Target.of_group("b")]
    with pytest.raises(GroupNotEmptyError, match="Deleting groups failed for busy"):
        drive(cast(Any, delete_groups(CONTEXT, ["busy"])), answer)


def test_only_a_coordinator_that_moved_is_looked_up_again() -> None:
    (asked,) = next(cast(Any, delete_groups(CONTEXT, ["g"])))

    def retried(code: int) -> object:
        return asked.retry(DeleteGroupsResponse(results=[DeletableGroupResult(error_code=code)]))

    assert isinstance(retried(Errors.NOT_COORDINATOR), NotCoordinatorError)
    assert retried(Errors.NON_EMPTY_GROUP) is None
    assert retried(0) is None
