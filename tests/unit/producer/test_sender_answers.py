"""Answers to produce requests, and what comes of each."""

from __future__ import annotations

import pytest

from harness.producer.model import ready_producer, sequences
from kclient.errors import (
    ErrorCode,
    InvalidRecordError,
    NetworkError,
    TopicAuthorizationError,
    UnknownServerError,
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
