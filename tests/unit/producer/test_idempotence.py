"""Every record once and in order, whatever is lost, refused or given up on the way."""

from __future__ import annotations

import random

import pytest

from harness.producer.model import ProducerModel, sequences
from kclient.errors import ErrorCode, KafkaTimeoutError, OutOfOrderSequenceError
from kclient.producer.internals.idempotence.sequences import sequence_precedes
from kclient.producer.internals.idempotence.state import State
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse


def model(**settings: object) -> ProducerModel:
    made = ProducerModel(**{"linger_ms": 0, "batch_size": 0, **settings})
    made.know({"t": 2})
    made.initialized()
    # Pipelining begins when the broker knows the producer in the partition.
    for partition in (0, 1):
        made.send(b"first", partition=partition)
    made.run()
    made.settle()
    for partition in (0, 1):
        made.broker.log("t", partition).values.clear()
        made.core.idempotence.sequences(made.accumulator.topic("t").queue(partition))._acked_end_offset = 0
    return made


def test_a_partition_has_one_request_until_the_broker_knows_the_producer() -> None:
    m = ProducerModel(linger_ms=0, batch_size=0)
    m.know({"t": 1})
    m.initialized()
    m.send(b"0")
    m.send(b"1")
    m.run(3)
    assert len(m.waiting) == 1
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS)
    m.answer()
    m.settle()
    assert m.broker.log("t").values == [b"0", b"1"]


def in_flight(m: ProducerModel, count: int) -> list[object]:
    """Send `count` records in as many requests."""
    futures = []
    for i in range(count):
        futures.append(m.send(b"%d" % i))
        m.run()
    assert len(m.waiting) == count
    return futures


def test_sequences_count_records_and_go_on_with_each_batch() -> None:
    m = model(batch_size=1000)
    for value in (b"a", b"b", b"c"):
        m.send(value)
    m.run()
    m.send(b"d")
    m.run()
    assert [sequences(sent) for sent in m.waiting] == [[(0, 1, 3)], [(0, 4, 4)]]


def test_sequences_start_again_at_0_after_the_largest_int() -> None:
    m = model()
    entry = m.core.idempotence.sequences(m.accumulator.topic("t").queue(0))
    entry.next_sequence = 2**31 - 1
    entry.expected_sequence = 2**31 - 1
    in_flight(m, 2)
    assert [sequences(sent)[0][1:] for sent in m.waiting] == [(2**31 - 1, 2**31 - 1), (0, 0)]


def test_the_order_of_sequences_is_clear_across_the_wrap() -> None:
    assert sequence_precedes(2**31 - 1, 0)
    assert not sequence_precedes(0, 2**31 - 1)
    assert sequence_precedes(4, 5)
    assert not sequence_precedes(5, 5)


def test_no_more_batches_are_unanswered_than_the_broker_remembers() -> None:
    m = model()
    in_flight(m, 5)
    m.send(b"5")
    m.run(3)
    assert len(m.waiting) == 5


def test_five_in_flight_of_which_the_first_is_refused_arrive_in_order() -> None:
    m = model()
    futures = in_flight(m, 5)
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS)
    for _ in range(5):
        m.answer()
    m.settle()
    assert m.broker.log("t").values == [b"0", b"1", b"2", b"3", b"4"]
    assert [future.result(0).offset for future in futures] == [0, 1, 2, 3, 4]
    assert m.core.idempotence.identity.epoch == 0


def test_a_broken_connection_with_five_in_flight_loses_and_repeats_nothing() -> None:
    m = model()
    futures = in_flight(m, 5)
    m.broker.produce(m.waiting[0].message)
    m.broker.produce(m.waiting[1].message)
    m.client.disconnect(0)
    m.run()
    m.settle()
    assert m.broker.log("t").values == [b"0", b"1", b"2", b"3", b"4"]
    assert [future.result(0).offset for future in futures] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("written", range(6))
def test_a_broker_that_restarted_with_five_in_flight_gets_nothing_twice(written: int) -> None:
    """It remembers the last batch only, so it refuses those before it as if it had never seen them."""
    m = model()
    futures = in_flight(m, 5)
    for sent in list(m.waiting)[:written]:
        m.broker.produce(sent.message)
    m.broker.log("t").restart()
    m.client.disconnect(0)
    m.run()
    m.settle()
    assert m.broker.log("t").values == [b"0", b"1", b"2", b"3", b"4"]
    assert m.core.idempotence.identity.epoch == 0
    # The offsets of those that only a younger one proved to be there were lost with the connection.
    unknown = max(written - 1, 0)
    assert [future.result(0).offset for future in futures] == [-1] * unknown + list(range(unknown, 5))
    m.send(b"5")
    m.run()
    m.settle()
    assert m.broker.log("t").values[-1] == b"5"


