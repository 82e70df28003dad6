"""The facade, over a whole consumer without threads."""

from __future__ import annotations

import gc
import math
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.consumer.internals.fetch_collector import FetchCollector
from kclient.errors import (
    ClientClosedError,
    ConcurrentModificationError,
    IllegalStateError,
    InvalidGroupIdError,
    InvalidTopicError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    TopicAuthorizationError,
    WakeupError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import fetch

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def values(records: Any) -> list[int]:
    return [int(record.value) for record in records]


class TestReading:
    def test_poll_returns_records_in_order_and_moves_the_position_past_them(self, rig: Any) -> None:
        rig.fill(T0, 8)
        rig.consumer.assign([T0])
        assert values(rig.consumer.poll(1000)) == [0, 1, 2, 3, 4]
        assert rig.consumer.position(T0) == 5
        assert values(rig.consumer.poll(1000)) == [5, 6, 7]
        assert rig.consumer.current_lag(T0) == 0

    def test_an_empty_poll_takes_its_timeout_and_is_falsy(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        before = rig.time.monotonic_ms()
        assert not rig.consumer.poll(300)
        assert rig.time.monotonic_ms() - before == pytest.approx(300, abs=20)

    def test_poll_gives_at_most_max_poll_records(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(max_poll_records=2)
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        assert [values(rig.consumer.poll(1000)) for _ in range(3)] == [[0, 1], [2, 3], [4]]

    def test_the_next_data_is_fetched_while_the_last_is_being_read(self, rig: Any) -> None:
        rig.fill(T0, 20)
        rig.consumer.assign([T0])
        rig.consumer.poll(1000)
        rig.rounds()
        offsets = [t.partitions[0].fetch_offset for r in rig.sent(ApiKeys.FETCH) for t in r.topics]
        assert offsets == [0, 5, 10]  # two fetches ahead and no more

    def test_records_fetched_before_a_seek_never_appear_after_it(self, rig: Any) -> None:
        rig.fill(T0, 20)
        rig.consumer.assign([T0])
        rig.consumer.poll(1000)
        rig.rounds()
        rig.consumer.seek(T0, 2)
        assert values(rig.consumer.poll(1000)) == [2, 3, 4, 5, 6]

    def test_a_fetch_under_way_during_a_seek_is_dropped(self, rig: Any) -> None:
        rig.fill(T0, 20)
        from_usual = rig.handlers[ApiKeys.FETCH]
        held: list[Any] = []
        rig.handlers[ApiKeys.FETCH] = lambda request, version: held.append((request, version))
        rig.consumer.assign([T0])
        rig.consumer.poll(50)
        rig.consumer.seek(T0, 10)
        rig.handlers[ApiKeys.FETCH] = from_usual
        assert values(rig.consumer.poll(1000)) == [10, 11, 12, 13, 14]

    def test_paused_partitions_give_nothing_and_keep_what_was_fetched(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.fill(T1, 5)
        rig.consumer.assign([T0, T1])
        rig.consumer.pause([T0])
        rig.rounds()
        rig.consumer.resume([T0])
        rig.rounds(100)
        rig.consumer.pause([T0])
        fetches = len(rig.sent(ApiKeys.FETCH))
        assert {record.partition for record in rig.consumer.poll(1000)} == {1}
        assert not rig.consumer.poll(50)
        assert rig.consumer.paused() == {T0}
        rig.consumer.resume([T0])
        assert values(rig.consumer.poll(0)) == [0, 1, 2, 3, 4]
        assert [r for r in rig.sent(ApiKeys.FETCH)[fetches:] if _asks(r, 0) == 0] == []

    def test_an_undecodable_record_is_named_and_can_be_passed_by_seeking(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(value_deserializer=lambda data: 1 // (int(data) - 2))
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        assert len(rig.consumer.poll(1000)) == 2
        for _ in range(2):
            with pytest.raises(RecordDeserializationError) as caught:
                rig.consumer.poll(1000)
            assert (caught.value.topic_partition, caught.value.offset) == (T0, 2)
            assert rig.consumer.position(T0) == 2
        rig.consumer.seek(T0, 3)
        assert [record.offset for record in rig.consumer.poll(1000)] == [3, 4]

    def test_an_error_of_one_partition_hides_no_records_of_others(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(value_deserializer=lambda data: 1 // (int(data) - 2))
        rig.fill(T0, 5)
        rig.fill(T1, 30)
        rig.consumer.assign([T0, T1])
        rig.consumer.seek(T1, 3)
        got, errors = [], 0
        for _ in range(40):
            try:
                got += [record.offset for record in rig.consumer.poll(100) if record.partition == 1]
            except RecordDeserializationError:
                errors += 1
                rig.rounds()
        assert got == list(range(3, 30))
        assert errors > 1

    def test_an_interrupt_while_records_are_handed_out_moves_no_position(
        self, rig: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rig.fill(T0, 5)
        rig.fill(T1, 5)
        rig.consumer.assign([T0, T1])
        usual, calls = FetchCollector.hand_out, []

        def interrupted(*arguments: Any) -> Any:
            calls.append(arguments)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return usual(*arguments)

        monkeypatch.setattr(FetchCollector, "hand_out", interrupted)
        rig.rounds(100)
        with pytest.raises(KeyboardInterrupt):
            rig.consumer.poll(1000)
        assert {tp: rig.consumer.position(tp) for tp in (T0, T1)} == {T0: 0, T1: 0}
        again = [record for _ in range(2) for record in rig.consumer.poll(1000)]
        assert sorted(values(again)) == sorted([*range(5)] * 2)

    @pytest.mark.parametrize("started", [False, True])
    def test_paused_partitions_let_go_of_the_answers_that_their_records_came_with(
        self, make_rig: Callable[..., Any], started: bool
    ) -> None:
        class Answer(bytearray):
            """With the records of several partitions: memory whose end can be seen."""

        rig = make_rig(max_poll_records=2)
        answers: list[Any] = []
        usual = rig.partition_data

        def partition_data(tp: TopicPartition, offset: int) -> Any:
            data = usual(tp, offset)
            if tp == T0 and data.records:
                answer = Answer(b"others" + data.records + b"others")
                data.records = memoryview(answer)[6:-6]
                answers.append(weakref.ref(answer))
            return data

        rig.partition_data = partition_data
        rig.fill(T0, 9)
        rig.consumer.assign([T0])
        rig.rounds()
        seen = values(rig.consumer.poll(100)) if started else []
        rig.rounds()
        rig.client.sent.clear()
        assert len(answers) == 2
        assert all(answer() is not None for answer in answers)
        rig.consumer.pause([T0])
        assert not rig.consumer.poll(0)
        gc.collect()
        assert not any(answer() is not None for answer in answers)
        rig.consumer.resume([T0])
        while len(seen) < 9:
            seen += values(rig.consumer.poll(100))
        assert seen == [*range(9)]
        assert len(answers) == 2

    def test_interceptors_see_and_change_what_poll_returns(self, make_rig: Callable[..., Any]) -> None:
        class Keep(ConsumerInterceptor):
            committed: Any = None

            def on_consume(self, records: Any) -> Any:
                return type(records)({tp: kept[:1] for tp, kept in records.by_partition().items()})

            def on_commit(self, offsets: Any) -> None:
                self.committed = dict(offsets)

        keep = Keep()
        rig = make_rig(group_id="g", enable_auto_commit=False, interceptor_classes=[keep])
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        assert values(rig.consumer.poll(1000)) == [0]
        assert rig.consumer.position(T0) == 5
        rig.consumer.commit_sync()
        assert keep.committed == {T0: OffsetAndMetadata(5, "", 5)}


class TestIteration:
    def test_the_position_moves_with_each_record_and_poll_returns_the_rest(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        seen = []
        for record in rig.consumer:
            seen.append(int(record.value))
            assert rig.consumer.position(T0) == record.offset + 1
            if len(seen) == 2:
                break
        assert seen == [0, 1]
        assert values(rig.consumer.poll(1000)) == [2, 3, 4]

    def test_it_gives_what_interceptors_return(self, make_rig: Callable[..., Any]) -> None:
        class EvenOnes(ConsumerInterceptor):
            def on_consume(self, records: Any) -> Any:
                changed = {
                    tp: [
                        attrs.evolve(each, value=b"%d" % (100 + each.offset))
                        for each in kept
                        if each.offset % 2 == 0
                    ]
                    for tp, kept in records.by_partition().items()
                }
                return type(records)(changed)

        rig = make_rig(interceptor_classes=[EvenOnes()])
        rig.fill(T0, 9)
        rig.consumer.assign([T0])
        seen = []
        for record in rig.consumer:
            seen.append(int(record.value))
            assert rig.consumer.position(T0) == record.offset + 1
            if record.offset == 8:
                break
        assert seen == [100, 102, 104, 106, 108]

    def test_commit_in_the_loop_covers_the_record_of_the_loop_and_none_behind_it(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        for record in rig.consumer:
            rig.consumer.commit_sync()
            assert rig.committed[T0] == record.offset + 1
            if record.offset == 3:
                break

    def test_a_partition_paused_in_the_loop_gives_no_more(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.fill(T1, 5)
        rig.consumer.assign([T0, T1])
        first = next(rig.consumer)
        rig.consumer.pause([first.topic_partition])
        assert {next(rig.consumer).partition for _ in range(5)} == {1 - first.partition}

    def test_closing_ends_it_and_wakeup_raises_out_of_it(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        next(rig.consumer)
        rig.consumer.wakeup()
        with pytest.raises(WakeupError):
            next(rig.consumer)
        assert int(next(rig.consumer).value) == 1
        for record in rig.consumer:
            assert record.offset == 2
            rig.consumer.close()

    def test_waiting_for_records_keeps_the_member_alive(self, rig: Any) -> None:
        rig.join(("t",))
        rig.time.round_ms = 1000
        late = rig.time.monotonic_ms() + 400_000  # longer than max.poll.interval.ms

        def pump() -> None:
            if rig.time.monotonic_ms() > late:
                rig.consumer.wakeup()
            rig.pump()

        rig.time.pump = pump
        with pytest.raises(WakeupError):
            next(rig.consumer)
        assert not rig.sent(ApiKeys.LEAVE_GROUP)


class TestArguments:
    def test_subscribing_needs_a_group(self, make_rig: Callable[..., Any]) -> None:
        with pytest.raises(InvalidGroupIdError, match=r"group\.id"):
            make_rig().consumer.subscribe(["t"])

    def test_subscription_and_assignment_exclude_each_other(self, rig: Any) -> None:
        rig.consumer.subscribe(["t"])
        with pytest.raises(IllegalStateError):
            rig.consumer.assign([T0])
        with pytest.raises(IllegalStateError):
            rig.consumer.subscribe(re.compile("t.*"))

    def test_polling_needs_something_to_poll(self, rig: Any) -> None:
        with pytest.raises(IllegalStateError, match="subscribe"):
            rig.consumer.poll(0)

    @pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a" * 250, "a b"])
    def test_impossible_topics_are_refused_at_once(self, rig: Any, topic: str) -> None:
        with pytest.raises(InvalidTopicError):
            rig.consumer.subscribe([topic])

    def test_a_bare_string_is_no_collection_of_topics(self, rig: Any) -> None:
        with pytest.raises(TypeError, match="collection"):
            rig.consumer.subscribe("topic")

    def test_impossible_partitions_offsets_and_timeouts_are_refused(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        with pytest.raises(ValueError, match="partition"):
            rig.consumer.assign([TopicPartition("t", -1)])
        with pytest.raises(ValueError, match="offset"):
            rig.consumer.seek(T0, -1)
        with pytest.raises(TypeError):
            rig.consumer.seek(T0, 1.5)
        with pytest.raises(TypeError):
            rig.consumer.poll(float("nan"))
        with pytest.raises(ValueError, match="timeout_ms"):
            rig.consumer.poll(-1)
        with pytest.raises(ValueError, match="timestamp"):
            rig.consumer.offsets_for_times({T0: -2})

    def test_what_is_not_assigned_cannot_be_used(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        for call in (
            lambda: rig.consumer.seek(T1, 0),
            lambda: rig.consumer.position(T1),
            lambda: rig.consumer.pause([T1]),
            lambda: rig.consumer.seek_to_end([T1]),
            lambda: rig.consumer.current_lag(T1),
        ):
            with pytest.raises(IllegalStateError, match="not assigned"):
                call()


class TestPositions:
    def test_without_a_committed_offset_and_a_policy_the_application_has_to_seek(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(group_id="g", auto_offset_reset="none", enable_auto_commit=False)
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        for _ in range(2):
            with pytest.raises(NoOffsetForPartitionError) as caught:
                rig.consumer.poll(1000)
            assert caught.value.topic_partitions == {T0}
        rig.consumer.seek(T0, 3)
        assert values(rig.consumer.poll(1000)) == [3, 4]

    def test_an_offset_out_of_range_follows_the_policy(self, rig: Any) -> None:
        rig.fill(T0, 3, start=7)
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 100)
        assert values(rig.consumer.poll(3000)) == [7, 8, 9]

    def test_an_offset_out_of_range_without_a_policy_is_raised_until_the_application_seeks(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(auto_offset_reset="none")
        rig.fill(T0, 3, start=7)
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 2)
        for _ in range(2):
            with pytest.raises(OffsetOutOfRangeError, match="t-0"):
                rig.consumer.poll(3000)
        rig.consumer.seek(T0, 8)
        assert values(rig.consumer.poll(3000)) == [8, 9]

    def test_committed_offsets_are_where_a_group_goes_on(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.committed[T0] = 3
        rig.consumer.assign([T0])
        assert rig.consumer.position(T0) == 3
        assert rig.consumer.committed([T0, T1]) == {T0: OffsetAndMetadata(3, ""), T1: None}

    def test_offsets_of_partitions_that_are_not_assigned_can_be_asked_for(self, rig: Any) -> None:
        rig.fill(U0, 9, start=4)
        assert rig.consumer.beginning_offsets([U0]) == {U0: 4}
        assert rig.consumer.end_offsets([U0]) == {U0: 13}

    def test_seeking_to_the_ends_is_looked_up(self, rig: Any) -> None:
        rig.fill(T0, 9, start=4)
        rig.consumer.assign([T0])
        rig.consumer.seek_to_end()
        assert rig.consumer.position(T0) == 13
        rig.consumer.seek_to_beginning([T0])
        assert rig.consumer.position(T0) == 4

    def test_a_position_that_is_not_found_in_time_is_a_timeout(self, rig: Any) -> None:
        rig.handlers[ApiKeys.OFFSET_FETCH] = lambda _request, _version: None
        rig.consumer.assign([T0])
        with pytest.raises(KafkaTimeoutError, match="t-0"):
            rig.consumer.position(T0, timeout_ms=200)

    def test_a_topic_that_may_not_be_read_is_said_in_poll(self, rig: Any) -> None:
        rig.fill(T0, 3)
        refused = fetch.PartitionData(partition_index=0, error_code=29)
        usual = rig.partition_data
        rig.partition_data = lambda tp, offset: refused
        rig.consumer.assign([T0])
        with pytest.raises(TopicAuthorizationError, match="'t'"):
            rig.consumer.poll(3000)
        rig.partition_data = usual
        assert values(rig.consumer.poll(3000)) == [0, 1, 2]


class TestLifecycle:
    def test_a_second_thread_is_refused_but_may_wake_the_first(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        errors: list[BaseException] = []

        def other() -> None:
            try:
                rig.consumer.assignment()
            except ConcurrentModificationError as error:
                errors.append(error)
            rig.consumer.wakeup()

        started = False

        def pump() -> None:
            nonlocal started
            if not started:
                started = True
                thread = threading.Thread(target=other)
                thread.start()
                thread.join()
            rig.pump()

        rig.time.pump = pump
        with pytest.raises(WakeupError):
            rig.consumer.poll(1000)
        assert len(errors) == 1
        assert not rig.consumer.poll(10)  # raised once

    def test_a_closed_consumer_says_so_and_closes_again_quietly(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        rig.consumer.close()
        rig.consumer.close()
        with pytest.raises(ClientClosedError):
            rig.consumer.poll(0)

    def test_the_error_of_a_with_block_is_not_masked(self, rig: Any) -> None:
        with pytest.raises(ZeroDivisionError), rig.consumer:
            raise ZeroDivisionError
        with pytest.raises(ClientClosedError):
            rig.consumer.assignment()

    def test_a_forgotten_consumer_warns(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig()
        with pytest.warns(ResourceWarning, match="not closed"):
            rig.consumer.__del__()

    def test_metrics_count_what_was_read(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        rig.consumer.poll(1000)
        found = {name.name: value for name, value in rig.consumer.metrics().items()}
        assert found["records-consumed-total"] == 5 == rig.consumer.metrics()["records-consumed-total"]
        assert found["assigned-partitions"] == 1
        assert found["fetch-total"] >= 1
        assert found["bytes-consumed-total"] == found["fetch-size-max"] == found["fetch-size-avg"] > 0
        assert math.isnan(found["time-between-poll-avg"]), "there was one poll, and nothing between"
        rig.consumer.poll(0)
        found = {name.name: value for name, value in rig.consumer.metrics().items()}
        assert found["time-between-poll-max"] == found["time-between-poll-avg"] >= 0


def _asks(request: Any, partition: int) -> int | None:
    for topic in request.topics:
        for each in topic.partitions:
            if each.partition == partition:
                return int(each.fetch_offset)
    return None
