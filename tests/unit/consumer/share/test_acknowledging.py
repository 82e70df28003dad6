"""Acknowledgements of a share consumer, from the call to the broker and back."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness.consumer.share_model import LOCK_MS, ShareModel
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import AcknowledgeType
from kclient.consumer.internals.share.acknowledgements import Acknowledgements, Run
from kclient.errors import (
    ClientClosedError,
    ConcurrentModificationError,
    ConfigError,
    DisconnectError,
    Errors,
    IllegalStateError,
    InvalidRecordStateError,
    InvalidShareSessionEpochError,
    KafkaError,
    KafkaTimeoutError,
    NotLeaderOrFollowerError,
    ShareSessionNotFoundError,
    WakeupError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import share_acknowledge

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def filled(model: ShareModel, count: int = 4) -> list[Any]:
    """The records of a first poll of partition 0."""
    model.subscribe()
    model.fill(T0, count)
    records = model.poll()
    assert [record.offset for record in records] == list(range(count))
    return records


def test_the_next_poll_accepts_what_was_returned_in_implicit_mode(share: ShareModel) -> None:
    filled(share)
    assert not share.shares[T0].accepted
    share.poll(50)
    assert share.shares[T0].accepted == {0, 1, 2, 3}


def test_acceptance_goes_along_with_the_next_fetch(share: ShareModel) -> None:
    filled(share)
    share.poll(50)
    assert not share.sent(ApiKeys.SHARE_ACKNOWLEDGE)


def test_a_commit_accepts_what_was_returned_in_implicit_mode_and_says_so(share: ShareModel) -> None:
    filled(share)
    assert share.consumer.commit_sync() == {share.tip(T0): None}
    assert share.shares[T0].accepted == {0, 1, 2, 3}
    assert share.consumer.commit_sync() == {}


def test_a_commit_in_the_background_accepts_as_well(share: ShareModel) -> None:
    filled(share)
    share.consumer.commit_async()
    share.rounds()
    assert share.shares[T0].accepted == {0, 1, 2, 3}


def test_closing_accepts_nothing_in_implicit_mode_and_gives_everything_back(share: ShareModel) -> None:
    filled(share)
    share.consumer.close()
    assert not share.shares[T0].accepted
    assert not share.shares[T0].locked


def test_nothing_can_be_acknowledged_in_implicit_mode(share: ShareModel) -> None:
    (record, *_) = filled(share)
    with pytest.raises(IllegalStateError, match="explicit"):
        share.consumer.acknowledge(record)


def test_all_must_be_acknowledged_before_the_next_poll_in_explicit_mode(explicit: ShareModel) -> None:
    records = filled(explicit)
    for record in records[1:]:
        explicit.consumer.acknowledge(record)
    with pytest.raises(IllegalStateError, match="must be acknowledged"):
        explicit.poll()
    explicit.consumer.acknowledge(records[0])
    assert explicit.poll(50) == []
    assert explicit.shares[T0].accepted == {0, 1, 2, 3}


def test_each_type_arrives_as_it_was_said_and_the_last_word_counts(explicit: ShareModel) -> None:
    records = filled(explicit)
    for record, type_ in zip(records, (ACCEPT, RELEASE, REJECT, RELEASE), strict=True):
        explicit.consumer.acknowledge(record, type_)
    explicit.consumer.acknowledge("t", 0, 3, ACCEPT)
    assert explicit.consumer.commit_sync() == {explicit.tip(T0): None}
    assert explicit.said == [(T0, 0, 1), (T0, 1, 2), (T0, 2, 3), (T0, 3, 1)]


def test_a_released_record_comes_again_with_the_number_of_its_delivery(explicit: ShareModel) -> None:
    records = filled(explicit)
    assert {record.delivery_count for record in records} == {1}
    for record in records:
        explicit.consumer.acknowledge(record, RELEASE if record.offset == 2 else ACCEPT)
    (again,) = explicit.poll()
    assert (again.offset, again.delivery_count) == (2, 2)


def test_only_records_in_hand_can_be_acknowledged(explicit: ShareModel) -> None:
    (record, *_) = filled(explicit)
    for place in (("u", 0, 0), ("t", 1, 0), ("t", 0, 99)):
        with pytest.raises(IllegalStateError, match="cannot be acknowledged"):
            explicit.consumer.acknowledge(*place, ACCEPT)
    explicit.consumer.acknowledge(record)
    explicit.consumer.commit_sync()
    with pytest.raises(IllegalStateError, match="on its way already"):
        explicit.consumer.acknowledge(record)


def test_the_next_records_in_a_row_are_held_to_the_same_as_the_first(explicit: ShareModel) -> None:
    records = filled(explicit)
    say = explicit.consumer.acknowledge
    say(records[0])
    say(pickle.loads(pickle.dumps(records[1])))
    with pytest.raises(TypeError, match="AcknowledgeType"):
        say(records[2], 1)
    refused: list[BaseException] = []

    def other() -> None:
        try:
            say(records[2])
        except ConcurrentModificationError as error:
            refused.append(error)

    with explicit.consumer._use:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert explicit.consumer.commit_sync() == {explicit.tip(T0): None}
    assert explicit.said == [(T0, 0, 1), (T0, 1, 1)]
    with pytest.raises(IllegalStateError, match="on its way already"):
        say(records[1])
    explicit.consumer.close()
    with pytest.raises(ClientClosedError):
        say(records[2])


def test_a_lost_lock_is_told_by_partition(explicit: ShareModel) -> None:
    explicit.subscribe()
    explicit.fill(T0, 1)
    explicit.fill(T1, 1)
    records = explicit.poll()
    assert len(records) == 2
    for record in records:
        explicit.consumer.acknowledge(record)
    explicit.unlock(T0)
    results = explicit.consumer.commit_sync()
    assert isinstance(results[explicit.tip(T0)], InvalidRecordStateError)
    assert results[explicit.tip(T1)] is None


def test_passing_errors_are_tried_again_until_the_timeout(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record)
    explicit.acknowledge_error[T0] = Errors.COORDINATOR_NOT_AVAILABLE
    results = explicit.consumer.commit_sync(timeout_ms=1000)
    assert isinstance(results[explicit.tip(T0)], KafkaTimeoutError)
    assert len(explicit.sent(ApiKeys.SHARE_ACKNOWLEDGE)) > 2


def test_a_passing_error_passes(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record)

    def refuse(request: Any, version: int) -> Any:
        explicit.acknowledge_error[T0] = Errors.COORDINATOR_NOT_AVAILABLE
        response = explicit.share_acknowledge(request, version)
        explicit.acknowledge_error.clear()
        return response

    explicit.on(ApiKeys.SHARE_ACKNOWLEDGE, refuse)
    assert explicit.consumer.commit_sync() == {explicit.tip(T0): None}


def test_a_commit_that_is_not_answered_in_time_fails_by_partition(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record)
    explicit.handlers.pop(ApiKeys.SHARE_ACKNOWLEDGE)
    results = explicit.consumer.commit_sync(timeout_ms=500)
    assert isinstance(results[explicit.tip(T0)], KafkaTimeoutError)


def test_a_leader_that_has_moved_loses_the_locks_and_is_not_asked(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record)
    explicit.nodes[1] = Node(1, "mock1", 9092)
    explicit.leaders[T0] = (1, 6)
    explicit.core.metadata.request_update()
    explicit.rounds(3)
    results = explicit.consumer.commit_sync()
    assert isinstance(results[explicit.tip(T0)], NotLeaderOrFollowerError)
    assert not explicit.said


def test_a_broken_connection_fails_what_was_on_its_way_and_begins_a_new_session(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record)
    explicit.on(ApiKeys.SHARE_ACKNOWLEDGE, ConnectionError())
    results = explicit.consumer.commit_sync()
    assert isinstance(results[explicit.tip(T0)], DisconnectError)
    explicit.unlock(T0)
    (again,) = explicit.poll()
    assert again.delivery_count == 2
    assert [request.share_session_epoch for request in explicit.sent(ApiKeys.SHARE_FETCH)].count(0) == 2


def test_without_a_session_there_is_nothing_to_acknowledge_to(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record)
    explicit.sessions.clear()
    results = explicit.consumer.commit_sync()
    assert isinstance(results[explicit.tip(T0)], ShareSessionNotFoundError)
    explicit.unlock(T0)
    assert [each.delivery_count for each in explicit.poll()] == [2]


def test_a_session_that_the_broker_lost_fails_what_went_along_with_a_fetch(explicit: ShareModel) -> None:
    outcomes: list[Any] = []
    explicit.consumer.set_acknowledgement_commit_callback(lambda *outcome: outcomes.append(outcome))
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record)
    explicit.sessions.clear()
    explicit.unlock(T0)
    (again,) = explicit.poll()
    assert again.delivery_count == 2
    ((offsets, error),) = outcomes
    assert offsets == {explicit.tip(T0): {0}}
    assert isinstance(error, ShareSessionNotFoundError)


def test_a_new_session_does_not_begin_with_acknowledgements_of_the_old_one(explicit: ShareModel) -> None:
    outcomes: list[Any] = []
    first, second = filled(explicit, 2)
    explicit.consumer.acknowledge(first)
    explicit.on(ApiKeys.SHARE_ACKNOWLEDGE, ConnectionError())
    explicit.consumer.commit_sync()
    explicit.consumer.set_acknowledgement_commit_callback(lambda *outcome: outcomes.append(outcome))
    explicit.consumer.acknowledge(second)
    explicit.poll(50)
    ((offsets, error),) = outcomes
    assert offsets == {explicit.tip(T0): {1}}
    assert isinstance(error, InvalidShareSessionEpochError)
    new = [each for each in explicit.sent(ApiKeys.SHARE_FETCH) if each.share_session_epoch == 0][-1]
    assert [p.acknowledgement_batches for topic in new.topics for p in topic.partitions] == [[], []]


def test_what_overlaps_goes_by_two_requests_also_at_the_end(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    twice = [Acknowledgements(0, explicit.tip(T0), (Run(record.offset, bytes([type_])),)) for type_ in (2, 1)]
    acknowledger = explicit.core._acknowledger
    explicit._submit(lambda now_ms: acknowledger.add(twice, now_ms + 1000))
    explicit.consumer.close()
    assert explicit.said == [(T0, 0, 2), (T0, 0, 1)]
    assert [each.share_session_epoch for each in explicit.sent(ApiKeys.SHARE_ACKNOWLEDGE)] == [2, -1]


# Renewing.


def test_a_renewed_record_comes_again_before_anything_new_and_stays_locked(explicit: ShareModel) -> None:
    records = filled(explicit, 2)
    explicit.consumer.acknowledge(records[0], RENEW)
    explicit.consumer.acknowledge(records[1], ACCEPT)
    explicit.fill(T0, 1)
    (renewed,) = explicit.poll()
    assert renewed is records[0]
    assert explicit.shares[T0].locked == {0}
    assert explicit.sent(ApiKeys.SHARE_ACKNOWLEDGE)[0].is_renew_ack
    assert explicit.consumer.acquisition_lock_timeout_ms() == LOCK_MS
    explicit.consumer.acknowledge(renewed)
    assert [record.offset for record in explicit.poll()] == [2]
    assert explicit.shares[T0].accepted == {0, 1}


def test_a_record_whose_lock_cannot_be_renewed_is_lost(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record, RENEW)
    explicit.unlock(T0)
    results = explicit.consumer.commit_sync()
    assert isinstance(results[explicit.tip(T0)], InvalidRecordStateError)
    with pytest.raises(IllegalStateError):
        explicit.consumer.acknowledge(record)
    (again,) = explicit.poll()
    assert again.delivery_count == 2


def test_a_renewed_record_is_acknowledged_after_the_next_poll(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record, RENEW)
    assert explicit.consumer.commit_sync() == {explicit.tip(T0): None}
    with pytest.raises(IllegalStateError):
        explicit.consumer.acknowledge(record)
    assert explicit.poll() == [record]
    explicit.consumer.acknowledge(record, REJECT)
    explicit.consumer.commit_sync()
    assert explicit.said[-1] == (T0, 0, 3)


# The callback.


def test_the_callback_hears_of_every_outcome_in_the_applications_calls(explicit: ShareModel) -> None:
    outcomes: list[Any] = []
    explicit.consumer.set_acknowledgement_commit_callback(lambda *outcome: outcomes.append(outcome))
    for record in filled(explicit, 2):
        explicit.consumer.acknowledge(record)
    explicit.consumer.commit_async()
    explicit.rounds()
    assert outcomes == []
    explicit.poll(10)
    assert outcomes == [({explicit.tip(T0): {0, 1}}, None)]
    explicit.consumer.set_acknowledgement_commit_callback(None)


def test_closing_tells_the_callback_of_the_last_outcomes(explicit: ShareModel) -> None:
    outcomes: list[Any] = []
    explicit.consumer.set_acknowledgement_commit_callback(lambda *outcome: outcomes.append(outcome))
    for record in filled(explicit, 1):
        explicit.consumer.acknowledge(record)
    explicit.consumer.close()
    assert outcomes == [({explicit.tip(T0): {0}}, None)]
    assert explicit.shares[T0].accepted == {0}


def test_closing_tells_the_callback_of_what_was_not_answered_as_well(explicit: ShareModel) -> None:
    outcomes: list[Any] = []
    explicit.consumer.set_acknowledgement_commit_callback(lambda *outcome: outcomes.append(outcome))
    for record in filled(explicit, 1):
        explicit.consumer.acknowledge(record)
    explicit.handlers.pop(ApiKeys.SHARE_ACKNOWLEDGE)
    explicit.consumer.close(300)
    ((offsets, error),) = outcomes
    assert offsets == {explicit.tip(T0): {0}}
    assert isinstance(error, ClientClosedError)


def test_the_callback_must_not_use_the_consumer_but_wakeup(explicit: ShareModel) -> None:
    refused: list[BaseException] = []

    def callback(*_: Any) -> None:
        for call in (
            explicit.consumer.commit_sync,
            explicit.consumer.subscription,
            explicit.consumer.metrics,
        ):
            try:
                call()
            except IllegalStateError as error:
                refused.append(error)
        explicit.consumer.wakeup()

    explicit.consumer.set_acknowledgement_commit_callback(callback)
    for record in filled(explicit, 1):
        explicit.consumer.acknowledge(record)
    explicit.consumer.commit_sync()
    assert len(refused) == 3
    with pytest.raises(WakeupError):
        explicit.poll()


def test_what_the_callback_raises_is_raised_once_all_outcomes_are_told(explicit: ShareModel) -> None:
    heard: list[Any] = []

    def callback(offsets: Any, error: KafkaError | None) -> None:
        heard.append(offsets)
        raise ValueError(str(len(heard)))

    explicit.consumer.set_acknowledgement_commit_callback(callback)
    explicit.subscribe()
    explicit.fill(T0, 1)
    explicit.fill(T1, 1)
    for record in explicit.poll():
        explicit.consumer.acknowledge(record)
    with pytest.raises(ValueError, match="1"):
        explicit.consumer.commit_sync()
    assert len(heard) == 2
    explicit.consumer.set_acknowledgement_commit_callback(None)


def test_a_poll_that_the_callback_ends_takes_back_nothing_of_the_poll_before(explicit: ShareModel) -> None:
    def callback(*_: Any) -> None:
        raise ValueError("no")

    explicit.consumer.set_acknowledgement_commit_callback(callback)
    first, second = filled(explicit, 2)
    explicit.consumer.acknowledge(first)
    explicit.consumer.commit_async()
    explicit.rounds()
    with pytest.raises(ValueError, match="no"):
        explicit.poll()
    explicit.consumer.set_acknowledgement_commit_callback(None)
    explicit.consumer.acknowledge(second)
    assert explicit.consumer.commit_sync() == {explicit.tip(T0): None}


def test_a_wakeup_ends_a_commit_whose_acknowledgements_go_on(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record)
    explicit.consumer.wakeup()
    with pytest.raises(WakeupError):
        explicit.consumer.commit_sync()
    explicit.rounds()
    assert explicit.shares[T0].accepted == {0}


@pytest.mark.parametrize(
    "arguments", [(1,), ("t", "0", 0, ACCEPT), ("t", 0, -1, ACCEPT), ("t", 0, 0, 1), ("t", 0, 0)]
)
def test_wrong_arguments_are_refused_at_once(explicit: ShareModel, arguments: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        explicit.consumer.acknowledge(*arguments)


@pytest.mark.parametrize(
    "name",
    [
        "auto.offset.reset",
        "enable.auto.commit",
        "group.instance.id",
        "isolation.level",
        "partition.assignment.strategy",
        "interceptor.classes",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "group.protocol",
        "group.remote.assignor",
    ],
)
def test_what_the_group_decides_is_no_setting_of_a_share_consumer(
    make_share: Callable[..., ShareModel], name: str
) -> None:
    with pytest.raises(ConfigError, match="not of the share consumer") as raised:
        make_share(**{name.replace(".", "_"): "1"})
    assert raised.value.name == name.replace(".", "_") or raised.value.name == name


def test_an_answer_that_leaves_a_partition_out_is_no_success(explicit: ShareModel) -> None:
    (record,) = filled(explicit, 1)
    explicit.consumer.acknowledge(record)
    explicit.on(ApiKeys.SHARE_ACKNOWLEDGE, share_acknowledge.ShareAcknowledgeResponse())
    results = explicit.consumer.commit_sync()
    assert "did not answer" in str(results[explicit.tip(T0)])
