"""Topics that are deleted, and created again under the same name, on brokers old and new."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaError, NoOffsetForPartitionError, UnknownTopicOrPartitionError
from kclient.protocol.api_keys import ApiKeys

T0, U0 = TopicPartition("t", 0), TopicPartition("u", 0)
NEW = Uuid(b"n" * 16)


def create_again(rig: Any, records: int) -> None:
    """`t` is another topic by now, as the next metadata says."""
    rig.topic_ids["t"] = NEW
    rig.fill(T0, records)
    rig.logs[T0] = [b"9%d" % number for number in range(records)]
    rig.core.metadata.request_update()


def values(records: Any) -> list[int]:
    return [int(record.value) for record in records]


def read(rig: Any, count: int) -> list[int]:
    seen: list[int] = []
    for _ in range(50):
        seen += values(rig.consumer.poll(100))
        if len(seen) >= count:
            return seen
    raise AssertionError(f"only {seen} came")


def told(caplog: pytest.LogCaptureFixture, part: str) -> list[str]:
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [each for each in said if part in each]


@pytest.mark.parametrize("polled", [False, True])
def test_it_is_read_by_policy_and_nothing_of_the_old_one_is_returned_or_committed(
    make_rig: Callable[..., Any], caplog: pytest.LogCaptureFixture, polled: bool
) -> None:
    rig = make_rig(group_id="g", enable_auto_commit=False, max_poll_records=2)
    rig.fill(T0, 9)
    rig.consumer.assign([T0])
    rig.rounds(20)
    if polled:
        assert read(rig, 2) == [0, 1]
    rig.rounds(20)
    create_again(rig, 4)
    rig.rounds(50)
    assert read(rig, 4) == [90, 91, 92, 93]
    rig.consumer.commit_sync()
    assert rig.committed == {T0: 4}
    (said,) = told(caplog, "created again")
    assert str(Uuid(b"t" * 16)) in said
    assert str(NEW) in said


def test_iteration_does_not_go_on_with_records_of_the_old_one(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(auto_offset_reset="latest")
    rig.fill(T0, 5)
    rig.consumer.assign([T0])
    rig.consumer.seek(T0, 0)
    assert int(next(rig.consumer).value) == 0
    create_again(rig, 1)
    rig.rounds(50)
    assert rig.consumer.position(T0) == 1  # as before
    rig.logs[T0].append(b"91")
    assert int(next(rig.consumer).value) == 91


def test_an_answer_of_the_old_one_that_comes_late_is_dropped(rig: Any) -> None:
    rig.consumer.assign([T0])
    rig.rounds(20)
    rig.handlers[ApiKeys.FETCH], usual = lambda _request, _version: None, rig.handlers[ApiKeys.FETCH]
    rig.rounds(100)
    (late,) = [sent for sent in rig.client.requests if sent.request.api_key is ApiKeys.FETCH]
    rig.fill(T0, 5)
    answer = usual(late.message, late.version)
    create_again(rig, 3)
    rig.rounds(50)
    assert rig.consumer.position(T0) == 0
    rig.client.respond(answer, matcher=lambda message: message is late.message)
    rig.handlers[ApiKeys.FETCH] = usual
    assert read(rig, 3) == [90, 91, 92]


def test_without_a_policy_the_application_has_to_say_where_to_start(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(auto_offset_reset="none")
    rig.fill(T0, 5)
    rig.consumer.assign([T0])
    rig.consumer.seek(T0, 0)
    assert read(rig, 5) == [0, 1, 2, 3, 4]
    create_again(rig, 3)
    rig.rounds(50)
    with pytest.raises(NoOffsetForPartitionError, match="t-0"):
        rig.consumer.poll(100)
    rig.consumer.seek(T0, 1)
    assert read(rig, 2) == [91, 92]


def test_what_the_last_poll_returned_is_not_taken_back_into_the_new_one(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(group_id="g", max_poll_records=2)
    rig.fill(T0, 5)
    rig.consumer.assign([T0])
    assert read(rig, 4) == [0, 1, 2, 3]
    create_again(rig, 3)
    rig.rounds(50)
    rig.core.take_back()
    assert rig.consumer.position(T0) == 0


def test_a_topic_that_is_only_missing_for_a_while_is_read_on(rig: Any) -> None:
    rig.fill(T0, 3)
    rig.consumer.assign([T0])
    assert read(rig, 3) == [0, 1, 2]
    partitions = rig.topics.pop("t")
    rig.core.metadata.request_update()
    rig.rounds(50)
    rig.fill(T0, 6)
    rig.topics["t"] = partitions
    assert read(rig, 3) == [3, 4, 5]


def test_a_partition_that_is_assigned_with_an_id_is_of_that_topic_alone(
    make_rig: Callable[..., Any],
) -> None:
    rig = make_rig(auto_offset_reset="none")
    rig.fill(T0, 5)
    old = Uuid(b"t" * 16)
    rig.consumer.assign([TopicIdPartition(old, "t", 0)])
    rig.consumer.seek(T0, 1)
    assert read(rig, 4) == [1, 2, 3, 4]
    create_again(rig, 9)
    rig.rounds(50)
    with pytest.raises(NoOffsetForPartitionError, match="t-0"):
        rig.consumer.poll(100)
    # Metadata knows the new one by now, and the old one is still not taken for it.
    rig.consumer.unsubscribe()
    rig.consumer.assign([TopicIdPartition(old, "t", 0)])
    rig.consumer.seek(T0, 2)
    with pytest.raises(NoOffsetForPartitionError, match="t-0"):
        read(rig, 1)
    rig.consumer.assign([TopicIdPartition(NEW, "t", 0)])
    rig.consumer.seek(T0, 2)
    assert read(rig, 7) == [92, 93, 94, 95, 96, 97, 98]


def test_what_was_fetched_of_one_is_not_handed_out_for_another_at_the_same_offset(
    make_rig: Callable[..., Any],
) -> None:
    rig = make_rig(auto_offset_reset="earliest")
    rig.fill(T0, 9)
    rig.consumer.assign([TopicIdPartition(Uuid(b"t" * 16), "t", 0)])
    rig.rounds(50)
    rig.handlers[ApiKeys.FETCH] = lambda _request, _version: None
    rig.consumer.assign([TopicIdPartition(NEW, "t", 0)])
    rig.rounds(50)
    assert values(rig.consumer.poll(0)) == []


def test_one_name_with_two_ids_cannot_be_assigned(rig: Any) -> None:
    with pytest.raises(ValueError, match="t is given with two ids"):
        rig.consumer.assign([TopicIdPartition(Uuid(b"t" * 16), "t", 0), TopicIdPartition(NEW, "t", 1)])


class TestCommits:
    def test_they_name_topics_by_id_where_the_broker_can_and_all_ids_are_known(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        rig.rounds()
        rig.consumer.commit_sync({T0: 3})
        rig.consumer.commit_sync({T0: 4, TopicPartition("elsewhere", 0): 5})
        sent = [each for each in rig.client.sent if each.request.api_key is ApiKeys.OFFSET_COMMIT]
        assert [each.version for each in sent] == [10, 9]
        assert sent[0].message.topics[0].topic_id == Uuid(b"t" * 16)
        rig.consumer.committed([T0])
        rig.consumer.committed([TopicPartition("elsewhere", 0)])
        sent = [each for each in rig.client.sent if each.request.api_key is ApiKeys.OFFSET_FETCH]
        assert [each.version for each in sent][-2:] == [10, 9]
        assert sent[-2].message.groups[0].topics[0].topic_id == Uuid(b"t" * 16)

    def test_those_that_wait_are_dropped_and_the_others_are_not(
        self, make_rig: Callable[..., Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        rig = make_rig(group_id="g", enable_auto_commit=True)
        rig.fill(T0, 3)
        rig.fill(U0, 3)
        rig.consumer.assign([T0, U0])
        read(rig, 6)
        rig.handlers[ApiKeys.FIND_COORDINATOR], usual = (
            lambda _request, _version: None,
            rig.handlers[ApiKeys.FIND_COORDINATOR],
        )
        rig.core.membership._finder.mark_unknown("a test")
        done: list[Any] = []
        rig.consumer.commit_async(None, lambda offsets, error: done.append((dict(offsets), error)))
        rig.core.commits.auto_commit_now()
        create_again(rig, 3)
        rig.rounds(50)
        rig.handlers[ApiKeys.FIND_COORDINATOR] = usual
        rig.rounds(100)
        assert rig.committed == {U0: 3}
        rig.core.queue.run_calls()
        ((_, error),) = done
        assert isinstance(error, UnknownTopicOrPartitionError)
        assert "t-0 (3)" in str(error)
        (said,) = told(caplog, "not committed")
        assert "t-0 (3)" in said

    @pytest.mark.parametrize("code", [3, 100])
    def test_one_that_is_refused_is_given_up_when_metadata_agrees_that_the_topic_is_gone(
        self, make_rig: Callable[..., Any], code: int
    ) -> None:
        rig = make_rig(group_id="g", enable_auto_commit=False)
        rig.consumer.assign([T0, U0])
        rig.rounds()
        usual = rig.handlers[ApiKeys.OFFSET_COMMIT]

        def handler(request: Any, version: int) -> Any:
            response = usual(request, version)
            for topic in response.topics:
                if topic.name == "t":
                    topic.partitions[0].error_code = code
            return response

        rig.handlers[ApiKeys.OFFSET_COMMIT] = handler
        del rig.topics["t"]
        begun_ms = rig.time.monotonic_ms()
        offsets = {T0: OffsetAndMetadata(3), U0: OffsetAndMetadata(4)}
        with pytest.raises(UnknownTopicOrPartitionError, match=r"t-0 \(3\)"):
            rig.consumer.commit_sync(offsets)
        assert rig.time.monotonic_ms() - begun_ms < 2000
        assert rig.committed[U0] == 4

    def test_one_that_is_refused_while_the_topic_exists_is_tried_again(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        rig.rounds()
        rig.on(ApiKeys.OFFSET_COMMIT, *[rig.refuse_commit(100)] * 3)
        rig.consumer.commit_sync({T0: 3})
        assert rig.committed == {T0: 3}

    def test_a_lookup_that_is_refused_while_the_topic_exists_is_tried_again(self, rig: Any) -> None:
        rig.committed[T0] = 3
        rig.consumer.assign([T0])
        rig.rounds()
        usual = rig.handlers[ApiKeys.OFFSET_FETCH]

        def lagging(request: Any, version: int) -> Any:
            response = usual(request, version)
            response.groups[0].topics[0].partitions[0].error_code = 100
            return response

        rig.on(ApiKeys.OFFSET_FETCH, *[lagging] * 3)
        assert rig.consumer.committed([T0])[T0].offset == 3

    def test_an_answer_that_speaks_of_another_topic_is_no_success(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        rig.rounds()
        usual = rig.handlers[ApiKeys.OFFSET_COMMIT]

        def elsewhere(request: Any, version: int) -> Any:
            response = usual(request, version)
            response.topics[0].name, response.topics[0].topic_id = "", NEW
            return response

        rig.on(ApiKeys.OFFSET_COMMIT, elsewhere)
        with pytest.raises(KafkaError, match="nothing of the offset of t-0"):
            rig.consumer.commit_sync({T0: 3})

    def test_a_lookup_that_is_answered_for_another_topic_finds_nothing(self, rig: Any) -> None:
        rig.committed[T0] = 3
        rig.consumer.assign([T0])
        rig.rounds()
        usual = rig.handlers[ApiKeys.OFFSET_FETCH]

        def elsewhere(request: Any, version: int) -> Any:
            response = usual(request, version)
            response.groups[0].topics[0].name, response.groups[0].topics[0].topic_id = "", NEW
            return response

        rig.on(ApiKeys.OFFSET_FETCH, elsewhere)
        assert rig.consumer.committed([T0]) == {T0: None}