def test_what_a_broker_forgot_after_it_acknowledged_a_younger_batch_is_written() -> None:
    m = model()
    futures = in_flight(m, 2)
    lost = m.waiting[0]
    m.broker.produce(lost.message)
    m.client.requests.remove(lost)
    m.answer()
    m.client.requests.appendleft(lost)
    m.broker.log("t").restart()
    m.client.disconnect(0)
    m.run()
    m.settle()
    assert m.broker.log("t").values == [b"0", b"1"]
    assert [future.result(0).offset for future in futures] == [-1, 1]
    assert m.core.idempotence.identity.epoch == 0


def test_repetitions_go_one_at_a_time_until_the_oldest_is_through() -> None:
    m = model()
    in_flight(m, 3)
    m.client.disconnect(0)
    m.run()
    m.run(5, advance_ms=20)
    assert [sequences(sent)[0][1] for sent in m.waiting] == [1]


def test_a_batch_refused_for_good_lets_those_behind_it_go_on_in_a_new_epoch() -> None:
    m = model()
    futures = in_flight(m, 4)
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.answer()
    m.settle()
    assert futures[0].exception(0).code == ErrorCode.INVALID_RECORD
    assert [future.exception(0) for future in futures[1:]] == [None, None, None]
    assert m.broker.log("t").values == [b"1", b"2", b"3"]
    assert m.core.idempotence.identity.epoch == 1


def test_nothing_is_renumbered_while_a_request_is_on_the_wire() -> None:
    m = model()
    in_flight(m, 3)
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.answer()
    m.answer()
    m.run(3, advance_ms=20)
    assert m.core.idempotence.identity.epoch == 0
    assert len(m.waiting) == 1
    m.answer()
    m.run(2, advance_ms=20)
    assert m.core.idempotence.identity.epoch == 1
    assert sequences(m.waiting[0]) == [(1, 0, 0)]


def test_a_batch_that_may_be_written_is_never_renumbered() -> None:
    # The first was written but its answer is lost; the one behind it is refused for good. Starting a new epoch before
    # the first has had its answer would write it again.
    m = model()
    futures = in_flight(m, 3)
    lost, refused, behind = m.waiting
    m.broker.produce(lost.message)
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.client.respond(m.broker.produce(refused.message), matcher=lambda message: message is refused.message)
    m.client.respond(m.broker.produce(behind.message), matcher=lambda message: message is behind.message)
    m.run()
    m.client.disconnect(0)
    m.run(2)
    assert m.core.idempotence.identity.epoch == 0
    m.settle()
    assert m.broker.log("t").values == [b"0", b"2"]
    assert futures[0].result(0).offset == 0
    assert futures[1].exception(0).code == ErrorCode.INVALID_RECORD
    assert futures[2].result(0).offset == 1


