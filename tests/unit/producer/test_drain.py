"""The choice of what can be sent at a moment, and taking it out of the queues."""

from __future__ import annotations

import pytest

from harness.producer.model import ProducerModel
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.drain import NEVER_MS, Drainer
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.producer_batch import BatchState, ProducerBatch
from kclient.record import iter_batches

LINGER_MS = 1000


def model(topics: dict[str, int] | None = None, *, nodes: int = 1, **settings: object) -> ProducerModel:
    made = ProducerModel(**{"linger_ms": LINGER_MS, "enable_idempotence": False, **settings})
    made.know(topics or {"t": 1}, nodes=nodes)
    return made


def drainer_of(m: ProducerModel, *, max_request_size: int = 1_000_000, mute: bool = False) -> Drainer:
    def unsendable(batch: ProducerBatch, error: BaseException) -> None:
        raise AssertionError(f"{batch.tp} cannot be sent") from error

    config = ProducerConfig.parse(
        None,
        {
            "bootstrap_servers": "localhost:9092",
            "linger_ms": LINGER_MS,
            "max_request_size": max_request_size,
            "max_in_flight_requests_per_connection": 1 if mute else 5,
        },
    )
    return Drainer(
        config=config,
        queued=m.accumulator.queued,
        metadata=m.core.metadata,
        idempotence=m.core.idempotence,
        transactions=None,
        on_unsendable=unsendable,
    )


def now_ms(m: ProducerModel) -> int:
    return m.time.monotonic_ms()


def queue_of(m: ProducerModel, partition: int = 0) -> PartitionQueue:
    return m.accumulator.topic("t").queue(partition)


def drained(m: ProducerModel, drainer: Drainer) -> list[ProducerBatch]:
    return drainer.drain(m.accumulator.queued.active_queues(), now_ms(m))


def led(m: ProducerModel, drainer: Drainer) -> dict[int, list[int]]:
    """The brokers that are ready, and the partitions that each may be sent."""
    check = drainer.ready(now_ms(m))
    return {node.id: [queue.tp.partition for queue in queues] for node, queues in check.nodes.items()}


def test_empty_queues_want_nothing_ever() -> None:
    check = drainer_of(model()).ready(0)
    assert (check.nodes, check.next_check_ms, check.unknown_leader_topics) == ({}, NEVER_MS, frozenset())


def test_the_next_look_is_when_the_first_batch_has_lingered_long_enough() -> None:
    m = model({"t": 2})
    drainer = drainer_of(m)
    m.send(b"a", partition=0)
    m.time.advance(300)
    m.send(b"b", partition=1)
    m.time.advance(100)
    check = drainer.ready(now_ms(m))
    assert (check.nodes, check.next_check_ms) == ({}, LINGER_MS - 400)
    m.time.advance(LINGER_MS - 400)
    assert led(m, drainer) == {0: [0, 1]}


def test_a_full_batch_is_ready_at_once() -> None:
    m = model(batch_size=0)
    m.send(b"a")
    assert led(m, drainer_of(m)) == {0: [0]}


def test_a_broker_that_is_ready_may_be_sent_also_what_lingers_and_no_other_broker_is() -> None:
    m = model({"t": 4}, nodes=2)
    drainer = drainer_of(m)
    m.send(b"older", partition=2)
    m.time.advance(LINGER_MS - 1)
    m.send(b"younger", partition=0)
    m.send(b"elsewhere", partition=1)
    m.time.advance(1)
    assert led(m, drainer) == {0: [2, 0]}


def test_topics_without_a_leader_are_named_and_hold_up_no_others() -> None:
    m = model({"u": 1})
    m.send(b"a", topic="u")
    m.know({"t": 1})
    m.send(b"b", topic="t")
    m.time.advance(LINGER_MS)
    drainer = drainer_of(m)
    check = drainer.ready(now_ms(m))
    assert check.unknown_leader_topics == {"u"}
    assert [queue.tp.topic for queues in check.nodes.values() for queue in queues] == ["t"]


def test_a_muted_partition_is_not_ready_and_nothing_is_taken_of_it() -> None:
    m = model(batch_size=0)
    drainer = drainer_of(m, mute=True)
    m.send(b"a")
    m.send(b"b")
    assert len(drained(m, drainer)) == 1
    assert queue_of(m).muted
    check = drainer.ready(now_ms(m))
    assert (check.nodes, check.next_check_ms) == ({}, NEVER_MS)
    assert drained(m, drainer) == []


def test_a_batch_that_is_taken_is_closed_on_its_way_and_knows_its_leader() -> None:
    m = model()
    m.know({"t": 1}, leader_epoch=4)
    m.send(b"a")
    (batch,) = drained(m, drainer_of(m))
    assert (batch.state, batch.sealed, batch.leader_epoch) == (BatchState.IN_FLIGHT, True, 4)
    assert not queue_of(m).batches
    assert not queue_of(m).muted
    m.send(b"b")
    (sent,) = iter_batches(batch.wire_bytes())
    assert [record.value for record in sent.records()] == [b"a"]


