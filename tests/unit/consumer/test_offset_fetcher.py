"""Finding where to read: resets, positions after a truncation, and offsets that the application asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.consumer.model import ConsumerModel
from kclient.common.node import Node
from kclient.common.offsets import OffsetAndTimestamp
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, KafkaTimeoutError, LogTruncationError, TopicAuthorizationError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import offset_for_leader_epoch
from kclient.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
LATEST, EARLIEST = -1, -2
MakeRig = Callable[..., ConsumerModel]


def found(*partitions: ListOffsetsPartitionResponse) -> ListOffsetsResponse:
    topic = ListOffsetsTopicResponse(name="t", partitions=list(partitions))
    return ListOffsetsResponse(topics=[topic])


def at(
    offset: int, *, number: int = 0, time_ms: int = -1, epoch: int = -1, error: int = 0
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=number, offset=offset, timestamp=time_ms, leader_epoch=epoch, error_code=error
    )


def refused(error: Errors) -> ListOffsetsResponse:
    return found(at(-1, error=int(error)))


def asked_times(rig: ConsumerModel) -> list[int]:
    """The timestamps of all requests, one for each partition that was asked for."""
    return [p.timestamp for r in rig.sent(ApiKeys.LIST_OFFSETS) for t in r.topics for p in t.partitions]


class TestResets:
    @pytest.mark.parametrize(("policy", "position"), [("earliest", 4), ("latest", 13)])
    def test_follow_the_policy(self, make_rig: MakeRig, policy: str, position: int) -> None:
        rig = make_rig(auto_offset_reset=policy)
        rig.fill(T0, 9, start=4)
        rig.consumer.assign([T0])
        assert rig.consumer.position(T0) == position

    def test_ask_for_all_partitions_of_a_broker_at_once(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.consumer.assign([T0, T1, U0])
        rig.rounds()
        (request,) = rig.sent(ApiKeys.LIST_OFFSETS)
        assert {t.name: sorted(p.partition_index for p in t.partitions) for t in request.topics} == {
            "t": [0, 1],
            "u": [0],
        }
        assert {p.current_leader_epoch for t in request.topics for p in t.partitions} == {5}

    def test_ask_each_leader_for_its_own(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.nodes[1] = Node(1, "other", 9092)
        rig.leaders[T1] = (1, 5)
        rig.consumer.assign([T0, T1])
        rig.rounds()
        sent = [each for each in rig.client.sent if each.request.api_key is ApiKeys.LIST_OFFSETS]
        asked = {each.request.node_id: each.message.topics[0].partitions[0].partition_index for each in sent}
        assert asked == {0: 0, 1: 1}

    def test_to_a_time_that_nothing_is_younger_than_go_to_the_end(self, make_rig: MakeRig) -> None:
        rig = make_rig(auto_offset_reset="by_duration:PT1H")
        rig.fill(T0, 9)
        rig.on(ApiKeys.LIST_OFFSETS, found(at(-1)))
        rig.consumer.assign([T0])
        hour_ago_ms = rig.time.wall_ms() - 3_600_000
        assert rig.consumer.position(T0) == 9
        first, second = asked_times(rig)
        assert hour_ago_ms <= first <= hour_ago_ms + 1000
        assert second == LATEST

    @pytest.mark.parametrize(
        "error",
        [Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH, Errors.UNKNOWN_TOPIC_OR_PARTITION],
    )
    def test_that_meet_the_wrong_leader_are_repeated_after_a_backoff(
        self, make_rig: MakeRig, error: Errors
    ) -> None:
        rig = make_rig(retry_backoff_ms=100)
        rig.fill(T0, 9, start=4)
        rig.on(ApiKeys.LIST_OFFSETS, refused(error))
        rig.consumer.assign([T0])
        assert rig.consumer.position(T0) == 4
        first, second = (each for each in rig.client.sent if each.request.api_key is ApiKeys.LIST_OFFSETS)
        assert 80 <= second.sent_ms - first.sent_ms <= 140

    def test_that_are_cut_off_are_repeated(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.fill(T0, 9, start=4)
        rig.on(ApiKeys.LIST_OFFSETS, ConnectionError())
        rig.consumer.assign([T0])
        assert rig.consumer.position(T0) == 4
        assert len(rig.sent(ApiKeys.LIST_OFFSETS)) == 2

    def test_that_are_answered_without_the_partition_do_not_wait_for_ever(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.on(ApiKeys.LIST_OFFSETS, found(at(7, number=1)))
        rig.consumer.assign([T0])
        with pytest.raises(Exception, match="left partitions out of its ListOffsets answer"):
            rig.consumer.poll(1000)

    def test_that_are_not_allowed_are_raised(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.on(ApiKeys.LIST_OFFSETS, refused(Errors.TOPIC_AUTHORIZATION_FAILED))
        rig.consumer.assign([T0])
        with pytest.raises(TopicAuthorizationError, match="'t'"):
            rig.consumer.poll(1000)

    def test_do_not_move_a_position_that_the_application_chose_meanwhile(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.fill(T0, 9, start=4)
        rig.handlers[ApiKeys.LIST_OFFSETS] = lambda _request, _version: None
        rig.consumer.assign([T0])
        rig.rounds()
        rig.consumer.seek(T0, 8)
        late = next(each for each in rig.client.requests if each.request.api_key is ApiKeys.LIST_OFFSETS)
        rig.client.respond(found(at(4)), matcher=lambda message: message is late.message)
        rig.rounds()
        assert rig.consumer.position(T0) == 8


class TestQuestions:
    def test_a_time_is_answered_with_the_record_that_is_there(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.on(ApiKeys.LIST_OFFSETS, found(at(7, time_ms=1234, epoch=3), at(-1, number=1)))
        answers = rig.consumer.offsets_for_times({T0: 1000, T1: 2000})
        assert answers == {T0: OffsetAndTimestamp(7, 1234, 3), T1: None}
        assert sorted(asked_times(rig)) == [1000, 2000]

    def test_only_what_is_missing_is_asked_again(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        error = int(Errors.NOT_LEADER_OR_FOLLOWER)
        rig.on(ApiKeys.LIST_OFFSETS, found(at(7), at(-1, number=1, error=error)), found(at(9, number=1)))
        assert rig.consumer.end_offsets([T0, T1]) == {T0: 7, T1: 9}
        last = rig.sent(ApiKeys.LIST_OFFSETS)[-1]
        assert [p.partition_index for t in last.topics for p in t.partitions] == [1]

    def test_a_log_from_before_timestamps_has_no_answer(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.on(ApiKeys.LIST_OFFSETS, refused(Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT))
        assert rig.consumer.offsets_for_times({T0: 1000}) == {T0: None}

    def test_a_partition_without_a_leader_is_answered_when_it_has_one(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.fill(T0, 9, start=4)
        rig.leaders[T0] = (-1, 5)
        usual, answers = rig.topic_metadata, []

        def elected_after_three_answers(name: str) -> Any:
            answers.append(name)
            if len(answers) > 3:
                rig.leaders[T0] = (0, 6)
            return usual(name)

        rig.topic_metadata = elected_after_three_answers  # type: ignore[method-assign]
        assert rig.consumer.beginning_offsets([T0]) == {T0: 4}
        assert len(rig.sent(ApiKeys.LIST_OFFSETS)) == 1

    def test_what_never_comes_is_a_timeout_that_says_of_what_and_why(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.handlers[ApiKeys.LIST_OFFSETS] = lambda _request, _version: refused(Errors.OFFSET_NOT_AVAILABLE)
        with pytest.raises(KafkaTimeoutError, match=r"t-0.*OFFSET_NOT_AVAILABLE"):
            rig.consumer.end_offsets([T0], timeout_ms=1000)

    def test_what_may_not_be_told_is_raised_at_once(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.on(ApiKeys.LIST_OFFSETS, refused(Errors.TOPIC_AUTHORIZATION_FAILED))
        with pytest.raises(TopicAuthorizationError):
            rig.consumer.end_offsets([T0])
        assert len(rig.sent(ApiKeys.LIST_OFFSETS)) == 1

    def test_the_end_is_that_of_the_isolation_level(self, make_rig: MakeRig) -> None:
        for level, number in (("read_uncommitted", 0), ("read_committed", 1)):
            rig = make_rig(isolation_level=level)
            rig.consumer.end_offsets([T0])
            assert rig.sent(ApiKeys.LIST_OFFSETS)[0].isolation_level == number


class TestTruncation:
    """A new leader is asked where the epoch of the last record that was read ends (KIP-320)."""

    def read_five_then(self, rig: ConsumerModel, epoch: int, end: int, error: int = 0) -> None:
        """Read to offset 5 of 8, then change the leader, who answers with the end of an epoch."""
        rig.fill(T0, 8)
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 0)
        assert len(rig.consumer.poll(1000)) == 5
        answer = offset_for_leader_epoch.EpochEndOffset(
            partition=0, leader_epoch=epoch, end_offset=end, error_code=error
        )
        topic = offset_for_leader_epoch.OffsetForLeaderTopicResult(topic="t", partitions=[answer])
        rig.on(
            ApiKeys.OFFSET_FOR_LEADER_EPOCH,
            offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=[topic]),
        )
        rig.leaders[T0] = (0, 6)
        rig.core.metadata.request_update()
        rig.rounds(20)

    def next_offset(self, rig: ConsumerModel) -> int:
        return int(next(iter(rig.consumer.poll(1000))).offset)

    def test_a_position_at_the_very_end_of_its_epoch_stays(self, make_rig: MakeRig) -> None:
        rig = make_rig(auto_offset_reset="none")
        self.read_five_then(rig, epoch=5, end=5)
        assert self.next_offset(rig) == 5

    def test_a_position_beyond_it_moves_back_to_where_the_logs_part(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        self.read_five_then(rig, epoch=4, end=4)
        assert self.next_offset(rig) == 4

    def test_where_nobody_knows_where_they_part_the_policy_decides(self, make_rig: MakeRig) -> None:
        rig = make_rig(auto_offset_reset="earliest")
        self.read_five_then(rig, epoch=-1, end=-1)
        assert self.next_offset(rig) == 0

    @pytest.mark.parametrize(("epoch", "end", "divergent"), [(4, 4, 4), (-1, -1, -1)])
    def test_without_a_policy_it_is_an_error(
        self, make_rig: MakeRig, epoch: int, end: int, divergent: int
    ) -> None:
        rig = make_rig(auto_offset_reset="none")
        self.read_five_then(rig, epoch, end)
        with pytest.raises(LogTruncationError) as caught:
            rig.consumer.poll(1000)
        assert caught.value.divergent_offsets == {T0: divergent}

    def test_an_error_that_passes_is_asked_again(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        self.read_five_then(rig, -1, -1, error=int(Errors.FENCED_LEADER_EPOCH))
        assert self.next_offset(rig) == 5
        assert len(rig.sent(ApiKeys.OFFSET_FOR_LEADER_EPOCH)) == 2

    def test_an_error_that_stays_is_raised(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        self.read_five_then(rig, -1, -1, error=int(Errors.TOPIC_AUTHORIZATION_FAILED))
        with pytest.raises(TopicAuthorizationError):
            rig.consumer.poll(1000)
