"""A batch succeeds only if it is written, and is written once, whatever the answers to its attempts were."""

from __future__ import annotations

import random
from typing import Any

import pytest

from harness.producer.model import ProducerModel, sequences
from kclient.errors import ErrorCode, KafkaTimeoutError, OutOfOrderSequenceError
from kclient.producer.internals.idempotence.fate import NOT_WRITTEN_CODES

SILENCE_MS = 600_000


def model(**settings: object) -> ProducerModel:
    """A producer whose first record is acknowledged, so that it sends several batches at a time."""
    made = ProducerModel(**{"linger_ms": 0, "batch_size": 0, **settings})
    made.know({"t": 1}, ids=True)
    made.initialized()
    made.send(b"first")
    made.settle()
    return made


def two_in_flight(m: ProducerModel) -> tuple[Any, Any]:
    first = m.send(b"r1")
    m.run()
    second = m.send(b"r2")
    m.run()
    assert len(m.waiting) == 2
    return first, second


def log_of(m: ProducerModel) -> list[bytes | None]:
    return [value for value in m.broker.log("t").values if value != b"first"]


def test_the_codes_that_mean_not_written_are_these_and_no_others() -> None:
    assert sorted(NOT_WRITTEN_CODES) == [2, 10, 17, 18, 19, 29, 45, 47, 48, 49, 51, 59, 76, 87, 120]


@pytest.mark.parametrize("code", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])
def test_a_refused_record_fails_when_a_broker_that_forgot_the_producer_took_the_next_one(code: int) -> None:
    m = model()
    m.broker.log("t").forget_producers()
    first, second = two_in_flight(m)
    m.broker.fail("t", code)
    m.settle()
    error = first.exception(0)
    assert isinstance(error, OutOfOrderSequenceError)
    assert "may have been written" not in str(error)
    assert second.exception(0) is None
    assert log_of(m) == [b"r2"]


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_SERVER_ERROR, 999])
def test_an_unclear_answer_is_no_success_where_the_log_has_no_room_for_the_record(code: int) -> None:
    m = model()
    m.broker.log("t").forget_producers()
    first, second = two_in_flight(m)
    m.broker.fail("t", code)
    m.settle()
    assert first.exception(0) is not None
    assert "may have been written" in str(first.exception(0))
    assert second.exception(0) is None
    assert log_of(m) == [b"r2"]


def test_a_partition_goes_on_after_a_record_that_was_overtaken() -> None:
    m = model()
    m.broker.log("t").forget_producers()
    two_in_flight(m)
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS)
    m.settle()
    later = [m.send(b"%d" % i) for i in range(3)]
    m.settle()
    assert [future.exception(0) for future in later] == [None] * 3
    assert log_of(m) == [b"r2", b"0", b"1", b"2"]