def test_one_batch_of_each_partition_is_taken_in_the_order_of_the_queues() -> None:
    m = model({"t": 3}, batch_size=0)
    for partition in (2, 0, 0, 1):
        m.send(b"x", partition=partition)
    drainer = drainer_of(m)
    assert [batch.tp.partition for batch in drained(m, drainer)] == [2, 0, 1]
    assert [batch.tp.partition for batch in drained(m, drainer)] == [0]


def test_a_request_is_filled_to_the_limit_to_the_byte() -> None:
    m = model({"t": 3}, batch_size=0)
    for partition in range(3):
        m.send(b"x" * 100, partition=partition)
    size = m.accumulator.queued.incomplete.snapshot()[0].builder.size
    assert len(drained(m, drainer_of(m, max_request_size=2 * size - 1))) == 1
    assert len(drained(m, drainer_of(m, max_request_size=2 * size))) == 2


def test_a_batch_above_the_limit_goes_alone() -> None:
    m = model({"t": 2}, batch_size=0)
    m.send(b"x" * 500, partition=0)
    m.send(b"y", partition=1)
    drainer = drainer_of(m, max_request_size=100)
    assert [[batch.tp.partition for batch in drained(m, drainer)] for _ in range(2)] == [[0], [1]]


@pytest.mark.parametrize(("seen", "taken"), [(0, 1), (150, 3)])
def test_what_is_not_compressed_yet_counts_with_what_its_topic_is_known_to_shrink_to(
    seen: int, taken: int
) -> None:
    m = model({"t": 3}, batch_size=0, compression_type="gzip")
    for _ in range(seen):
        m.accumulator.queued.compressor.compress("t", memoryview(b"x" * 1000))
    for partition in range(3):
        m.send(b"x" * 1000, partition=partition)
    assert len(drained(m, drainer_of(m, max_request_size=900))) == taken


class TestSendingAgain:
    """Batches that came back, and wait out a backoff."""

    def returned(self, m: ProducerModel, drainer: Drainer, backoff_ms: int) -> ProducerBatch:
        m.send(b"a")
        (batch,) = drained(m, drainer)
        m.accumulator.queued.reenqueue(batch, now_ms(m), now_ms(m) + backoff_ms)
        return batch

    def test_it_is_ready_after_its_backoff_and_lingers_no_more(self) -> None:
        m = model()
        drainer = drainer_of(m)
        batch = self.returned(m, drainer, 100)
        assert drainer.ready(now_ms(m)).next_check_ms == 100
        m.time.advance(100)
        assert led(m, drainer) == {0: [0]}
        assert drained(m, drainer) == [batch]

    def test_it_keeps_no_other_partition_of_its_broker_waiting(self) -> None:
        m = model({"t": 2})
        drainer = drainer_of(m)
        self.returned(m, drainer, 100)
        m.send(b"b", partition=1)
        assert [batch.tp.partition for batch in drained(m, drainer)] == [1]

    def test_nothing_that_is_younger_overtakes_it(self) -> None:
        m = model()
        drainer = drainer_of(m)
        self.returned(m, drainer, 100)
        m.send(b"b")
        check = drainer.ready(now_ms(m))
        assert (check.nodes, check.next_check_ms) == ({}, 100)
        assert drained(m, drainer) == []

    def test_a_new_leader_is_sent_it_without_the_backoff_that_was_for_the_old_one(self) -> None:
        m = model()
        drainer = drainer_of(m)
        batch = self.returned(m, drainer, 100)
        m.know({"t": 1}, leader_epoch=2)
        assert led(m, drainer) == {0: [0]}
        assert drained(m, drainer) == [batch]
        assert batch.leader_epoch == 2


class TestIdempotence:
    """Partitions whose batches carry sequences."""

    def test_sequences_follow_the_order_in_which_batches_are_taken(self) -> None:
        m = ProducerModel(linger_ms=LINGER_MS, batch_size=0)
        m.know({"t": 1})
        m.initialized(producer_id=7, epoch=3)
        m.send(b"first")
        m.accumulator.queued.flushes = 1
        m.settle()
        m.send(b"a")
        m.send(b"b")
        drainer = drainer_of(m)
        batches = [batch for _ in range(2) for batch in drained(m, drainer)]
        sent = [next(iter_batches(batch.wire_bytes())) for batch in batches]
        assert [(b.producer_id, b.producer_epoch, b.base_sequence) for b in sent] == [(7, 3, 1), (7, 3, 2)]

    def test_what_only_an_answer_can_let_go_is_not_looked_at_by_the_clock(self) -> None:
        m = ProducerModel(linger_ms=LINGER_MS, batch_size=0)
        m.know({"t": 1})
        m.initialized()
        m.send(b"a")
        m.send(b"b")
        drainer = drainer_of(m)
        assert len(drained(m, drainer)) == 1
        # The broker does not know the producer yet: one request at a time.
        check = drainer.ready(now_ms(m))
        assert (check.nodes, check.next_check_ms) == ({}, NEVER_MS)
        assert drained(m, drainer) == []
