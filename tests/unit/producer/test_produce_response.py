"""Answers to produce requests, and what comes of each."""

from __future__ import annotations

import pytest

from harness.producer.model import ProducerModel, ready_producer, sequences
from kclient.errors import (
    ClusterAuthorizationError,
    ErrorCode,
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    NetworkError,
    NotEnoughReplicasError,
    SchemaError,
    TopicAuthorizationError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kclient.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)


def test_a_retriable_error_is_tried_again_after_the_backoff_with_the_same_sequence() -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    first = sequences(m.waiting[0])
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS)
    m.answer()
    m.run()
    assert m.waiting == []
    m.run(advance_ms=15)
    assert sequences(m.waiting[0]) == first
    m.answer()
    assert future.result(0).offset == 0


def test_an_answer_that_was_lost_does_not_make_a_second_copy() -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    m.take_but_lose_answer()
    m.run(advance_ms=20)
    m.answer()
    assert m.broker.log("t").values == [b"a"]
    assert future.result(0).offset == 0


def test_a_duplicate_that_the_broker_no_longer_remembers_is_a_success_without_offset() -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    m.broker.fail("t", ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    m.answer()
    assert future.result(0).offset == -1


def test_a_lost_leader_asks_for_metadata_at_once() -> None:
    m = ready_producer()
    m.send(b"a")
    m.run()
    assert not m.core.metadata.update_requested
    m.broker.fail("t", ErrorCode.NOT_LEADER_OR_FOLLOWER)
    m.answer()
    assert m.core.metadata.update_requested


def test_a_leader_named_in_the_answer_is_tried_without_backoff() -> None:
    m = ready_producer({"t": 1}, retry_backoff_ms=5000, retry_backoff_max_ms=5000)
    m.send(b"a")
    m.run()
    sent = m.waiting[0]
    answer = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="t",
                partition_responses=[
                    PartitionProduceResponse(
                        index=0,
                        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                        base_offset=-1,
                        current_leader=LeaderIdAndEpoch(leader_id=5, leader_epoch=9),
                    )
                ],
            )
        ],
        node_endpoints=[NodeEndpoint(node_id=5, host="other", port=1)],
    )
    m.client.respond(answer, matcher=lambda message: message is sent.message)
    m.run(2)
    assert [sent.request.node_id for sent in m.waiting] == [5]


def test_a_final_error_fails_the_records_and_names_the_partition() -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    m.broker.fail("t", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    m.answer()
    error = future.exception(0)
    assert isinstance(error, TopicAuthorizationError)
    assert error.topics == {"t"}


def test_an_unknown_code_fails_the_records_and_keeps_its_number() -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    m.broker.fail("t", 32000)
    m.answer()
    error = future.exception(0)
    assert isinstance(error, UnknownServerError)
    assert error.code == 32000
    assert "32000" in str(error)


def test_only_the_records_that_are_named_get_their_own_error() -> None:
    m = ready_producer()
    futures = [m.send(value) for value in (b"a", b"b", b"c")]
    m.run()
    m.broker.fail(
        "t",
        ErrorCode.INVALID_RECORD,
        record_errors=[BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")],
    )
    m.answer()
    errors = [future.exception(0) for future in futures]
    assert all(isinstance(error, InvalidRecordError) for error in errors)
    assert ["no key" in str(error) for error in errors] == [False, True, False]
    assert "dropped with its batch" in str(errors[0])


def test_a_partition_the_answer_leaves_out_is_tried_again() -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    m.client.respond(ProduceResponse(responses=[]))
    m.run()
    m.run(advance_ms=20)
    m.answer()
    assert future.result(0).offset == 0


def test_a_partition_answered_twice_or_never_asked_for_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    ok = PartitionProduceResponse(index=0, base_offset=4)
    again = PartitionProduceResponse(index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, base_offset=9)
    stray = PartitionProduceResponse(index=3, base_offset=1)
    m.client.respond(
        ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[ok, again, stray])])
    )
    m.run()
    assert future.result(0).offset == 4
    assert "not what was asked" in caplog.text


def test_retries_are_counted() -> None:
    m = ready_producer(retries=2)
    future = m.send(b"a")
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS, times=10)
    m.run()
    for _ in range(3):
        assert not future.done()
        m.answer()
        m.run(advance_ms=20)
    assert future.exception(0).code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert len(m.broker.errors["t", 0]) == 7


def test_a_broken_connection_is_a_network_error_when_there_are_no_retries() -> None:
    m = ready_producer(enable_idempotence=False, retries=0)
    future = m.send(b"a")
    m.run()
    m.client.respond(None, disconnected=True)
    m.run()
    assert isinstance(future.exception(0), NetworkError)


@pytest.mark.parametrize(("own", "says"), [("no key", "no key"), (None, "all of it")])
def test_a_named_record_is_told_its_own_reason_or_that_of_its_batch_if_it_has_none(
    own: str | None, says: str
) -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    named = BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message=own)
    m.broker.fail("t", ErrorCode.INVALID_RECORD, record_errors=[named], error_message="all of it")
    m.answer()
    error = future.exception(0)
    assert isinstance(error, InvalidRecordError)
    assert str(error) == f"t-0: {says}"


