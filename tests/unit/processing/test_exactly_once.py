"""The order of calls around a transaction, over clients that note what they are asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, ConsumerRecords
from kclient.errors import KafkaTimeoutError, ProducerFencedError, TransactionAbortableError
from kclient.processing.exactly_once import ExactlyOnce
from kclient.processing.options import Options
from kclient.processing.source import Source
from kclient.processing.stopping import Stop
from kclient.producer import ProducerRecord

TP = TopicPartition("in", 0)


@attrs.define
class Clients:
    """A consumer of five records and a producer; `errors` are raised by the producer's calls, each once."""

    generation: int = 3
    committed_offset: int | None = None
    errors: dict[str, list[Exception]] = attrs.field(factory=dict)
    calls: list[str] = attrs.field(factory=list)
    seeks: list[int | OffsetAndMetadata] = attrs.field(factory=list)
    position: int = 0
    stop: threading.Event = attrs.field(factory=threading.Event)
    on_poll: Callable[[], None] = lambda: None

    # The consumer.

    def poll(self, timeout_ms: int) -> ConsumerRecords[Any, Any]:
        self.on_poll()
        if not timeout_ms:  # all is paused
            return ConsumerRecords({})
        records = [
            ConsumerRecord("in", 0, offset, 0, 0, b"k%d" % offset, b"v", (), None, 2, 1)
            for offset in range(self.position, 5)
        ]
        if self.position >= 5:
            self.stop.set()
            return ConsumerRecords({})
        self.position = 5
        return ConsumerRecords({TP: records}, {TP: 5})

    def seek(self, _tp: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        self.seeks.append(offset)
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
        offset = self.committed_offset
        return {tp: None if offset is None else OffsetAndMetadata(offset) for tp in partitions}

    def group_metadata(self) -> ConsumerGroupMetadata:
        return ConsumerGroupMetadata("g", self.generation, "me" if self.generation >= 0 else "")

    # The producer.

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if self.errors.get(name):
            raise self.errors[name].pop(0)

    def begin_transaction(self) -> None:
        self._call("begin")

    def send(self, output: ProducerRecord[Any, Any], *, on_delivery: Any) -> None:
        self._call("send")
        on_delivery(None, None)

    def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        assert {tp: offset.offset for tp, offset in offsets.items()} == {TP: 5}
        self._call(f"offsets of {group.generation_id}")

    def commit_transaction(self) -> None:
        self._call("commit")

    def abort_transaction(self) -> None:
        self._call("abort")


def copy(record: ConsumerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
    return ProducerRecord("out", record.value)


def loop(clients: Clients, handler: Callable[[Any], Any] = copy, concurrency: int = 1) -> ExactlyOnce:
    consumer: Any = clients
    producer: Any = clients
    options = Options(
        handler=handler,
        exactly_once=True,
        concurrency=concurrency,
        ordered_by="key",
        attempts=1,
        retry_backoff_ms=1,
        retry_backoff_max_ms=1,
        dead_letter_topic=None,
        max_in_hand=1,
        commit_interval_ms=1,
        stop=clients.stop,
    )
    return ExactlyOnce(Source(consumer, pass_unreadable=False), producer, options)


ONCE = ["begin", *["send"] * 5, "offsets of 3", "commit"]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_batch_is_committed_when_all_of_it_is_handled(concurrency: int) -> None:
    clients = Clients()
    slow = threading.Event()

    def handle(record: ConsumerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        if record.offset == 0:
            # The others are done long before, where there are threads for them.
            slow.wait(0.3)
        return copy(record)

    done = loop(clients, handle, concurrency).run(Stop(clients.stop))
    assert clients.calls == ONCE
    assert (done.records, done.outputs, done.commits, done.aborted) == (5, 5, 1, 0)


@pytest.mark.parametrize("call", ["commit", "offsets of 3"])
def test_a_call_that_had_no_time_is_made_again(call: str) -> None:
    clients = Clients(errors={call: [KafkaTimeoutError(), KafkaTimeoutError()]})
    done = loop(clients).run(Stop(clients.stop))
    assert clients.calls.count(call) == 3
    assert (clients.calls.count("begin"), clients.calls.count("abort"), done.records) == (1, 0, 5)


@pytest.mark.parametrize("call", ["send", "offsets of 3", "commit"])
def test_a_transaction_that_has_to_be_aborted_is_tried_again_from_where_it_began(call: str) -> None:
    clients = Clients(errors={call: [TransactionAbortableError()]})
    done = loop(clients).run(Stop(clients.stop))
    assert clients.seeks == [0]
    assert clients.calls[clients.calls.index("abort") + 1 :] == ONCE
    assert (done.records, done.commits, done.aborted) == (5, 1, 1)


@pytest.mark.parametrize(("committed", "expected"), [(None, 0), (2, OffsetAndMetadata(2))])
def test_after_the_group_has_moved_on_it_is_tried_again_from_where_the_group_stands(
    committed: int | None, expected: int | OffsetAndMetadata
) -> None:
    clients = Clients(committed_offset=committed, errors={"offsets of 3": [TransactionAbortableError()]})

    def handle(record: ConsumerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        clients.generation = 4
        return copy(record)

    loop(clients, handle).run(Stop(clients.stop))
    assert clients.seeks == [expected]
    assert clients.calls.count("abort") == 1
    assert clients.calls[-2:] == ["offsets of 4", "commit"]


def test_a_batch_is_dropped_when_the_group_moves_on_while_it_is_worked_on() -> None:
    clients = Clients()
    moved_on = threading.Event()

    def poll() -> None:
        if clients.calls and clients.generation == 3:
            clients.generation = 4
            moved_on.set()

    clients.on_poll = poll

    def handle(record: ConsumerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        if clients.generation == 3:
            assert moved_on.wait(20)
        return copy(record)

    done = loop(clients, handle).run(Stop(clients.stop))
    assert "offsets of 3" not in clients.calls
    assert (done.records, done.aborted) == (5, 1)


def test_records_of_a_member_that_was_removed_are_not_worked_on() -> None:
    clients = Clients(generation=-1)

    def poll() -> None:
        if clients.seeks:
            clients.generation = 3

    clients.on_poll = poll
    loop(clients).run(Stop(clients.stop))
    assert clients.seeks == [0]
    assert clients.calls == ONCE


def test_an_error_that_ends_the_producer_ends_the_run() -> None:
    clients = Clients(errors={"commit": [ProducerFencedError()], "abort": [ProducerFencedError()]})
    with pytest.raises(ProducerFencedError):
        loop(clients).run(Stop(clients.stop))
    assert clients.calls.count("begin") == 1


def test_an_outcome_that_does_not_come_is_not_waited_for_once_the_run_is_to_end() -> None:
    clients = Clients(errors={"commit": [KafkaTimeoutError()] * 3})

    def handle(record: ConsumerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        clients.stop.set()
        return copy(record)

    with pytest.raises(KafkaTimeoutError):
        loop(clients, handle).run(Stop(clients.stop))
    assert clients.calls.count("commit") == 1
