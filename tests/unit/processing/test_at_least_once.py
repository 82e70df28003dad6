"""Commits of a member whose group moves on, over a consumer that notes what it is asked."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, ConsumerRecords
from kclient.errors import (
    CommitFailedError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    TopicAuthorizationError,
)
from kclient.processing.at_least_once import AtLeastOnce
from kclient.processing.options import Options
from kclient.processing.outcome import Processed
from kclient.processing.source import Source
from kclient.processing.stopping import Stop

TP = TopicPartition("in", 0)


@attrs.define
class Consumer:
    """Ten records, in polls of five; `resets_at` is the poll before which the group moves on, back to the start."""

    resets_at: int = -1
    may_reset: threading.Event = attrs.field(factory=threading.Event)
    commit_errors: list[Exception] = attrs.field(factory=list)
    last_error: Exception | None = None
    """The error of every commit that says that all is done."""
    generation: int = 1
    polls: int = 0
    position: int = 0
    offset: int | None = None
    refused: list[int] = attrs.field(factory=list)

    def poll(self, timeout_ms: int) -> ConsumerRecords[Any, Any]:
        if not timeout_ms:  # all is paused
            return ConsumerRecords({})
        self.polls += 1
        if self.polls == self.resets_at:
            assert self.may_reset.wait(20)
            self.generation += 1
            self.position = self.offset or 0
        first, self.position = self.position, min(10, self.position + 5)
        records = [
            ConsumerRecord("in", 0, offset, 0, 0, b"k%d" % offset, b"v", (), None, 2, 1)
            for offset in range(first, self.position)
        ]
        if not records:
            return ConsumerRecords({})
        return ConsumerRecords({TP: records}, {TP: self.position})

    def seek(self, _tp: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        self.position = offset.offset if isinstance(offset, OffsetAndMetadata) else offset

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset({TP})

    def subscription(self) -> frozenset[str]:
        return frozenset({"in"})

    def paused(self) -> frozenset[TopicPartition]:
        return frozenset({TP})

    def pause(self, _partitions: Any) -> None:
        """Do nothing."""

    def committed(self, partitions: Any) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return {tp: None if self.offset is None else OffsetAndMetadata(self.offset) for tp in partitions}

    def commit_sync(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int) -> None:
        if self.commit_errors:
            self.refused.append(offsets[TP].offset)
            raise self.commit_errors.pop()
        if self.last_error is not None and offsets[TP].offset == 10:
            self.refused.append(10)
            raise self.last_error
        assert timeout_ms > 0
        self.offset = offsets[TP].offset

    def group_metadata(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata("g", self.generation, "me")


def run(consumer: Consumer, handler: Any, stop: threading.Event, concurrency: int) -> Processed:
    taken: Any = consumer
    options = Options(
        handler=handler,
        exactly_once=False,
        concurrency=concurrency,
        ordered_by="key",
        attempts=1,
        retry_backoff_ms=1,
        retry_backoff_max_ms=1,
        dead_letter_topic=None,
        max_in_hand=1000,
        commit_interval_ms=0,
        stop=stop,
    )
    no_producer: Any = None
    return AtLeastOnce(Source(taken, pass_unreadable=False), no_producer, options, 10_000).run(Stop(stop))


def test_what_is_read_again_after_the_group_has_moved_on_is_committed_to_its_end() -> None:
    consumer = Consumer(resets_at=2)
    calls: Counter[int] = Counter()
    others, stop, lock = threading.Event(), threading.Event(), threading.Lock()

    def handle(record: ConsumerRecord[Any, Any]) -> None:
        if record.offset == 0:
            assert others.wait(20)
        with lock:
            calls[record.offset] += 1
            if all(calls[offset] for offset in range(1, 5)):
                consumer.may_reset.set()
            if all(calls[offset] >= (2 if offset < 5 else 1) for offset in range(1, 10)):
                others.set()
                if calls[0] >= 2:
                    stop.set()

    run(consumer, handle, stop, 3)
    assert consumer.offset == 10


def test_a_commit_that_is_refused_because_the_group_moves_on_does_not_end_the_run() -> None:
    consumer = Consumer(commit_errors=[CommitFailedError()])
    stop = threading.Event()

    def handle(record: ConsumerRecord[Any, Any]) -> None:
        if record.offset == 9:
            stop.set()

    run(consumer, handle, stop, 1)
    assert (consumer.refused, consumer.offset) == ([5], 10)


def run_to_the_end(consumer: Consumer, concurrency: int = 1) -> Processed:
    stop = threading.Event()

    def handle(record: ConsumerRecord[Any, Any]) -> None:
        if record.offset == 9:
            stop.set()

    return run(consumer, handle, stop, concurrency)


@pytest.mark.parametrize("error", [CommitFailedError, RebalanceInProgressError, KafkaTimeoutError])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_last_commit_that_is_refused_because_the_group_moves_on_ends_the_run_without_an_error(
    error: type[KafkaError], concurrency: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Those records are done again by whoever gets the partitions; nobody could commit them any more."""
    consumer = Consumer(last_error=error("the group moves on"))
    outcome = run_to_the_end(consumer, concurrency)
    assert outcome.records == 10
    assert consumer.refused[-1] == 10
    assert consumer.offset != 10
    assert "may be done again: the group moves on" in caplog.text


def test_a_last_commit_that_is_refused_for_another_reason_ends_the_run_with_it() -> None:
    consumer = Consumer(last_error=TopicAuthorizationError("not yours"))
    with pytest.raises(TopicAuthorizationError, match="not yours"):
        run_to_the_end(consumer)
