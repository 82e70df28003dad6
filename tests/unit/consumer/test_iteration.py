"""Records taken by a `for` loop, between calls of the consumer: positions, commits and what must end it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness.consumer.model import ConsumerModel
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.topic_partition_state import FetchState
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import ConcurrentModificationError, RebalanceInProgressError, WakeupError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import heartbeat

T0 = TopicPartition("t", 0)
RECORDS = 100


@pytest.fixture
def reading(make_rig: Callable[..., ConsumerModel]) -> ConsumerModel:
    """A consumer with a hundred records of T0 to iterate over, five in each fetch."""
    rig = make_rig(group_id="g", max_poll_records=RECORDS, auto_commit_interval_ms=60_000)
    rig.fill(T0, RECORDS)
    rig.consumer.assign([T0])
    return rig


def take(rig: ConsumerModel, count: int) -> list[int]:
    iterator = iter(rig.consumer)
    return [next(iterator).offset for _ in range(count)]


def test_any_question_is_answered_for_the_record_of_the_loop(reading: ConsumerModel) -> None:
    for number, record in enumerate(reading.consumer):
        assert record.offset == number
        if number % 3 == 0:
            assert reading.consumer.position(T0) == number + 1
        if number % 7 == 0:
            reading.consumer.commit_sync()
            assert reading.committed == {T0: number + 1}
        if number == RECORDS - 1:
            break
    assert reading.consumer.position(T0) == RECORDS
    assert len(reading.sent(ApiKeys.FETCH)) <= RECORDS // 5 + 2, "what was decoded is not fetched again"


def test_several_iterators_and_polls_share_the_position(reading: ConsumerModel) -> None:
    first, second = iter(reading.consumer), iter(reading.consumer)
    assert [next(first).offset, next(second).offset, next(first).offset] == [0, 1, 2]
    assert next(reading.consumer).offset == 3
    assert [record.offset for record in reading.consumer.poll(100)] == [4]
    assert next(first).offset == 5


def test_a_seek_in_the_loop_is_where_it_goes_on(reading: ConsumerModel) -> None:
    assert take(reading, 12) == list(range(12))
    reading.consumer.seek(T0, 50)
    assert take(reading, 3) == [50, 51, 52]


@pytest.mark.parametrize("end", ["break", "error"])
def test_what_is_committed_at_the_end_is_what_the_loop_is_done_with(reading: ConsumerModel, end: str) -> None:
    class BodyError(Exception):
        pass

    try:
        with reading.consumer:
            for record in reading.consumer:
                if record.offset == 22:
                    if end == "break":
                        break
                    raise BodyError
    except BodyError:
        assert end == "error"
    assert reading.committed == {T0: 23 if end == "break" else 22}


def test_an_automatic_commit_that_is_due_ends_the_walk_and_covers_what_the_loop_is_done_with(
    reading: ConsumerModel,
) -> None:
    assert take(reading, 33) == list(range(33))
    assert not reading.committed
    reading.time.advance(60_000)
    assert take(reading, 1) == [33]
    reading.rounds()
    assert reading.committed == {T0: 33}


def test_each_record_counts_as_a_poll(make_rig: Callable[..., ConsumerModel]) -> None:
    rig = make_rig(
        group_id="g", enable_auto_commit=False, max_poll_records=RECORDS, max_poll_interval_ms=60_000
    )
    rig.fill(T0, RECORDS)
    rig.consumer.subscribe(["t"])
    iterator = iter(rig.consumer)
    for number in range(10):
        assert next(iterator).offset == number
        rig.time.advance(40_000)
        rig.rounds(3)
    assert not rig.sent(ApiKeys.LEAVE_GROUP)
    rig.time.advance(60_000)
    rig.rounds(3)
    assert rig.sent(ApiKeys.LEAVE_GROUP), "a loop that is stuck is noticed"


def test_a_rebalance_takes_place_between_two_records(make_rig: Callable[..., ConsumerModel]) -> None:
    rig = make_rig(group_id="g", max_poll_records=RECORDS, auto_commit_interval_ms=600_000)
    rig.fill(T0, RECORDS)
    revoked: list[dict[TopicPartition, int]] = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, partitions: Any) -> None:
            revoked.append(dict(rig.committed))

    rig.consumer.subscribe(["t"], Listener())
    iterator = iter(rig.consumer)
    assert [next(iterator).offset for _ in range(7)] == list(range(7))
    rig.on(ApiKeys.HEARTBEAT, heartbeat.HeartbeatResponse(error_code=RebalanceInProgressError.code))
    rig.time.advance(10_000)
    rig.rounds(3)
    assert next(iterator).offset == 7
    assert revoked == [{T0: 7, TopicPartition("t", 1): 0}]


def test_wakeup_raises_out_of_the_loop_and_takes_no_record(reading: ConsumerModel) -> None:
    assert take(reading, 2) == [0, 1]
    reading.consumer.wakeup()
    with pytest.raises(WakeupError):
        take(reading, 1)
    assert take(reading, 1) == [2]


def test_another_thread_is_refused_while_a_call_is_under_way_and_otherwise_goes_on(
    reading: ConsumerModel,
) -> None:
    iterator = iter(reading.consumer)
    assert next(iterator).offset == 0
    outcomes: list[Any] = []

    def other() -> None:
        try:
            outcomes.append(next(iterator).offset)
        except ConcurrentModificationError as error:
            outcomes.append(error)

    def run() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(20)

    run()
    with reading.consumer._use:
        run()
    assert outcomes[0] == 1
    assert isinstance(outcomes[1], ConcurrentModificationError)
    assert next(iterator).offset == 2


def test_records_that_were_taken_count_although_the_position_is_being_validated(
    reading: ConsumerModel,
) -> None:
    assert take(reading, 12) == list(range(12))
    state = reading.core.assigned.by_partition[T0]
    with state._lock:
        state._transition_to(FetchState.AWAIT_VALIDATION)
    reading.core.settle()
    assert state.position is not None
    assert state.position.offset == 12
    with state._lock:
        state._transition_to(FetchState.FETCHING)
    assert take(reading, 1) == [12]


def test_metrics_count_every_record_once(reading: ConsumerModel) -> None:
    take(reading, 42)
    reading.consumer.position(T0)
    take(reading, 11)
    found = {name.name: value for name, value in reading.consumer.metrics().items()}
    assert found["records-consumed-total"] == 53