def test_who_may_not_write_with_idempotence_is_told_the_two_ways_out() -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    m.broker.fail("t", ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    m.answer()
    error = future.exception(0)
    assert isinstance(error, ClusterAuthorizationError)
    assert "IdempotentWrite" in str(error)
    assert "enable.idempotence=false" in str(error)


def test_an_answer_that_cannot_be_read_is_as_good_as_none_and_the_batch_is_sent_again() -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    sent = m.waiting[0]
    m.broker.produce(sent.message)
    m.client.respond(None, matcher=lambda message: message is sent.message, error=SchemaError("cut off"))
    m.run(2, advance_ms=20)
    m.settle()
    assert future.result(0).offset == 0
    assert m.broker.log("t").values == [b"a"]


@pytest.mark.parametrize(
    ("error", "perhaps"), [(UnsupportedVersionError("too old"), False), (UnknownServerError("odd"), True)]
)
def test_only_a_request_that_went_out_leaves_a_doubt(error: KafkaError, perhaps: bool) -> None:
    m = ready_producer(enable_idempotence=False)
    future = m.send(b"a")
    m.run()
    sent = m.waiting[0]
    m.client.respond(None, matcher=lambda message: message is sent.message, error=error)
    m.run()
    failure = future.exception(0)
    assert type(failure) is type(error)
    assert ("may have been written" in str(failure)) is perhaps


def test_a_batch_whose_answer_cannot_be_handled_fails_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    m = ready_producer({"t": 2})
    futures = [m.send(b"a", partition=partition) for partition in range(2)]
    m.run()
    fault = RuntimeError("a fault of ours")

    def odd(self: object, batch: object) -> None:
        raise fault

    monkeypatch.setattr(type(m.core.metrics), "retried", odd)
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS, partition=0)
    m.answer()
    assert futures[0].exception(0) is fault
    assert futures[1].result(0).offset == 0
    assert "could not be handled" in caplog.text
    assert m.accumulator.pool.available == m.accumulator.pool.total


class TestExpiring:
    """delivery.timeout.ms, counted from a batch's first record."""

    def producer(self) -> ProducerModel:
        return ready_producer(delivery_timeout_ms=5000, request_timeout_ms=1000, linger_ms=0)

    def test_nothing_expires_sooner_than_the_oldest_batch(self) -> None:
        m = self.producer()
        handler = m.sender._responses
        started_ms = m.time.monotonic_ms()
        assert handler.expire(started_ms) == 5000
        m.send(b"a")
        m.time.advance(300)
        m.send(b"b")
        assert handler.expire(started_ms + 300) == 4700

    @pytest.mark.parametrize(
        ("answer", "says"),
        [
            ("none", "the last attempt was not answered, so they may have been written"),
            ("lost", "an attempt had no definite answer, so they may have been written"),
            ("refused", "they waited to be sent again, and were not written"),
        ],
    )
    def test_the_error_says_what_is_known_of_the_records(self, answer: str, says: str) -> None:
        m = self.producer()
        future = m.send(b"a")
        m.run()
        if answer == "lost":
            m.take_but_lose_answer()
        elif answer == "refused":
            m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS)
            m.answer()
        m.sender._responses.expire(m.time.monotonic_ms() + 4999)
        assert not future.done()
        m.sender._responses.expire(m.time.monotonic_ms() + 5000)
        error = future.exception(0)
        assert isinstance(error, KafkaTimeoutError)
        assert says in str(error)
        assert ("the last error was" in str(error)) is (answer != "none")

    def test_an_answer_that_comes_too_late_is_not_followed_by_another_attempt(self) -> None:
        m = self.producer()
        future = m.send(b"a")
        m.run()
        m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS)
        sent = m.waiting[0]
        m.time.advance(5000)
        m.client.respond(m.broker.produce(sent.message), matcher=lambda message: message is sent.message)
        m.client.poll(0, m.time.monotonic_ms())
        assert isinstance(future.exception(0), NotEnoughReplicasError)
        assert m.waiting == []


def test_a_batch_that_fails_while_it_is_open_takes_no_more_records_before_anyone_is_told() -> None:
    m = ready_producer(linger_ms=1000)
    taken: list[object] = []
    first = m.send(b"a", callback=lambda *_: taken.append(batch.builder.append(None, None, b"late", None)))
    (batch,) = m.accumulator.queued.incomplete.snapshot()
    m.sender._responses.fail(batch, KafkaTimeoutError("enough"))
    assert taken == [None]
    second = m.send(b"b")
    m.run(advance_ms=1000)
    m.settle()
    assert isinstance(first.exception(0), KafkaTimeoutError)
    assert second.result(0).offset == 0
    assert m.broker.log("t").values == [b"b"]


def test_records_that_failed_are_counted_one_by_one() -> None:
    m = ready_producer()
    for value in (b"a", b"b", b"c"):
        m.send(value)
    m.run()
    m.broker.fail("t", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    m.answer()
    assert m.sender._responses.failed_records == 3