@pytest.mark.parametrize("code", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_the_first_record_of_a_recreated_topic_goes_alone(code: int) -> None:
    m = model()
    m.broker.recreate("t")
    m.know({"t": 1}, ids=True, incarnation=2)
    first = m.send(b"r1")
    m.run()
    second = m.send(b"r2")
    m.run(3)
    assert len(m.waiting) == 1
    m.broker.fail("t", code)
    m.settle()
    assert (first.result(0).offset, second.result(0).offset) == (0, 1)
    assert log_of(m) == [b"r1", b"r2"]


def test_batches_on_their_way_to_a_topic_that_is_recreated_go_to_the_new_one_in_order() -> None:
    m = model()
    futures = two_in_flight(m)
    m.broker.fail("t", ErrorCode.UNKNOWN_TOPIC_ID, times=2)
    m.answer()
    m.answer()
    m.broker.recreate("t")
    m.know({"t": 1}, ids=True, incarnation=2)
    m.run(3, advance_ms=20)
    assert len(m.waiting) == 1
    m.settle()
    assert [future.result(0).offset for future in futures] == [0, 1]
    assert log_of(m) == [b"r1", b"r2"]


def test_after_ten_minutes_of_silence_the_first_record_goes_alone() -> None:
    m = model()
    m.time.advance(SILENCE_MS + 1)
    m.know({"t": 1}, ids=True)
    m.send(b"r1")
    m.run()
    m.send(b"r2")
    m.run(3)
    assert len(m.waiting) == 1
    m.settle()
    assert log_of(m) == [b"r1", b"r2"]


def test_a_record_in_the_log_of_a_demoted_leader_is_not_written_again_when_the_one_before_it_expires() -> (
    None
):
    m = model(delivery_timeout_ms=2000, request_timeout_ms=1000)
    first = m.send(b"r1")
    m.run(advance_ms=500)
    second = m.send(b"r2")
    m.run()
    m.broker.fail("t", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2, appended=True)
    m.answer()
    m.answer()
    m.client.set_unreachable(m.core.metadata.fetch().nodes[0], 1600)
    m.run(2, advance_ms=1501)
    assert isinstance(first.exception(0), KafkaTimeoutError)
    assert "may have been written" in str(first.exception(0))
    m.run(advance_ms=200)
    m.settle()
    assert second.result(0).offset == 2
    assert log_of(m) == [b"r1", b"r2"]
    assert m.core.idempotence.identity.epoch == 0


def test_a_clean_restart_of_leaders_that_answer_for_written_batches_fails_no_record() -> None:
    m = model()
    futures = []
    for i in range(5):
        futures.append(m.send(b"%d" % i))
        m.run()
    m.broker.fail("t", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=5, appended=True)
    for _ in range(5):
        m.answer()
    m.broker.log("t").restart()
    m.settle()
    assert [future.exception(0) for future in futures] == [None] * 5
    assert log_of(m) == [b"0", b"1", b"2", b"3", b"4"]
    assert m.core.idempotence.identity.epoch == 0


def test_a_batch_that_may_be_written_is_not_split() -> None:
    m = model(batch_size=400)
    futures = [m.send(b"%d" % i * 50) for i in range(5)]
    m.run()
    m.take_but_lose_answer()
    m.broker.fail("t", ErrorCode.MESSAGE_TOO_LARGE)
    m.settle()
    for future in futures:
        assert future.exception(0).code == ErrorCode.MESSAGE_TOO_LARGE
        assert "may have been written" in str(future.exception(0))
    assert len(log_of(m)) == 5


def test_a_record_that_was_certainly_refused_is_not_said_to_be_perhaps_written() -> None:
    m = model(delivery_timeout_ms=2000, request_timeout_ms=1000)
    future = m.send(b"r1")
    m.run()
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS, times=1000)
    while not future.done():
        m.run(advance_ms=50)
        if m.waiting:
            m.answer()
    assert "were not written" in str(future.exception(0))
    assert log_of(m) == []


def test_a_new_epoch_begins_with_one_batch() -> None:
    m = model()
    m.send(b"bad")
    m.run()
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.answer()
    m.send(b"r1")
    m.run(2, advance_ms=20)
    m.send(b"r2")
    m.run(3, advance_ms=20)
    assert [sequences(sent) for sent in m.waiting] == [[(1, 0, 0)]]
    m.settle()
    assert log_of(m) == [b"r1", b"r2"]


@pytest.mark.parametrize("seed", range(40))
def test_random_faults_and_recreated_topics_never_repeat_reorder_or_invent_a_record(seed: int) -> None:
    rng = random.Random(seed)
    m = model(delivery_timeout_ms=6000, request_timeout_ms=3000, batch_size=rng.choice([0, 120]))
    incarnation = 1
    ended: list[list[bytes | None]] = []
    sent: list[tuple[bytes, Any]] = []
    for i in range(150):
        value = b"%06d" % i
        sent.append((value, m.send(value)))
        action = rng.random()
        if action < 0.4:
            m.run(advance_ms=rng.randrange(30))
        elif action < 0.6 and m.waiting:
            m.answer()
        elif action < 0.66 and m.waiting:
            m.take_but_lose_answer()
        elif action < 0.7:
            m.client.disconnect(0)
            m.run()
        elif action < 0.8:
            code = rng.choice([2, 3, 6, 7, 19, 20, 45, 47, 56, 87, 999])
            appended = code not in NOT_WRITTEN_CODES and rng.random() < 0.5
            m.broker.fail("t", code, times=rng.randrange(1, 3), appended=appended)
        elif action < 0.84:
            ended.append(log_of(m))
            m.broker.recreate("t")
            incarnation += 1
            for _ in range(rng.randrange(4)):
                m.run(advance_ms=10)
                if m.waiting:
                    m.answer()
            m.know({"t": 1}, ids=True, incarnation=incarnation)
        elif action < 0.845:
            m.run(advance_ms=6001)
    m.broker.errors.clear()
    m.settle(2000)
    logs = [*ended, log_of(m)]
    for log in logs:
        assert log == sorted(set(log)), "a record was repeated or overtaken"
    for value, future in sent:
        if future.exception(0) is None:
            assert any(value in log for log in logs)
        elif any(value in log for log in logs):
            assert "may have been written" in str(future.exception(0))
