"""A produce request that waits until its records count as replicated."""

from __future__ import annotations

import weakref
from typing import Any

from harness.mock_time import MockTime
from kclient.broker.purgatory import DelayedOperationPurgatory
from kclient.broker.replica.delayed_produce import DelayedProduce, ProduceOutcome
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaTimeoutError, NotEnoughReplicasError, NotLeaderOrFollowerError


class FakePartition:
    """The state that the operation looks at."""

    def __init__(self, number: int = 0) -> None:
        self.tp = TopicPartition("t", number)
        self.log = self
        self.high_watermark = 0


def test_a_produce_is_answered_once_every_partition_is_replicated() -> None:
    one, two, failed = FakePartition(0), FakePartition(1), FakePartition(2)
    outcomes: dict[Any, ProduceOutcome] = {
        one: ProduceOutcome(last_offset=4),
        two: ProduceOutcome(last_offset=9),
        failed: ProduceOutcome(NotEnoughReplicasError()),
    }
    answers: list[int] = []
    operation = DelayedProduce(1000, outcomes, lambda: answers.append(1))
    one.high_watermark = 5
    assert not operation.try_complete()
    two.high_watermark = 9
    assert not operation.try_complete()
    two.high_watermark = 10
    assert operation.try_complete()
    assert answers == [1]
    assert outcomes[one].error is outcomes[two].error is None


def test_a_produce_that_runs_out_of_time_fails_only_what_is_not_replicated() -> None:
    one, two = FakePartition(0), FakePartition(1)
    outcomes: dict[Any, ProduceOutcome] = {
        one: ProduceOutcome(last_offset=4),
        two: ProduceOutcome(last_offset=4),
    }
    operation = DelayedProduce(1000, outcomes, lambda: None)
    one.high_watermark = 5
    operation.try_complete()
    operation.run()
    assert outcomes[one].error is None
    assert isinstance(outcomes[two].error, KafkaTimeoutError)


def test_a_produce_of_which_nothing_was_appended_does_not_wait() -> None:
    failed = FakePartition()
    error = NotEnoughReplicasError()
    outcomes: dict[Any, ProduceOutcome] = {failed: ProduceOutcome(error)}
    answers: list[int] = []
    assert DelayedProduce(1000, outcomes, lambda: answers.append(1)).try_complete()
    assert answers == [1]
    assert outcomes[failed].error is error


def test_the_end_of_time_leaves_an_earlier_error_as_it_is() -> None:
    failed, slow = FakePartition(0), FakePartition(1)
    error = NotEnoughReplicasError()
    outcomes: dict[Any, ProduceOutcome] = {failed: ProduceOutcome(error), slow: ProduceOutcome(last_offset=0)}
    DelayedProduce(1000, outcomes, lambda: None).run()
    assert outcomes[failed].error is error
    assert "t-1" in str(outcomes[slow].error)


def test_a_partition_that_was_replicated_once_is_not_asked_again() -> None:
    one, two = FakePartition(0), FakePartition(1)
    outcomes: dict[Any, ProduceOutcome] = {
        one: ProduceOutcome(last_offset=4),
        two: ProduceOutcome(last_offset=4),
    }
    operation = DelayedProduce(1000, outcomes, lambda: None)
    one.high_watermark = 5
    operation.try_complete()
    one.high_watermark = 0
    two.high_watermark = 5
    assert operation.try_complete()
    assert outcomes[one].error is None


def test_a_produce_whose_time_is_over_is_answered_by_the_clock_and_by_nothing_else() -> None:
    partition = FakePartition()
    outcomes: dict[Any, ProduceOutcome] = {partition: ProduceOutcome(last_offset=0)}
    answers: list[int] = []
    time = MockTime()
    purgatory: DelayedOperationPurgatory[DelayedProduce] = DelayedOperationPurgatory(
        "test", time, reaper_enabled=False
    )
    purgatory.try_complete_else_watch(
        DelayedProduce(500, outcomes, lambda: answers.append(1)), [partition.tp]
    )
    time.advance(500)
    purgatory.advance_clock(0)
    partition.high_watermark = 1
    purgatory.check_and_complete(partition.tp)
    assert answers == [1]
    assert isinstance(outcomes[partition].error, KafkaTimeoutError)
    purgatory.shutdown()


def test_an_outcome_that_fails_later_has_no_offsets_any_more() -> None:
    outcome = ProduceOutcome(None, 5, 1_700_000_000_000, 2, 9)
    error = NotLeaderOrFollowerError()
    outcome.fail(error)
    assert outcome.error is error
    assert (outcome.base_offset, outcome.log_append_time_ms, outcome.log_start_offset) == (-1, -1, -1)


def test_a_produce_that_is_answered_holds_nothing_of_its_request() -> None:
    class Request:
        def answer(self) -> None:
            """Tell nobody."""

    request = Request()
    seen = weakref.ref(request)
    outcomes: dict[Any, ProduceOutcome] = {FakePartition(): ProduceOutcome(last_offset=4)}
    operation = DelayedProduce(1000, outcomes, request.answer)
    purgatory = DelayedOperationPurgatory[DelayedProduce]("produce", MockTime(), reaper_enabled=False)
    assert not purgatory.try_complete_else_watch(operation, ["t-0", "t-1"])
    del request
    assert operation.force_complete()
    del operation
    assert purgatory.watched == 2
    assert seen() is None, "while there are still entries on the watch lists of partitions"
    purgatory.shutdown()