def test_a_lost_producer_state_starts_a_new_epoch_and_sends_again() -> None:
    m = model()
    in_flight(m, 1)
    m.answer()
    futures = in_flight(m, 2)
    m.broker.fail("t", ErrorCode.UNKNOWN_PRODUCER_ID, times=2, log_start_offset=1)
    m.answer()
    m.answer()
    m.broker.log("t").forget_producers()
    m.settle()
    assert [future.exception(0) for future in futures] == [None, None]
    assert m.broker.log("t").values == [b"0", b"0", b"1"]
    assert m.core.idempotence.identity.epoch == 1


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_batches_whose_answers_were_lost_behind_a_refused_one_are_written_in_a_new_epoch(lost: int) -> None:
    m = model()
    futures = in_flight(m, 2 + lost)
    m.broker.fail("t", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, times=2)
    m.answer()
    m.answer()
    m.client.disconnect(0)
    m.run()
    m.settle()
    # Whatever the leader misses, it has none of these: it knows the producer, and would know the youngest of them.
    assert [future.exception(0) for future in futures] == [None] * (2 + lost)
    assert m.broker.log("t").values == [b"%d" % i for i in range(2 + lost)]
    assert m.core.idempotence.identity.epoch == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_batch_that_the_leader_took_past_a_refused_one_is_not_written_again(restarted: bool) -> None:
    m = model()
    futures = in_flight(m, 4)
    m.broker.fail("t", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    m.answer()
    m.broker.log("t").forget_producers()
    m.broker.produce(m.waiting[0].message)
    m.broker.produce(m.waiting[1].message)
    if restarted:
        m.broker.log("t").restart()
    m.client.disconnect(0)
    m.run()
    m.settle()
    assert m.broker.log("t").values == [b"1", b"2", b"3"]
    assert isinstance(futures[0].exception(0), OutOfOrderSequenceError)
    told = [future.exception(0) for future in futures[1:]]
    assert [error is None or "may have been written" in str(error) for error in told] == [True] * 3


def test_a_fenced_epoch_is_raised_for_a_batch_that_is_certainly_not_written() -> None:
    m = model()
    (future,) = in_flight(m, 1)
    m.broker.fail("t", ErrorCode.INVALID_PRODUCER_EPOCH)
    m.answer()
    m.settle()
    assert future.result(0).offset == 0
    assert m.core.idempotence.identity.epoch == 1


def test_other_partitions_end_their_old_epoch_before_they_begin_the_new_one() -> None:
    m = model()
    m.send(b"x", partition=1)
    m.run()
    in_flight_other = m.waiting[0]
    m.send(b"bad", partition=0)
    m.run()
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.answer(1)
    m.run(2, advance_ms=20)
    assert m.core.idempotence.identity.epoch == 1
    m.send(b"y", partition=1)
    m.run(2)
    assert m.waiting == [in_flight_other]
    m.answer()
    m.run()
    assert sequences(m.waiting[0]) == [(1, 0, 0)]
    m.settle()
    assert m.broker.log("t", 1).values == [b"x", b"y"]


def test_expiry_of_a_batch_that_was_written_lets_the_next_go_on_in_the_same_epoch() -> None:
    m = model(delivery_timeout_ms=2000, request_timeout_ms=1000)
    (first,) = in_flight(m, 1)
    m.take_but_lose_answer()
    m.client.set_unreachable(m.core.metadata.fetch().nodes[0], 1990)
    m.time.advance(1985)
    second = m.send(b"1")
    m.run(2, advance_ms=20)
    assert isinstance(first.exception(0), KafkaTimeoutError)
    m.settle()
    assert second.exception(0) is None
    assert m.broker.log("t").values == [b"0", b"1"]


def test_expiry_of_a_batch_that_was_never_written_starts_a_new_epoch() -> None:
    m = model(delivery_timeout_ms=2000, request_timeout_ms=1000)
    (first,) = in_flight(m, 1)
    m.client.disconnect(0)
    m.run()
    m.client.set_unreachable(m.core.metadata.fetch().nodes[0], 2100)
    m.run(3, advance_ms=2001)
    assert isinstance(first.exception(0), KafkaTimeoutError)
    m.run(2, advance_ms=200)
    assert m.core.idempotence.identity.epoch == 1
    second = m.send(b"1")
    m.settle()
    assert second.result(0).offset == 0


def test_a_batch_behind_an_expired_one_that_never_arrived_fails_as_perhaps_written() -> None:
    # Both went out on a connection that broke: a former leader may still have them in its receive buffer, so neither
    # may be written in a new epoch.
    m = model(delivery_timeout_ms=2000, request_timeout_ms=1000)
    first = in_flight(m, 1)[0]
    m.time.advance(1500)
    later = m.send(b"1")
    m.run()
    m.client.disconnect(0)
    m.run()
    m.run(3, advance_ms=501)
    assert isinstance(first.exception(0), KafkaTimeoutError)
    assert not later.done()
    never_sent = m.send(b"2")
    m.settle()
    assert isinstance(later.exception(0), OutOfOrderSequenceError)
    assert "may have been written" in str(later.exception(0))
    assert never_sent.exception(0) is None
    assert m.broker.log("t").values == [b"2"]
    assert m.core.idempotence.identity.epoch == 1


def test_sequences_outlive_the_topics_absence_from_the_metadata() -> None:
    m = model()
    in_flight(m, 1)
    m.answer()
    m.know({"other": 1})
    assert m.accumulator.topic("t").partition_count == 0
    m.know({"t": 2})
    future = m.send(b"1")
    m.run()
    assert sequences(m.waiting[0]) == [(0, 2, 2)]
    m.answer()
    assert future.result(0).offset == 1


def test_used_up_epochs_need_a_new_producer_id() -> None:
    m = ProducerModel(linger_ms=0, batch_size=0)
    m.know({"t": 1})
    m.initialized(producer_id=7, epoch=32767)
    in_flight(m, 1)
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.answer()
    m.run(2, advance_ms=20)
    assert m.core.idempotence.state is State.INITIALIZING
    m.client.respond(InitProducerIdResponse(producer_id=8, producer_epoch=0))
    future = m.send(b"1")
    m.settle()
    assert m.core.idempotence.identity.producer_id == 8
    assert future.result(0).offset == 0


def test_what_was_sent_before_waits_where_no_rule_allows_a_new_producer_id() -> None:
    m = ProducerModel(linger_ms=0, batch_size=0)
    m.know({"t": 1})
    m.initialized(producer_id=7, epoch=32767)
    in_flight(m, 1)
    m.answer()
    first, second = in_flight(m, 2)
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.answer()
    m.answer()
    m.run(2, advance_ms=20)
    assert m.core.idempotence.state is State.INITIALIZING
    m.client.respond(InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    m.run(2)
    assert first.exception(0).code == ErrorCode.INVALID_RECORD
    assert not second.done()
    m.run(advance_ms=20)
    m.client.respond(InitProducerIdResponse(producer_id=8, producer_epoch=0))
    m.settle()
    assert second.result(0).offset == 1


def test_a_split_batch_keeps_its_place_before_those_behind_it() -> None:
    m = model(batch_size=400)
    first = [m.send(b"%d" % i * 50) for i in range(6)]
    m.run()
    second = m.send(b"last")
    m.run()
    m.broker.fail("t", ErrorCode.MESSAGE_TOO_LARGE)
    m.answer()
    m.answer()
    m.settle()
    assert m.broker.log("t").values == [b"%d" % i * 50 for i in range(6)] + [b"last"]
    assert [future.result(0).offset for future in [*first, second]] == list(range(7))
    assert m.core.idempotence.identity.epoch == 0


def test_out_of_order_with_retries_used_up_is_told() -> None:
    m = model(retries=1)
    (future,) = in_flight(m, 1)
    m.broker.fail("t", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, times=5)
    m.settle()
    assert isinstance(future.exception(0), OutOfOrderSequenceError)


_FAULTS = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.REQUEST_TIMED_OUT,
]
_AFTER_APPEND = [
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
]


@pytest.mark.parametrize("seed", range(80))
def test_random_faults_never_repeat_reorder_or_lose_an_acknowledged_record(seed: int) -> None:
    rng = random.Random(seed)
    m = model(batch_size=rng.choice([0, 120, 400]), delivery_timeout_ms=6000, request_timeout_ms=3000)
    sent: list[tuple[int, int, object]] = []
    completions: dict[tuple[int, int], int] = {}

    def told(partition: int, i: int) -> object:
        def callback(metadata: object, error: object) -> None:
            completions[partition, i] = completions.get((partition, i), 0) + 1

        return callback

    for i in range(150):
        partition = rng.randrange(2)
        sent.append((partition, i, m.send(b"%06d" % i, partition=partition, callback=told(partition, i))))
        action = rng.random()
        if action < 0.35:
            m.run(advance_ms=rng.randrange(30))
        elif action < 0.6 and m.waiting:
            m.answer()
        elif action < 0.66 and m.waiting:
            m.take_but_lose_answer()
        elif action < 0.70:
            if rng.random() < 0.3:
                m.broker.log("t", rng.randrange(2)).restart()
            m.client.disconnect(0)
            m.run()
        elif action < 0.80:
            m.broker.fail("t", rng.choice(_FAULTS), partition=rng.randrange(2), times=rng.randrange(1, 3))
        elif action < 0.82:
            m.run(advance_ms=rng.randrange(60))
        elif action < 0.88:
            code = rng.choice(_AFTER_APPEND)
            m.broker.fail("t", code, partition=rng.randrange(2), times=rng.randrange(1, 3), appended=True)
        elif action < 0.885:
            m.run(advance_ms=6001)  # what waits to be sent again expires
    m.broker.errors.clear()
    m.settle(2000)
    for partition in (0, 1):
        values = m.broker.log("t", partition).values
        assert values == sorted(set(values)), "a record was repeated or overtaken"
        for where, i, future in sent:
            if where != partition:
                continue
            assert completions[partition, i] == 1
            value = b"%06d" % i
            if future.exception(0) is None:
                assert value in values
                assert future.result(0).offset < 0 or values[future.result(0).offset] == value
            elif value in values:
                assert "may have been written" in str(future.exception(0))
    assert m.accumulator.pool.available == m.accumulator.pool.total
