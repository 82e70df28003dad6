"""Fetching, over a whole consumer without threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from harness.consumer.fetched_batches import batch, marker, not_compressed, transactional
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.compress import DecompressionError
from kclient.errors import (
    CorruptRecordError,
    KafkaError,
    LogTruncationError,
    UnsupportedCompressionTypeError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import fetch, offset_for_leader_epoch
from kclient.record import MemoryRecordsBuilder
from kclient.record.control import ControlRecordType

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def data(records: bytes, **fields: Any) -> Any:
    return fetch.PartitionData(
        partition_index=0, high_watermark=100, last_stable_offset=100, records=records, **fields
    )


def serve(rig: Any, *answers: Any) -> None:
    """The fetches of t-0 get these, whatever the offset, and nothing more after them."""
    waiting = list(answers)

    def partition_data(tp: TopicPartition, offset: int) -> Any:
        return waiting.pop(0) if waiting else data(b"")

    rig.partition_data = partition_data


def offsets(rig: Any, polls: int = 6) -> list[int]:
    return [record.offset for _ in range(polls) for record in rig.consumer.poll(100)]


class TestErrorsOfPartitions:
    @pytest.mark.parametrize("code", [6, 9, 56, 74, 78, 100, 103, 3, 75, 5])
    def test_passing_ones_keep_the_position_and_are_tried_again(self, rig: Any, code: int) -> None:
        rig.fill(T0, 5)
        usual, codes = rig.partition_data, [code]

        def partition_data(tp: TopicPartition, offset: int) -> Any:
            if codes:
                return fetch.PartitionData(partition_index=0, error_code=codes.pop())
            return usual(tp, offset)

        rig.partition_data = partition_data
        rig.consumer.assign([T0])
        assert offsets(rig) == [0, 1, 2, 3, 4]
        assert rig.consumer.position(T0) == 5

    def test_they_are_not_tried_again_without_a_pause(self, rig: Any) -> None:
        rig.partition_data = lambda tp, offset: fetch.PartitionData(partition_index=0, error_code=75)
        rig.consumer.assign([T0])
        rig.consumer.poll(1000)
        assert 5 <= len(rig.sent(ApiKeys.FETCH)) <= 15

    def test_an_unknown_one_is_raised_with_its_number_and_the_consumer_lives(self, rig: Any) -> None:
        rig.fill(T0, 5)
        usual, codes = rig.partition_data, [32000]

        def partition_data(tp: TopicPartition, offset: int) -> Any:
            if codes:
                return fetch.PartitionData(partition_index=0, error_code=codes.pop())
            return usual(tp, offset)

        rig.partition_data = partition_data
        rig.consumer.assign([T0])
        with pytest.raises(KafkaError) as caught:
            rig.consumer.poll(1000)
        assert caught.value.code == 32000
        assert offsets(rig) == [0, 1, 2, 3, 4]

    def test_a_broken_connection_is_fetched_again_in_a_full_session(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.on(ApiKeys.FETCH, ConnectionError())
        rig.consumer.assign([T0])
        assert offsets(rig, 20) == [0, 1, 2, 3, 4]

    def test_the_new_leader_that_an_answer_names_is_asked_at_once(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.nodes[1] = Node(1, "mock", 9093)
        usual = rig.partition_data

        def partition_data(tp: TopicPartition, offset: int) -> Any:
            if rig.client.requests[0].request.node_id == 1:
                return usual(tp, offset)
            leader = fetch.LeaderIdAndEpoch(leader_id=1, leader_epoch=9)
            return fetch.PartitionData(partition_index=0, error_code=6, current_leader=leader)

        rig.partition_data = partition_data
        rig.consumer.assign([T0])
        assert offsets(rig) == [0, 1, 2, 3, 4]
        assert rig.core.metadata.leader_epoch(T0) == 9


class TestBrokersThatAreAway:
    def tries(self, rig: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """Times at which the consumer wanted to send something to the broker, each once."""
        usual, times = rig.client.ready, []

        def ready(node: Node, now_ms: int) -> bool:
            if now_ms not in times:
                times.append(now_ms)
            return bool(usual(node, now_ms))

        monkeypatch.setattr(rig.client, "ready", ready)
        return times

    def fetches(self, rig: Any) -> list[int]:
        return [each.sent_ms for each in rig.client.sent if each.request.api_key is ApiKeys.FETCH]

    def assert_backs_off(self, times: list[int]) -> None:
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        for gap, middle in zip(gaps, [100, 200, 400, 800], strict=False):
            assert middle * 0.8 <= gap <= middle * 1.2 + 20, gaps
        assert len(gaps) > 8
        assert all(1000 <= gap <= 1020 for gap in gaps[5:]), gaps

    def test_one_that_cannot_be_reached_is_tried_less_and_less_often(
        self, rig: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        assert offsets(rig, 1) == [0, 1, 2, 3, 4]
        rig.client.set_unreachable(rig.nodes[0], 10_000)
        times = self.tries(rig, monkeypatch)
        rig.rounds(1000)
        self.assert_backs_off(times)
        rig.fill(T0, 8)
        assert [record.offset for record in rig.consumer.poll(1100)] == [5, 6, 7]

    def test_one_that_breaks_every_connection_is_tried_less_and_less_often_until_it_answers(
        self, rig: Any
    ) -> None:
        rig.fill(T0, 5)
        rig.on(ApiKeys.FETCH, *[ConnectionError()] * 12)
        rig.consumer.assign([T0])
        assert offsets(rig, 120) == [0, 1, 2, 3, 4]
        self.assert_backs_off(self.fetches(rig)[:13])
        rig.on(ApiKeys.FETCH, ConnectionError())
        failed_ms = rig.time.monotonic_ms()
        rig.rounds(20)
        assert 80 <= self.fetches(rig)[-1] - failed_ms <= 140  # an answer ended the row of failures

    def test_what_is_not_fetched_backs_off_as_the_settings_say(
        self, make_rig: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig = make_rig(retry_backoff_ms=3000, retry_backoff_max_ms=3000)
        rig.consumer.assign([T0])
        rig.consumer.poll(100)
        rig.client.set_unreachable(rig.nodes[0], 30_000)
        times = self.tries(rig, monkeypatch)
        rig.rounds(3000)
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert gaps
        assert all(2400 <= gap <= 3020 for gap in gaps), gaps


class TestReplicas:
    def test_the_preferred_one_is_read_and_left_again_when_it_lacks_the_offset(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(client_rack="here")
        rig.nodes[1] = Node(1, "mock", 9093)
        rig.fill(T0, 5)
        usual, served_by = rig.partition_data, []

        def partition_data(tp: TopicPartition, offset: int) -> Any:
            node_id = rig.client.requests[0].request.node_id
            served_by.append(node_id)
            if node_id == 1:
                return fetch.PartitionData(partition_index=0, error_code=1)
            if served_by == [0]:
                return data(b"", preferred_read_replica=1)
            return usual(tp, offset)

        rig.partition_data = partition_data
        rig.consumer.assign([T0])
        assert offsets(rig, 20) == [0, 1, 2, 3, 4]
        assert served_by[:3] == [0, 1, 0]
        assert rig.sent(ApiKeys.FETCH)[0].rack_id == "here"


class TestRoom:
    @pytest.fixture(autouse=True)
    def endless(self, rig: Any) -> None:
        """t-0 always has more, t-1 nothing."""

        def partition_data(tp: TopicPartition, offset: int) -> Any:
            return attrs.evolve(data(batch(offset, 5) if tp == T0 else b""), partition_index=tp.partition)

        rig.partition_data = partition_data
        rig.consumer.assign([T0, T1])

    def test_a_broker_does_not_wait_for_one_partition_while_others_are_about_to_be_used_up(
        self, rig: Any
    ) -> None:
        rig.rounds(10)
        before = len(rig.sent(ApiKeys.FETCH))
        rig.rounds(30)  # of 10 ms
        assert len(rig.sent(ApiKeys.FETCH)) == before
        assert [record.offset for record in rig.consumer.poll(0)] == [0, 1, 2, 3, 4]
        rig.pump()
        assert len(rig.sent(ApiKeys.FETCH)) > before

    def test_it_is_asked_for_the_others_all_the_same_if_the_application_takes_its_time(
        self, rig: Any
    ) -> None:
        rig.rounds(10)
        before = len(rig.sent(ApiKeys.FETCH))
        rig.rounds(100)
        assert before < len(rig.sent(ApiKeys.FETCH)) <= before + 3  # fetch.max.wait.ms is 500


class TestContents:
    def test_a_broken_checksum_names_the_offset_and_moves_nothing(self, rig: Any) -> None:
        broken = bytearray(batch(0, 3))
        broken[-2] ^= 1
        serve(rig, data(bytes(broken)), data(batch(0, 3)))
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 0)
        with pytest.raises(CorruptRecordError, match=r"t-0.*0"):
            rig.consumer.poll(1000)
        assert rig.consumer.position(T0) == 0
        assert offsets(rig, 20) == [0, 1, 2]  # it was damaged on the way

    def test_checksums_are_not_looked_at_with_check_crcs_off(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(check_crcs=False)
        broken = bytearray(batch(0, 3))
        broken[17] ^= 1
        serve(rig, data(bytes(broken)))
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 0)
        assert offsets(rig) == [0, 1, 2]

    def test_an_unknown_codec_is_an_error_and_other_partitions_go_on(self, rig: Any) -> None:
        odd = bytearray(batch(0, 3))
        odd[22] |= 6  # attributes
        rig.fill(T1, 5)
        usual = rig.partition_data
        rig.partition_data = lambda tp, offset: data(bytes(odd)) if tp == T0 else usual(tp, offset)
        rig.consumer.assign([T0, T1])
        got, errors = [], 0
        for _ in range(30):
            try:
                got += [(record.partition, record.offset) for record in rig.consumer.poll(100)]
            except KafkaError:
                errors += 1
        assert got == [(1, offset) for offset in range(5)]
        assert errors

    @pytest.mark.parametrize("codec", [1, 2, 3, 4, 7])
    def test_compressed_data_that_cannot_be_read_is_named_with_its_partition_and_offset(
        self, rig: Any, codec: int
    ) -> None:
        rig.partition_data = lambda tp, offset: data(not_compressed(codec))
        rig.consumer.assign([T0])
        for _ in range(2):
            with pytest.raises(KafkaError, match="t-0, offset 0: ") as caught:
                rig.consumer.poll(1000)
            assert isinstance(caught.value, DecompressionError | UnsupportedCompressionTypeError)

    def test_bytes_without_a_whole_batch_are_an_error_and_no_endless_loop(self, rig: Any) -> None:
        rig.partition_data = lambda tp, offset: data(batch(0, 3)[:40])
        rig.consumer.assign([T0])
        with pytest.raises(KafkaError, match="no whole batch"):
            rig.consumer.poll(1000)

    @pytest.mark.parametrize("length", [-1, 0, 13])
    def test_an_impossible_batch_length_is_an_error(self, rig: Any, length: int) -> None:
        odd = bytearray(batch(0, 3))
        odd[8:12] = length.to_bytes(4, "big", signed=True)
        rig.partition_data = lambda tp, offset: data(bytes(odd))
        rig.consumer.assign([T0])
        with pytest.raises(KafkaError):
            rig.consumer.poll(1000)

    def test_the_position_passes_batches_whose_records_were_compacted_away(self, rig: Any) -> None:
        empty = MemoryRecordsBuilder(base_offset=3, partition_leader_epoch=5).empty_batch(
            9, 1_700_000_000_000
        )
        serve(rig, data(batch(0, 3) + empty))
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 0)
        assert offsets(rig) == [0, 1, 2]
        assert rig.consumer.position(T0) == 10

    def test_records_of_aborted_transactions_and_markers_are_left_out(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(isolation_level="read_committed")

        log = b"".join(
            (
                transactional(1, 0, 2),
                transactional(2, 2, 2),
                batch(4, 1),
                marker(1, 5, ControlRecordType.ABORT),
                marker(1, 6, ControlRecordType.ABORT),
                transactional(1, 7, 1),
                marker(2, 8, ControlRecordType.ABORT),
                marker(1, 9, ControlRecordType.COMMIT),
            )
        )
        aborted = [
            fetch.AbortedTransaction(producer_id=2, first_offset=2),
            fetch.AbortedTransaction(producer_id=1, first_offset=0),
        ]
        serve(rig, data(log, aborted_transactions=aborted))
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 0)
        assert offsets(rig) == [4, 7]
        assert rig.consumer.position(T0) == 10
        assert rig.sent(ApiKeys.FETCH)[0].isolation_level == 1

    def test_a_fetch_of_aborted_records_alone_is_passed_without_stalling(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(isolation_level="read_committed")
        only = batch(0, 3, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
        aborted = [fetch.AbortedTransaction(producer_id=1, first_offset=0)]
        serve(rig, data(only, aborted_transactions=aborted), data(batch(3, 2)))
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 0)
        assert offsets(rig) == [3, 4]


class TestTruncation:
    def move_leader(self, rig: Any) -> None:
        rig.leaders[T0] = (0, 6)
        rig.core.metadata.request_update()

    def ends(self, rig: Any, epoch: int, end: int) -> None:
        result = offset_for_leader_epoch.OffsetForLeaderTopicResult(
            topic="t",
            partitions=[
                offset_for_leader_epoch.EpochEndOffset(partition=0, leader_epoch=epoch, end_offset=end)
            ],
        )
        rig.on(
            ApiKeys.OFFSET_FOR_LEADER_EPOCH,
            offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=[result]),
        )

    def test_a_position_below_the_end_of_its_epoch_is_confirmed(self, rig: Any) -> None:
        rig.fill(T0, 8)
        rig.consumer.assign([T0])
        rig.consumer.poll(1000)
        self.move_leader(rig)
        assert offsets(rig, 20) == [5, 6, 7]
        (request,) = rig.sent(ApiKeys.OFFSET_FOR_LEADER_EPOCH)
        asked = request.topics[0].partitions[0]
        assert (asked.leader_epoch, asked.current_leader_epoch) == (5, 6)

    def test_a_position_behind_a_marker_of_a_newer_epoch_is_confirmed_by_that(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(auto_offset_reset="none")
        # The leader went between the records and their marker.
        behind = marker(1, 3, ControlRecordType.COMMIT, leader_epoch=6)
        serve(rig, data(transactional(1, 0, 3) + behind))
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 0)
        assert offsets(rig) == [0, 1, 2]
        assert rig.consumer.position(T0) == 4
        self.ends(rig, 6, 4)
        self.move_leader(rig)
        assert offsets(rig, 20) == []
        (request,) = rig.sent(ApiKeys.OFFSET_FOR_LEADER_EPOCH)
        assert [p.leader_epoch for topic in request.topics for p in topic.partitions] == [6]

    def test_a_truncated_log_is_read_on_where_it_differs(self, rig: Any) -> None:
        rig.fill(T0, 8)
        rig.consumer.assign([T0])
        rig.consumer.poll(1000)
        self.ends(rig, 4, 3)
        self.move_leader(rig)
        assert offsets(rig, 30) == [3, 4, 5, 6, 7]

    def test_without_a_reset_policy_it_is_raised_until_the_application_seeks(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(auto_offset_reset="none")
        rig.fill(T0, 8)
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 0)
        rig.consumer.poll(1000)
        self.ends(rig, 4, 3)
        self.move_leader(rig)
        for _ in range(2):
            with pytest.raises(LogTruncationError) as caught:
                offsets(rig, 20)
            assert caught.value.divergent_offsets == {T0: 3}
        rig.consumer.seek(T0, 3)
        assert offsets(rig, 20) == [3, 4, 5, 6, 7]

    def test_a_committed_offset_with_an_epoch_is_checked_before_it_is_read(self, rig: Any) -> None:
        from kclient.common.offsets import OffsetAndMetadata

        rig.fill(T0, 8)
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, OffsetAndMetadata(6, "", 5))
        assert offsets(rig, 20) == [6, 7]
        assert len(rig.sent(ApiKeys.OFFSET_FOR_LEADER_EPOCH)) == 1
