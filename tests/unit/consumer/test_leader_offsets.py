"""Questions to the leaders of partitions, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kclient.client.request_sender import RequestSender
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.fetch_position import EARLIEST, LATEST, FetchPosition
from kclient.consumer.internals.leader_offsets import Answer, LeaderOffsets
from kclient.errors import Errors, LeaderNotAvailableError, TopicAuthorizationError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import list_offsets, offset_for_leader_epoch

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


class Asked:
    """Answers in the parts in which they were given, and a sender that the test takes round by round."""

    def __init__(self, rig: Any, *, read_committed: bool = False) -> None:
        self.rig = rig
        self.parts: list[Mapping[TopicPartition, Answer]] = []
        self.sender = RequestSender(rig.client, 30_000)
        self.leaders = LeaderOffsets(
            self.sender, rig.core.metadata, read_committed=read_committed, timeout_ms=1234
        )

    def pump(self) -> None:
        for _ in range(5):
            self.sender.poll(0, self.rig.time.monotonic_ms())
            self.rig.answer()
            self.rig.time.advance(10)

    def list(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, Answer]:
        self.leaders.find_offsets(wanted, self.parts.append, self.rig.time.monotonic_ms())
        self.pump()
        return self.answers()

    def epochs(self, positions: Mapping[TopicPartition, FetchPosition]) -> dict[TopicPartition, Answer]:
        now_ms = self.rig.time.monotonic_ms()
        for node, partitions in self.leaders.by_leader(positions)[0].items():
            asked = {tp: positions[tp] for tp in partitions}
            self.leaders.find_epoch_ends(node, asked, self.parts.append, now_ms)
        self.pump()
        return self.answers()

    def answers(self) -> dict[TopicPartition, Answer]:
        return {tp: answer for part in self.parts for tp, answer in part.items()}


@pytest.fixture
def known(rig: Any) -> Any:
    """A consumer that knows the topics, with nothing of its own to ask for any more."""
    rig.nodes[1] = Node(1, "mock", 9093)
    rig.leaders[T1] = (1, 7)
    rig.fill(T0, 5)
    rig.fill(T1, 9, start=3)
    rig.consumer.assign([T0, T1, U0])
    for tp in (T0, T1, U0):
        rig.consumer.position(tp)
    rig.consumer.pause([T0, T1, U0])
    rig.rounds(5)
    rig.client.sent.clear()
    return rig


def offsets_of(rig: Any) -> list[Any]:
    return list(rig.sent(ApiKeys.LIST_OFFSETS))


def refuse(code: int) -> Callable[[Any, int], Any]:
    def handler(request: Any, version: int) -> Any:
        topics = [
            list_offsets.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return list_offsets.ListOffsetsResponse(topics=topics)

    return handler


def test_each_leader_is_asked_once_for_its_partitions_and_all_are_answered(known: Any) -> None:
    asked = Asked(known)
    found = asked.list({T0: LATEST, U0: LATEST, T1: EARLIEST})
    assert {tp: answer.offset for tp, answer in found.items()} == {T0: 5, U0: 0, T1: 3}
    assert all(answer.error is None for answer in found.values())
    assert sorted(len(part) for part in asked.parts) == [1, 2]
    requests = offsets_of(known)
    assert len(requests) == 2
    assert {request.timeout_ms for request in requests} == {1234}
    epochs = {
        TopicPartition(topic.name, partition.partition_index): partition.current_leader_epoch
        for request in requests
        for topic in request.topics
        for partition in topic.partitions
    }
    assert epochs == {T0: 5, U0: 5, T1: 7}


@pytest.mark.parametrize("read_committed", [False, True])
def test_the_end_is_that_of_what_the_consumer_may_read(known: Any, read_committed: bool) -> None:
    Asked(known, read_committed=read_committed).list({T0: LATEST})
    assert [request.isolation_level for request in offsets_of(known)] == [int(read_committed)]


def test_a_partition_without_a_leader_is_told_at_once_and_asks_for_metadata(known: Any) -> None:
    known.metadata_held = True
    missing = TopicPartition("t", 8)
    found = Asked(known).list({missing: LATEST, T0: LATEST})
    assert isinstance(found[missing].error, LeaderNotAvailableError)
    assert found[T0].offset == 5
    assert known.core.metadata.update_requested


@pytest.mark.parametrize(
    ("code", "moved"),
    [
        (Errors.NOT_LEADER_OR_FOLLOWER, True),
        (Errors.FENCED_LEADER_EPOCH, True),
        (Errors.UNKNOWN_TOPIC_OR_PARTITION, True),
        (Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT, False),
        (Errors.TOPIC_AUTHORIZATION_FAILED, False),
    ],
)
def test_an_error_of_a_partition_is_its_answer_and_a_leader_that_moved_asks_for_metadata(
    known: Any, code: int, moved: bool
) -> None:
    known.metadata_held = True
    known.on(ApiKeys.LIST_OFFSETS, refuse(code))
    error = Asked(known).list({T0: LATEST})[T0].error
    assert error is not None
    assert error.code == code
    assert isinstance(error, TopicAuthorizationError) == (code == Errors.TOPIC_AUTHORIZATION_FAILED)
    assert known.core.metadata.update_requested == moved


def test_a_connection_that_breaks_fails_all_that_was_asked_for_on_it(known: Any) -> None:
    known.metadata_held = True
    known.on(ApiKeys.LIST_OFFSETS, ConnectionError())
    found = Asked(known).list({T0: LATEST, U0: LATEST})
    errors = {tp: answer.error for tp, answer in found.items()}
    assert set(errors) == {T0, U0}
    assert all(error is not None and error.retriable for error in errors.values())
    assert known.core.metadata.update_requested


def test_partitions_that_an_answer_leaves_out_are_answered_with_an_error(known: Any) -> None:
    known.on(ApiKeys.LIST_OFFSETS, list_offsets.ListOffsetsResponse(topics=[]))
    error = Asked(known).list({T0: LATEST})[T0].error
    assert error is not None
    assert "left partitions out" in str(error)


def test_an_epochs_end_is_asked_for_with_the_positions_epochs(known: Any) -> None:
    partition = offset_for_leader_epoch.EpochEndOffset(partition=0, leader_epoch=4, end_offset=3)
    unknown = offset_for_leader_epoch.EpochEndOffset(partition=1, leader_epoch=-1, end_offset=-1)
    known.on(
        ApiKeys.OFFSET_FOR_LEADER_EPOCH,
        *[
            lambda request, version: offset_for_leader_epoch.OffsetForLeaderEpochResponse(
                topics=[
                    offset_for_leader_epoch.OffsetForLeaderTopicResult(
                        topic="t",
                        partitions=[partition if request.topics[0].partitions[0].partition == 0 else unknown],
                    )
                ]
            )
        ]
        * 2,
    )
    metadata = known.core.metadata
    positions = {tp: FetchPosition(4, 4, metadata.leader_and_epoch(tp)) for tp in (T0, T1)}
    found = Asked(known).epochs(positions)
    assert found == {T0: Answer(3, -1, 4), T1: Answer(-1, -1, None)}
    asked = [
        (each.partition, each.current_leader_epoch, each.leader_epoch)
        for request in known.sent(ApiKeys.OFFSET_FOR_LEADER_EPOCH)
        for topic in request.topics
        for each in topic.partitions
    ]
    assert sorted(asked) == [(0, 5, 4), (1, 7, 4)]


def test_what_an_answer_about_epochs_leaves_out_has_no_answer(known: Any) -> None:
    known.on(ApiKeys.OFFSET_FOR_LEADER_EPOCH, offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=[]))
    position = FetchPosition(4, 4, known.core.metadata.leader_and_epoch(T0))
    asked = Asked(known)
    assert asked.epochs({T0: position}) == {}
    assert asked.parts == [{}]
