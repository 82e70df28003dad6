"""The partitions that are held: what becomes of their state as the assignment and the topics change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kclient.client.metadata_snapshot import LeaderAndEpoch
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.consumer.internals.fetch_position import RESET_TO_EARLIEST, RESET_TO_LATEST, FetchPosition
from kclient.consumer.internals.topic_partition_state import FetchState
from kclient.errors import (
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationError,
)
from kclient.utils.log_context import LogContext

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
IDS = {"t": Uuid(b"t" * 16), "u": Uuid(b"u" * 16)}


@pytest.fixture
def assigned() -> AssignedPartitions:
    assigned = AssignedPartitions(RESET_TO_EARLIEST, LogContext(""))
    assigned.replace((T0, T1), IDS.get)
    return assigned


def test_what_is_held_on_keeps_its_state_and_what_comes_back_has_none(assigned: AssignedPartitions) -> None:
    before = assigned.by_partition
    assigned.state(T0).seek(FetchPosition(5))
    assigned.replace((T0, U0), IDS.get)
    assert assigned.state(T0).valid_position() == FetchPosition(5)
    assert assigned.partitions() == {T0, U0}
    assert set(before) == {T0, T1}, "who looked before may go on looking"
    with pytest.raises(IllegalStateError, match="not assigned"):
        assigned.state(T1)
    assigned.replace((U0,), IDS.get)
    assigned.replace((T0,), IDS.get)
    assert assigned.state(T0).position is None


def test_a_groups_partitions_are_read_after_the_listener_has_heard_of_them(
    assigned: AssignedPartitions,
) -> None:
    assigned.replace((T0, U0), IDS.get, awaiting_callback=True)
    for tp in (T0, U0):
        assigned.state(tp).seek(FetchPosition(0))
    assert assigned.state(T0).fetch_position() == FetchPosition(0)
    assert assigned.state(U0).fetch_position() is None
    assigned.take_changed()
    assigned.finish_callback()
    assert assigned.state(U0).fetch_position() == FetchPosition(0)
    assert U0 in assigned.take_changed()


def test_partitions_take_turns_to_be_fetched(assigned: AssignedPartitions) -> None:
    assert assigned.in_turn({T1, T0}) == [T0, T1]
    assigned.move_to_end(T0)
    assigned.move_to_end(U0)  # not held
    assert assigned.in_turn([T0, T1, U0]) == [U0, T1, T0]
    assigned.replace((T0, T1, U0), IDS.get)
    assert assigned.in_turn([T0, T1, U0]) == [T1, T0, U0]


def test_it_tells_once_of_partitions_whose_fetching_may_have_changed(assigned: AssignedPartitions) -> None:
    assert assigned.take_changed() == {T0, T1}
    assert assigned.take_changed() == set()
    state = assigned.state(T0)
    changes: list[Callable[[], object]] = [
        lambda: state.seek(FetchPosition(5)),
        lambda: state.advance(5, 6, None, {}),
        lambda: state.take_back(FetchPosition(5)),
        lambda: state.set_paused(True),
        lambda: state.set_paused(False),
        lambda: state.prefer_replica(3, 100),
        lambda: state.update_leader(LeaderAndEpoch(None, None), lambda _: False),
        lambda: state.replica_to_read(200),
        lambda: state.prefer_replica(3, 300),
        state.clear_preferred_replica,
        lambda: state.update_leader(LeaderAndEpoch(Node(4, "b", 1), 4), lambda _: False),
        lambda: state.await_reset(RESET_TO_LATEST),
    ]
    for change in changes:
        change()
        assert assigned.take_changed() == {T0}
    state.update_log_ends(1, 1, 1)
    assert assigned.take_changed() == set()
    assigned.replace((T1, U0), IDS.get)
    assert assigned.take_changed() == {T0, T1, U0}
    assigned.follow_topics({"t": IDS["t"], "u": Uuid(b"n" * 16)}.get)
    assert assigned.take_changed() == {U0}


def test_it_knows_if_all_positions_are_valid_whatever_becomes_of_partitions_given_up(
    assigned: AssignedPartitions,
) -> None:
    given_up = assigned.state(T1)
    assert not assigned.all_valid()
    assigned.state(T0).seek(FetchPosition(0))
    assert not assigned.all_valid()
    assigned.replace((T0,), IDS.get)
    assert assigned.all_valid()
    given_up.fail(KafkaError("late"))
    assert assigned.all_valid()
    assigned.raise_error()
    assigned.state(T0).await_reset(RESET_TO_LATEST)
    assert not assigned.all_valid()
    assigned.state(T0).fail(KafkaError("in time"))
    with pytest.raises(KafkaError, match="in time"):
        assigned.raise_error()


def test_only_a_topic_that_is_another_one_by_now_starts_again(assigned: AssignedPartitions) -> None:
    assigned.replace((T0, T1, U0), {"t": IDS["t"]}.get)
    for tp in (T0, T1, U0):
        assigned.state(tp).seek(FetchPosition(5))
    assert assigned.follow_topics({"u": IDS["u"]}.get) == []
    assert assigned.topic_ids() == IDS
    new = {"t": Uuid(b"n" * 16), "u": IDS["u"]}
    assert assigned.follow_topics(new.get) == [T0, T1]
    assert assigned.topic_id("t") == new["t"]
    assert list(assigned.consumed()) == [U0]


def test_partitions_are_looked_after_in_the_state_they_are_in(assigned: AssignedPartitions) -> None:
    assigned.state(T0).await_reset(RESET_TO_EARLIEST)
    assert not assigned.all_valid()
    assert list(assigned.in_state(FetchState.INITIALIZING, 0)) == [T1]
    assert list(assigned.in_state(FetchState.AWAIT_RESET, 0)) == [T0]
    assert assigned.next_retry_delay_ms(0) is None
    assigned.state(T0).back_off(100)
    assert assigned.next_retry_delay_ms(30) == 70
    assert not assigned.in_state(FetchState.AWAIT_RESET, 99)
    assert list(assigned.in_state(FetchState.AWAIT_RESET, 100)) == [T0]
    assigned.state(T0).fail(KafkaError())
    assert not assigned.in_state(FetchState.AWAIT_RESET, 100)
    for tp in (T0, T1):
        assigned.state(tp).seek(FetchPosition(0))
    assert assigned.all_valid()


def test_an_error_that_seeking_does_not_mend_is_raised_once(assigned: AssignedPartitions) -> None:
    error = TopicAuthorizationError("no")
    for tp in (T0, T1):
        assigned.state(tp).fail(error)
    with pytest.raises(TopicAuthorizationError):
        assigned.raise_error()
    assigned.raise_error()


def test_an_error_that_seeking_mends_is_raised_until_then(assigned: AssignedPartitions) -> None:
    assigned.state(T0).fail(OffsetOutOfRangeError())
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError):
            assigned.raise_error()
    assigned.state(T0).seek(FetchPosition(0))
    assigned.raise_error()


def test_all_partitions_without_an_offset_are_named_at_once(assigned: AssignedPartitions) -> None:
    for tp in (T0, T1):
        assigned.state(tp).fail(NoOffsetForPartitionError("", topic_partitions=frozenset((tp,))))
    with pytest.raises(NoOffsetForPartitionError) as raised:
        assigned.raise_error()
    assert raised.value.topic_partitions == {T0, T1}


def test_the_largest_lag_is_that_of_partitions_where_it_is_known(assigned: AssignedPartitions) -> None:
    assert assigned.max_lag(read_committed=False) == 0
    for tp, end in ((T0, 7), (T1, 9)):
        assigned.state(tp).seek(FetchPosition(5))
        assigned.state(tp).update_log_ends(end, end, 0)
    assert assigned.max_lag(read_committed=False) == 4
