"""One assigned partition: which thread may move its position, and when."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from kclient.client.metadata_snapshot import LeaderAndEpoch
from kclient.common.node import Node
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.fetch_position import (
    RESET_TO_EARLIEST,
    RESET_TO_LATEST,
    AutoOffsetReset,
    FetchPosition,
)
from kclient.consumer.internals.topic_partition_state import FetchState, TopicPartitionState
from kclient.errors import KafkaError, NoOffsetForPartitionError

T0 = TopicPartition("t", 0)
NONE = AutoOffsetReset("none")
OLD, NEW = (LeaderAndEpoch(Node(epoch, "h", 1), epoch) for epoch in (1, 2))


@pytest.fixture
def state() -> TopicPartitionState:
    return TopicPartitionState(T0, threading.RLock())


@pytest.fixture
def reading(state: TopicPartitionState) -> TopicPartitionState:
    state.seek(FetchPosition(5, 1, OLD))
    return state


def test_a_hand_out_moves_the_position_from_where_it_is_expected(reading: TopicPartitionState) -> None:
    assert not reading.advance(4, 9, 1)
    assert reading.advance(5, 9, 1)
    assert reading.consumed() == OffsetAndMetadata(9, "", 1)
    assert reading.is_readable_at(9)
    assert reading.is_readable_at(5) is None


def hold_back(state: TopicPartitionState, how: str) -> None:
    if how == "paused":
        state.paused = True
    elif how == "waiting for the listener":
        state.awaiting_callback = True
    else:
        state.update_leader(NEW, lambda _: True)


@pytest.mark.parametrize("how", ["paused", "waiting for the listener", "being validated"])
def test_nothing_is_handed_out_meanwhile(reading: TopicPartitionState, how: str) -> None:
    hold_back(reading, how)
    assert reading.is_readable_at(5) is False
    assert not reading.is_fetchable()
    assert not reading.advance(5, 9, 1)


def test_what_was_handed_out_is_taken_back(reading: TopicPartitionState) -> None:
    undo: dict[TopicPartition, FetchPosition] = {}
    assert reading.advance(5, 9, 1, undo)
    hold_back(reading, "being validated")
    reading.take_back(undo[T0])
    assert reading.position == FetchPosition(5, 1, NEW)


def test_nothing_is_taken_back_into_a_position_that_was_given_up_since(reading: TopicPartitionState) -> None:
    undo: dict[TopicPartition, FetchPosition] = {}
    assert reading.advance(5, 9, 1, undo)
    reading.start_over(RESET_TO_EARLIEST)
    assert reading.finish_reset(RESET_TO_EARLIEST, FetchPosition(0))
    reading.take_back(undo[T0])
    assert reading.position == FetchPosition(0)


def test_a_committed_offset_starts_only_what_has_not_started(state: TopicPartitionState) -> None:
    state.initialize(FetchPosition(3), validate=False)
    state.initialize(FetchPosition(7), validate=False)
    state.initialize_by_policy(RESET_TO_EARLIEST)
    assert state.valid_position() == FetchPosition(3)


def test_without_a_committed_offset_the_policy_decides(state: TopicPartitionState) -> None:
    state.initialize_by_policy(RESET_TO_LATEST)
    assert state.state is FetchState.AWAIT_RESET
    assert not state.finish_reset(RESET_TO_EARLIEST, FetchPosition(0)), "it was not asked for"
    state.redirect_reset(RESET_TO_EARLIEST, NONE)
    assert state.reset == RESET_TO_LATEST
    assert state.finish_reset(RESET_TO_LATEST, FetchPosition(8))
    assert state.valid_position() == FetchPosition(8)


def test_without_a_policy_it_stands_still_until_the_application_seeks(state: TopicPartitionState) -> None:
    state.initialize_by_policy(NONE)
    assert isinstance(state.error, NoOffsetForPartitionError)
    assert state.valid_position() is None
    state.seek(FetchPosition(1))
    assert state.error is None
    assert state.is_fetchable()


@pytest.mark.parametrize("policy", [RESET_TO_EARLIEST, NONE])
def test_a_refused_position_is_given_up_if_it_still_is_the_one(
    reading: TopicPartitionState, policy: AutoOffsetReset
) -> None:
    error = KafkaError("out of range")
    assert not reading.refuse_position(FetchPosition(4), policy, error)
    assert reading.refuse_position(FetchPosition(5), policy, error)
    assert reading.state is FetchState.AWAIT_RESET
    assert reading.error is (error if policy.is_none else None)
    assert reading.consumed() is None


VERDICTS: list[tuple[Callable[[TopicPartitionState, FetchPosition], Any], FetchPosition | None]] = [
    (lambda state, position: state.finish_validation(position, None), FetchPosition(5, 1, NEW)),
    (
        lambda state, position: state.finish_validation(position, FetchPosition(2, 1, NEW)),
        FetchPosition(2, 1, NEW),
    ),
    (lambda state, position: state.abandon_validation(position, RESET_TO_EARLIEST), None),
    (lambda state, position: state.fail_validation(position, KafkaError()), None),
]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("verdict", "then"), VERDICTS)
def test_a_verdict_counts_for_the_position_that_was_validated(
    reading: TopicPartitionState, verdict: Any, then: FetchPosition | None, late: bool
) -> None:
    reading.update_leader(NEW, lambda _: True)
    asked = reading.position
    if late:
        reading.seek(FetchPosition(6, 2, NEW))
    verdict(reading, asked)
    assert reading.valid_position() == (FetchPosition(6, 2, NEW) if late else then)


@pytest.mark.parametrize("why", ["no epoch", "no broker that can", "an older leader"])
def test_a_position_goes_to_another_leader_without_validation_if(
    state: TopicPartitionState, why: str
) -> None:
    epoch = None if why == "no epoch" else 1
    before, after = (NEW, OLD) if why == "an older leader" else (OLD, NEW)
    state.seek(FetchPosition(5, epoch, before))
    state.update_leader(after, lambda _: why != "no broker that can")
    assert state.valid_position() == FetchPosition(5, epoch, after)


def test_a_backoff_and_an_error_are_for_what_has_no_position(reading: TopicPartitionState) -> None:
    reading.back_off(1000)
    reading.fail(KafkaError())
    assert (reading.next_retry_ms, reading.error) == (0, None)
    reading.await_reset(RESET_TO_EARLIEST)
    reading.back_off(1000)
    reading.fail(KafkaError())
    assert reading.next_retry_ms == 1000
    assert reading.error is not None


def test_a_follower_is_read_from_until_its_time_is_over(reading: TopicPartitionState) -> None:
    reading.prefer_replica(3, 100)
    assert reading.replica_to_read(99) == 3
    assert reading.replica_to_read(100) is None
    reading.prefer_replica(3, 200)
    assert reading.clear_preferred_replica() == 3
    assert reading.replica_to_read(100) is None


@pytest.mark.parametrize("read_committed", [False, True])
def test_an_end_that_was_asked_for_is_taken_unless_it_is_older(
    reading: TopicPartitionState, read_committed: bool
) -> None:
    reading.update_end(-1, read_committed)
    assert reading.end(read_committed) is None
    reading.update_end(0, read_committed)
    assert reading.end(read_committed) == 0
    assert reading.end(not read_committed) is None
    reading.update_log_ends(20, 20, -1)
    reading.update_end(15, read_committed)
    assert reading.end(read_committed) == 20


def test_the_lag_is_known_with_the_end_and_the_position(reading: TopicPartitionState) -> None:
    assert reading.lag(read_committed=False) is None
    reading.update_log_ends(20, 15, -1)
    reading.update_log_ends(-1, -1, 2)
    assert (reading.lag(read_committed=False), reading.lag(read_committed=True)) == (15, 10)
    assert reading.log_start_offset == 2
    reading.await_reset(RESET_TO_EARLIEST)
    assert reading.lag(read_committed=False) is None
