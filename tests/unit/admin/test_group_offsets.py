"""Offsets of groups of consumers and of share groups, by requests that are answered by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.admin_operations import CONTEXT, Asked, drive
from kclient.admin import SharePartitionOffsetInfo
from kclient.admin.internals.driver import Target
from kclient.admin.internals.operations.group_offsets import (
    alter_group_offsets,
    delete_group_offsets,
    list_group_offsets,
    list_groups_offsets,
)
from kclient.admin.internals.operations.share_group_offsets import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    list_share_group_offsets,
)
from kclient.common.node import Node
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    Errors,
    GroupAuthorizationError,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    GroupSubscribedToTopicError,
    NotCoordinatorError,
    TopicAuthorizationError,
    UnknownMemberIdError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import alter_share_group_offsets as altered
from kclient.protocol.messages import delete_share_group_offsets as deleted
from kclient.protocol.messages import describe_share_group_offsets as starts
from kclient.protocol.messages import offset_commit as commit
from kclient.protocol.messages import offset_delete as forget
from kclient.protocol.messages import offset_fetch as fetch

HOME = Node(3, "home", 9092)
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def answered(operation: Any, answer: Callable[[Asked], Any], asked: list[Asked] | None = None) -> Any:
    def each(call: Asked) -> Any:
        if call.api_key is ApiKeys.FIND_COORDINATOR:
            return HOME
        if asked is not None:
            asked.append(call)
        return answer(call)

    return drive(operation, each)


def fetched(group_id: str, *, code: int = 0, **partitions: tuple[int, int]) -> fetch.OffsetFetchResponseGroup:
    """A group of which `t0=(5, 0)` is offset 5 of partition 0 of t, without an error."""
    return fetch.OffsetFetchResponseGroup(
        group_id=group_id,
        error_code=code,
        topics=[
            fetch.OffsetFetchResponseTopics(
                name=name[0],
                partitions=[
                    fetch.OffsetFetchResponsePartitions(
                        partition_index=int(name[1:]),
                        committed_offset=offset,
                        committed_leader_epoch=2,
                        metadata="m",
                        error_code=error,
                    )
                ],
            )
            for name, (offset, error) in partitions.items()
        ],
    )


class TestListing:
    def test_one_request_asks_a_coordinator_for_all_of_its_groups(self) -> None:
        asked: list[Asked] = []
        answer = fetch.OffsetFetchResponse(groups=[fetched("a", t0=(5, 0)), fetched("b", t1=(-1, 0))])
        operation = list_groups_offsets(CONTEXT, {"a": None, "b": [T1]}, True)
        found = answered(operation, lambda _: answer, asked)
        assert found == {"a": {T0: OffsetAndMetadata(5, "m", 2)}, "b": {T1: None}}
        (call,) = asked
        assert (call.options, call.retry) == ({"min_version": 8, "max_version": 9}, None)
        request = call.message(8)
        assert request.require_stable
        assert [(group.group_id, group.topics) for group in request.groups] == [
            ("a", None),
            ("b", [fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[1])]),
        ]

    def test_brokers_that_take_one_group_a_request_are_asked_for_one_after_the_other(self) -> None:
        old = {
            group: fetch.OffsetFetchResponse(
                topics=[
                    fetch.OffsetFetchResponseTopic(
                        name="t",
                        partitions=[
                            fetch.OffsetFetchResponsePartition(partition_index=0, committed_offset=offset)
                        ],
                    )
                ]
            )
            for group, offset in (("a", 1), ("b", 2))
        }

        def answer(call: Asked) -> Any:
            if call.options["min_version"] == 8:
                return UnsupportedVersionError("one group alone")
            return old[call.message(7).group_id]

        found = answered(list_groups_offsets(CONTEXT, {"a": None, "b": None}, False), answer)
        assert {group: one[T0].offset for group, one in found.items()} == {"a": 1, "b": 2}

    def test_a_group_that_fails_hides_no_other(self) -> None:
        groups = [
            fetched("a", t0=(5, 0)),
            fetched("b", code=Errors.GROUP_AUTHORIZATION_FAILED),
            fetched("c", t0=(-1, Errors.TOPIC_AUTHORIZATION_FAILED)),
        ]
        operation = list_groups_offsets(CONTEXT, {"a": None, "b": None, "c": [T0]}, False)
        with pytest.raises(AdminError) as raised:
            answered(operation, lambda _: fetch.OffsetFetchResponse(groups=groups))
        assert list(raised.value.results) == ["a"]
        kinds = {group: type(error) for group, error in raised.value.errors.items()}
        assert kinds == {"b": GroupAuthorizationError, "c": TopicAuthorizationError}

    @pytest.mark.parametrize(
        ("code", "error"),
        [
            (Errors.NOT_COORDINATOR, NotCoordinatorError),
            (Errors.UNSTABLE_OFFSET_COMMIT, UnstableOffsetCommitError),
        ],
    )
    def test_a_group_alone_is_tried_again_by_its_call(self, code: int, error: type[Exception]) -> None:
        asked: list[Asked] = []
        fine = fetch.OffsetFetchResponse(groups=[fetched("a")])
        assert answered(list_group_offsets(CONTEXT, "a", None, False), lambda _: fine, asked) == {}
        passing = fetched("a", code=code), fetched("a", t0=(-1, code))
        for group in passing:
            assert isinstance(asked[0].retry(fetch.OffsetFetchResponse(groups=[group])), error)
        assert asked[0].retry(fine) is None

    def test_of_several_groups_one_that_is_not_settled_is_asked_for_alone(self) -> None:
        asked: list[Asked] = []

        def answer(call: Asked) -> Any:
            groups = [group.group_id for group in call.message(8).groups]
            unsettled = Errors.UNSTABLE_OFFSET_COMMIT if len(groups) > 1 else 0
            return fetch.OffsetFetchResponse(
                groups=[fetched(group, t0=(7, unsettled if group == "b" else 0)) for group in groups]
            )

        found = answered(list_groups_offsets(CONTEXT, {"a": None, "b": None}, True), answer, asked)
        assert {group: one[T0].offset for group, one in found.items()} == {"a": 7, "b": 7}
        assert [call.target for call in asked] == [Target.of_group("a"), Target.of_group("b")]


def committed(**codes: int) -> Any:
    return commit.OffsetCommitResponse(
        topics=[
            commit.OffsetCommitResponseTopic(
                name=name[0],
                partitions=[
                    commit.OffsetCommitResponsePartition(partition_index=int(name[1:]), error_code=code)
                ],
            )
            for name, code in codes.items()
        ]
    )


class TestAltering:
    def test_offsets_are_committed_for_no_member(self) -> None:
        asked: list[Asked] = []
        offsets = {T0: OffsetAndMetadata(5, "m", 2), U0: OffsetAndMetadata(0)}
        answer = committed(t0=0, u0=0)
        assert answered(alter_group_offsets(CONTEXT, "g", offsets), lambda _: answer, asked) == {
            T0: None,
            U0: None,
        }
        (call,) = asked
        request = call.message
        assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", -1, "")
        sent = [
            (
                topic.name,
                p.partition_index,
                p.committed_offset,
                p.committed_leader_epoch,
                p.committed_metadata,
            )
            for topic in request.topics
            for p in topic.partitions
        ]
        assert sent == [("t", 0, 5, 2, "m"), ("u", 0, 0, -1, "")]
        assert call.options["max_version"] == 9  # later ones name topics by id
        assert isinstance(call.retry(committed(t0=Errors.NOT_COORDINATOR)), NotCoordinatorError)

    def test_partitions_that_fail_and_those_that_are_left_out_are_named(self) -> None:
        offsets = dict.fromkeys([T0, T1, U0], OffsetAndMetadata(1))
        answer = committed(t0=0, t1=Errors.UNKNOWN_MEMBER_ID)
        with pytest.raises(AdminError) as raised:
            answered(alter_group_offsets(CONTEXT, "g", offsets), lambda _: answer)
        kinds = {tp: type(error) for tp, error in raised.value.errors.items()}
        assert kinds == {T1: UnknownMemberIdError, U0: UnknownServerError}


class TestDeleting:
    def test_partitions_are_deleted_and_those_that_are_read_are_named(self) -> None:
        codes = {"t": 0, "u": Errors.GROUP_SUBSCRIBED_TO_TOPIC}
        answer = forget.OffsetDeleteResponse(
            topics=[
                forget.OffsetDeleteResponseTopic(
                    name=topic,
                    partitions=[forget.OffsetDeleteResponsePartition(partition_index=0, error_code=code)],
                )
                for topic, code in codes.items()
            ]
        )
        with pytest.raises(AdminError) as raised:
            answered(delete_group_offsets(CONTEXT, "g", [T0, U0]), lambda _: answer)
        assert list(raised.value.results) == [T0]
        assert isinstance(raised.value.errors[U0], GroupSubscribedToTopicError)

    def test_an_error_of_the_group_is_raised(self) -> None:
        answer = forget.OffsetDeleteResponse(error_code=Errors.GROUP_ID_NOT_FOUND)
        with pytest.raises(GroupIdNotFoundError):
            answered(delete_group_offsets(CONTEXT, "g", [T0]), lambda _: answer)


class TestShareGroups:
    def test_starts_are_listed_of_several_groups_at_once(self) -> None:
        def group(name: str, start: int, lag: int) -> starts.DescribeShareGroupOffsetsResponseGroup:
            partition = starts.DescribeShareGroupOffsetsResponsePartition(
                partition_index=0, start_offset=start, leader_epoch=min(start, 4), lag=lag
            )
            topic = starts.DescribeShareGroupOffsetsResponseTopic(topic_name="t", partitions=[partition])
            return starts.DescribeShareGroupOffsetsResponseGroup(group_id=name, topics=[topic])

        asked: list[Asked] = []
        answer = starts.DescribeShareGroupOffsetsResponse(
            groups=[group("a", 9, 3), group("b", -1, -1), group("c", 9, -1)]
        )
        specs = {"a": None, "b": [T0], "c": None}
        found = answered(list_share_group_offsets(CONTEXT, specs), lambda _: answer, asked)
        assert found == {
            "a": {T0: SharePartitionOffsetInfo(9, 4, 3)},
            "b": {T0: None},
            "c": {T0: SharePartitionOffsetInfo(9, 4, None)},
        }
        (call,) = asked
        assert [each.topics is None for each in call.message.groups] == [True, False, True]

    def test_a_group_without_a_start_of_a_partition_that_may_not_be_described_is_named(self) -> None:
        partition = starts.DescribeShareGroupOffsetsResponsePartition(
            partition_index=0, error_code=Errors.TOPIC_AUTHORIZATION_FAILED, error_message="no"
        )
        topic = starts.DescribeShareGroupOffsetsResponseTopic(topic_name="t", partitions=[partition])
        fine, bad = (
            starts.DescribeShareGroupOffsetsResponseGroup(group_id="a"),
            starts.DescribeShareGroupOffsetsResponseGroup(group_id="b", topics=[topic]),
        )
        answer = starts.DescribeShareGroupOffsetsResponse(groups=[fine, bad])
        with pytest.raises(AdminError) as raised:
            answered(list_share_group_offsets(CONTEXT, {"a": None, "b": [T0]}), lambda _: answer)
        assert raised.value.results == {"a": {}}
        assert isinstance(raised.value.errors["b"], TopicAuthorizationError)

    def test_starts_are_altered(self) -> None:
        asked: list[Asked] = []
        answer = altered.AlterShareGroupOffsetsResponse(
            responses=[
                altered.AlterShareGroupOffsetsResponseTopic(
                    topic_name="t",
                    partitions=[
                        altered.AlterShareGroupOffsetsResponsePartition(partition_index=0),
                        altered.AlterShareGroupOffsetsResponsePartition(
                            partition_index=1, error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION
                        ),
                    ],
                )
            ]
        )
        with pytest.raises(AdminError) as raised:
            answered(alter_share_group_offsets(CONTEXT, "s", {T1: 4, T0: 3}), lambda _: answer, asked)
        assert list(raised.value.results) == [T0]
        assert isinstance(raised.value.errors[T1], UnknownTopicOrPartitionError)
        (topic,) = asked[0].message.topics
        assert [(each.partition_index, each.start_offset) for each in topic.partitions] == [(0, 3), (1, 4)]

    def test_a_group_with_members_keeps_its_starts(self) -> None:
        refused = {"error_code": Errors.NON_EMPTY_GROUP, "error_message": "members"}
        answers = {
            ApiKeys.ALTER_SHARE_GROUP_OFFSETS: altered.AlterShareGroupOffsetsResponse(**refused),
            ApiKeys.DELETE_SHARE_GROUP_OFFSETS: deleted.DeleteShareGroupOffsetsResponse(**refused),
        }
        for operation in (
            alter_share_group_offsets(CONTEXT, "s", {T0: 3}),
            delete_share_group_offsets(CONTEXT, "s", ["t"]),
        ):
            with pytest.raises(GroupNotEmptyError, match="members"):
                answered(operation, lambda call: answers[call.api_key])

    def test_topics_are_deleted_as_a_whole(self) -> None:
        topics = {"t": 0, "u": Errors.UNKNOWN_TOPIC_OR_PARTITION}
        answer = deleted.DeleteShareGroupOffsetsResponse(
            responses=[
                deleted.DeleteShareGroupOffsetsResponseTopic(topic_name=topic, error_code=code)
                for topic, code in topics.items()
            ]
        )
        with pytest.raises(AdminError) as raised:
            answered(delete_share_group_offsets(CONTEXT, "s", ["t", "u"]), lambda _: answer)
        assert list(raised.value.results) == ["t"]
        assert isinstance(raised.value.errors["u"], UnknownTopicOrPartitionError)
