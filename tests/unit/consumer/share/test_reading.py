"""Records of a share consumer: what poll() and iteration return, and what becomes of the rest."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness.consumer.fetched_batches import batch, marker, not_compressed
from harness.consumer.share_model import ShareModel
from kclient.common.topic_partition import TopicPartition
from kclient.compress import DecompressionError
from kclient.consumer import AcknowledgeType
from kclient.errors import (
    ClientClosedError,
    ConcurrentModificationError,
    CorruptRecordError,
    Errors,
    IllegalStateError,
    KafkaError,
    RecordDeserializationError,
    TopicAuthorizationError,
    UnsupportedCompressionTypeError,
    WakeupError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.share_fetch import AcquiredRecords
from kclient.record import ControlRecordType

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_without_a_subscription_there_is_nothing_to_poll(share: ShareModel) -> None:
    with pytest.raises(IllegalStateError, match="subscribe"):
        share.poll()


def test_one_poll_returns_max_poll_records_at_most(make_share: Callable[..., ShareModel]) -> None:
    share = make_share(max_poll_records=3)
    share.subscribe()
    share.fill(T0, 5)
    assert [record.offset for record in share.poll()] == [0, 1, 2]
    assert [record.offset for record in share.poll()] == [3, 4]
    assert share.shares[T0].accepted == {0, 1, 2}


def test_a_broker_that_locks_more_than_one_poll_returns_is_not_asked_for_more_meanwhile(
    make_share: Callable[..., ShareModel],
) -> None:
    share = make_share(max_poll_records=2)
    share.subscribe()
    share.fill(T0, 5)
    share.handlers[ApiKeys.SHARE_FETCH] = lambda request, version: share.share_fetch(
        setattr(request, "max_records", 100) or request, version
    )
    assert [record.offset for record in share.poll()] == [0, 1]
    fetches = len(share.sent(ApiKeys.SHARE_FETCH))
    share.rounds(20)
    assert [record.offset for record in share.poll()] == [2, 3]
    assert [record.offset for record in share.poll()] == [4]
    assert len(share.sent(ApiKeys.SHARE_FETCH)) == fetches


@pytest.mark.parametrize(("mode", "number"), [("batch_optimized", 0), ("record_limit", 1)])
def test_brokers_are_told_how_much_to_acquire(
    make_share: Callable[..., ShareModel], mode: str, number: int
) -> None:
    share = make_share(max_poll_records=7, share_acquire_mode=mode, fetch_max_wait_ms=123)
    share.subscribe()
    share.poll(10)
    request = share.sent(ApiKeys.SHARE_FETCH)[-1]
    assert (request.share_acquire_mode, request.max_records, request.batch_size) == (number, 7, 7)
    assert request.max_wait_ms == 123


def test_records_know_how_often_they_were_delivered_and_keep_that_when_pickled(share: ShareModel) -> None:
    share.subscribe()
    share.fill(T0, 1)
    (record,) = share.poll()
    again = pickle.loads(pickle.dumps(record))
    assert again == record
    assert again.delivery_count == record.delivery_count == 1
    assert "delivery_count=1" in repr(record)


def test_only_what_is_locked_is_returned_and_offsets_without_a_record_are_told(explicit: ShareModel) -> None:
    explicit.subscribe()
    share = explicit.shares[T0]
    explicit.write(T0, batch(0, 4), 4)
    explicit.write(T0, marker(9, 4, ControlRecordType.COMMIT), 1)
    explicit.write(T0, batch(7, 2), 4)
    share.archived |= {1}
    records = explicit.poll()
    assert [record.offset for record in records] == [0, 2, 3, 7, 8]
    for record in records:
        explicit.consumer.acknowledge(record)
    explicit.poll(50)
    assert {(offset, type_) for _, offset, type_ in explicit.said} == {
        *((offset, 1) for offset in (0, 2, 3, 7, 8)),
        *((offset, 0) for offset in (4, 5, 6)),
    }


def test_a_record_that_cannot_be_deserialized_is_named_and_released(
    make_share: Callable[..., ShareModel],
) -> None:
    share = make_share(share_acknowledgement_mode="explicit", value_deserializer=refuse_two)
    share.subscribe()
    share.fill(T0, 4)
    records = share.poll()
    assert [record.offset for record in records] == [0, 1]
    for record in records:
        share.consumer.acknowledge(record)
    with pytest.raises(RecordDeserializationError, match=r"offset 2 of t-0 .* it is released.*two") as raised:
        share.poll()
    assert raised.value.offset == 2
    (last,) = share.poll()
    assert last.offset == 3
    share.rounds(3)
    assert (T0, 2, 2) in share.said


def refuse_two(data: bytes) -> int:
    if data == b"2":
        raise ValueError("two")
    return int(data)


def test_a_record_that_cannot_be_deserialized_can_be_rejected_by_its_offset(
    make_share: Callable[..., ShareModel],
) -> None:
    share = make_share(share_acknowledgement_mode="explicit", value_deserializer=refuse_two)
    share.subscribe()
    share.shares[T0].end = 2
    share.shares[T0].archived = {0, 1}
    share.write(T0, batch(2, 1), 1)
    with pytest.raises(RecordDeserializationError):
        share.poll()
    share.consumer.acknowledge("t", 0, 2, AcknowledgeType.REJECT)
    share.poll(50)
    assert share.said == [(T0, 2, 3)]


def test_a_deserializer_that_fails_for_what_is_not_locked_is_no_error(
    make_share: Callable[..., ShareModel],
) -> None:
    share = make_share(value_deserializer=refuse_two)
    share.subscribe()
    share.fill(T0, 4)
    share.shares[T0].archived = {2}
    assert [record.value for record in share.poll()] == [0, 1, 3]


def test_a_corrupt_batch_is_named_and_rejected_and_the_next_one_is_read(share: ShareModel) -> None:
    share.subscribe()
    broken = bytearray(batch(0, 3))
    broken[-1] ^= 1
    share.write(T0, bytes(broken), 3)
    share.fill(T0, 2)
    with pytest.raises(CorruptRecordError, match=r"t-0, offset 0"):
        share.poll()
    assert [record.offset for record in share.poll()] == [3, 4]
    assert share.said == [(T0, 0, 3), (T0, 1, 3), (T0, 2, 3)]


@pytest.mark.parametrize(("codec", "said"), [(1, 3), (4, 3), (7, 2)], ids=["gzip", "zstd", "unknown"])
def test_compressed_data_that_cannot_be_read_is_named_with_its_partition_and_offset(
    share: ShareModel, codec: int, said: int
) -> None:
    share.subscribe()
    share.write(T0, not_compressed(codec), 3)
    share.fill(T0, 2)
    with pytest.raises(KafkaError, match="t-0, offset 0: ") as caught:
        share.poll()
    assert isinstance(caught.value, DecompressionError | UnsupportedCompressionTypeError)
    assert [record.offset for record in share.poll()] == [3, 4]
    assert share.said == [(T0, offset, said) for offset in range(3)]


def test_records_before_a_corrupt_batch_are_returned_first(share: ShareModel) -> None:
    share.subscribe()
    share.fill(T0, 2)
    broken = bytearray(batch(2, 1))
    broken[-1] ^= 1
    share.write(T0, bytes(broken), 1)
    assert [record.offset for record in share.poll()] == [0, 1]
    with pytest.raises(CorruptRecordError):
        share.poll()
    assert share.shares[T0].accepted == {0, 1}


@pytest.mark.parametrize(
    "ranges", [[(5, 4)], [(0, 3), (3, 4)], [(4, 5), (0, 1)], [(-1, 2)], [(0, 2**40)], [(0, 2**63 - 1)]]
)
def test_locks_that_cannot_be_are_an_error_and_cost_no_memory(share: ShareModel, ranges: Any) -> None:
    share.subscribe()
    share.fill(T0, 2)

    def lie(request: Any, version: int) -> Any:
        response = share.share_fetch(request, version)
        for topic in response.responses:
            for data in topic.partitions:
                data.acquired_records = [
                    AcquiredRecords(first_offset=first, last_offset=last, delivery_count=1)
                    for first, last in ranges
                ]
        return response

    share.on(ApiKeys.SHARE_FETCH, lie, lie)
    with pytest.raises(KafkaError, match=r"t-0: the broker says"):
        share.poll()


def test_what_poll_cannot_return_comes_with_the_next_one(share: ShareModel, monkeypatch: Any) -> None:
    share.subscribe()
    share.fill(T0, 2)
    hand_out = share.core._hand_out

    def interrupted() -> Any:
        if hand_out() is not None:
            raise KeyboardInterrupt

    monkeypatch.setattr(type(share.core), "_hand_out", lambda _: interrupted())
    with pytest.raises(KeyboardInterrupt):
        share.poll()
    monkeypatch.undo()
    assert [record.offset for record in share.poll()] == [0, 1]
    assert not share.shares[T0].accepted


# Iteration.


def test_a_loop_gets_every_record_and_accepts_a_poll_when_it_is_through(
    make_share: Callable[..., ShareModel],
) -> None:
    share = make_share(max_poll_records=2)
    share.subscribe()
    share.fill(T0, 5)
    seen = []
    for record in share.consumer:
        seen.append(record.offset)
        if len(seen) == 3:
            assert share.shares[T0].accepted == {0, 1}
            break
    share.consumer.commit_sync()
    assert share.shares[T0].accepted == {0, 1, 2}
    share.consumer.close()
    assert share.shares[T0].accepted == {0, 1, 2}
    assert not share.shares[T0].locked


def test_a_record_that_a_loop_did_not_get_comes_with_its_next_step(
    share: ShareModel, monkeypatch: Any
) -> None:
    share.subscribe()
    share.fill(T0, 2)
    next_waiting = share.core.next_waiting

    def interrupted(_: Any) -> Any:
        if next_waiting() is not None:
            raise KeyboardInterrupt

    monkeypatch.setattr(type(share.core), "next_waiting", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(share.consumer)
    monkeypatch.undo()
    assert [next(share.consumer).offset for _ in range(2)] == [0, 1]


def test_poll_after_a_loop_returns_what_the_loop_did_not_get(share: ShareModel) -> None:
    share.subscribe()
    share.fill(T0, 3)
    assert next(share.consumer).offset == 0
    assert [record.offset for record in share.poll()] == [1, 2]
    assert share.shares[T0].accepted == {0}


def test_explicit_acknowledgements_in_a_loop_are_asked_for_at_its_next_poll(
    make_share: Callable[..., ShareModel],
) -> None:
    share = make_share(share_acknowledgement_mode="explicit", max_poll_records=2)
    share.subscribe()
    share.fill(T0, 3)
    first, second = next(share.consumer), next(share.consumer)
    share.consumer.acknowledge(first)
    with pytest.raises(IllegalStateError):
        next(share.consumer)
    share.consumer.acknowledge(second)
    assert next(share.consumer).offset == 2


def test_a_loop_that_is_refused_its_next_poll_takes_back_no_record(
    make_share: Callable[..., ShareModel],
) -> None:
    share = make_share(share_acknowledgement_mode="explicit")
    share.subscribe()
    share.fill(T0, 1)
    record = next(share.consumer)
    with pytest.raises(IllegalStateError):
        next(share.consumer)
    share.consumer.acknowledge(record)
    assert share.consumer.commit_sync() == {share.tip(T0): None}


def test_iteration_ends_when_the_consumer_is_closed(share: ShareModel) -> None:
    share.subscribe()
    share.consumer.close()
    assert list(share.consumer) == []


# Errors, wakeups, threads.


def test_a_topic_that_may_not_be_read_is_named(share: ShareModel) -> None:
    share.subscribe()
    share.fetch_error[T0] = Errors.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(TopicAuthorizationError, match="'t'"):
        share.poll()


@pytest.mark.parametrize(
    "code", [Errors.NOT_LEADER_OR_FOLLOWER, Errors.UNKNOWN_TOPIC_ID, Errors.KAFKA_STORAGE_ERROR]
)
def test_a_partition_that_has_moved_has_metadata_refreshed_and_is_left_alone_for_a_while(
    share: ShareModel, code: int
) -> None:
    share.subscribe()
    share.fill(T0, 1)
    share.fetch_error[T0] = code
    version = share.core.metadata.update_version
    before = len(share.sent(ApiKeys.SHARE_FETCH))
    assert share.poll(300) == []
    assert share.core.metadata.update_version > version
    assert len(share.sent(ApiKeys.SHARE_FETCH)) - before < 8
    share.fetch_error.clear()
    assert [record.offset for record in share.poll(3000)] == [0]


def test_a_wakeup_ends_a_poll_and_costs_no_record(share: ShareModel) -> None:
    share.subscribe()
    share.consumer.wakeup()
    share.fill(T0, 1)
    with pytest.raises(WakeupError):
        share.poll()
    assert [record.offset for record in share.poll()] == [0]


def test_a_second_thread_is_refused(share: ShareModel) -> None:
    share.subscribe()
    errors: list[BaseException] = []

    def other() -> None:
        try:
            share.consumer.subscription()
        except ConcurrentModificationError as error:
            errors.append(error)

    with share.consumer._use:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(errors) == 1


def test_a_closed_consumer_says_so(share: ShareModel) -> None:
    share.consumer.close()
    share.consumer.close()
    with pytest.raises(ClientClosedError):
        share.poll()
    assert "closed" in repr(share.consumer)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_refused_and_closing_it_does_nothing(share: ShareModel) -> None:
    share.subscribe()
    child = os.fork()
    if not child:
        code = 1
        try:
            share.consumer.poll(0)
        except KafkaError as error:
            code = 0 if type(error).__name__ == "ForkedClientError" else 2
        finally:
            share.consumer.close()
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_unsubscribing_gives_back_what_was_not_returned_and_keeps_what_was(
    make_share: Callable[..., ShareModel],
) -> None:
    share = make_share(share_acknowledgement_mode="explicit")
    share.subscribe()
    share.fill(T0, 1)
    share.fill(T1, 1)
    record = next(share.consumer)
    share.consumer.unsubscribe()
    share.rounds()
    share.consumer.acknowledge(record)
    assert share.consumer.commit_sync() == {share.tip(TopicPartition("t", record.partition)): None}
    assert not share.shares[T0].locked
    assert not share.shares[T1].locked
    assert sorted(type_ for _, _, type_ in share.said) == [1, 2]
    assert share.sent(ApiKeys.SHARE_GROUP_HEARTBEAT)[-1].member_epoch == -1


def test_a_topic_that_was_deleted_is_forgotten_by_the_session(share: ShareModel) -> None:
    share.subscribe("t", "u")
    share.poll(50)
    share.assigned = [T0]
    share.consumer.subscribe(["t"])
    share.fill(T1, 1)
    assert share.poll(1500) == []
    forgotten = [
        (topic.topic_id, topic.partitions)
        for request in share.sent(ApiKeys.SHARE_FETCH)
        for topic in request.forgotten_topics_data
    ]
    assert (share.topic_ids["u"], [0, 1]) in forgotten
    assert (share.topic_ids["t"], [1]) in forgotten
