"""The sender's rounds: what is sent when, and how it ends."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from harness.producer.model import ProducerModel, ready_producer
from kclient.common.uuid import Uuid
from kclient.compress.codec import CompressionType
from kclient.errors import (
    ClientClosedError,
    ErrorCode,
    KafkaTimeoutError,
)
from kclient.producer.internals.produce_request import ProduceRequestPlan
from kclient.producer.internals.producer_batch import BatchState
from kclient.producer.internals.sender import Sender
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from kclient.protocol.messages.metadata import MetadataRequest


def test_a_record_is_sent_and_acknowledged_with_its_offset() -> None:
    m = ready_producer()
    future = m.send(b"a")
    m.run()
    assert not future.done()
    m.answer()
    assert (future.result(0).offset, future.result(0).partition) == (0, 0)
    assert m.accumulator.pool.available == m.accumulator.pool.total


def test_nothing_is_sent_before_there_is_a_producer_id() -> None:
    m = ProducerModel(linger_ms=0)
    m.know({"t": 1})
    m.send(b"a")
    m.run(3)
    assert m.waiting == []
    m.initialized()
    m.run()
    assert len(m.waiting) == 1


def test_a_passing_error_of_init_producer_id_is_tried_again_after_a_backoff() -> None:
    m = ProducerModel(linger_ms=0)
    m.know({"t": 1})
    m.run()
    m.client.respond(InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    m.run()
    assert len(m.client.sent) == 1
    m.run(advance_ms=20)
    assert len(m.client.sent) == 2


@pytest.mark.parametrize("code", [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION])
def test_being_refused_a_producer_id_fails_all_records_that_wait_for_it(code: ErrorCode) -> None:
    m = ProducerModel(linger_ms=0)
    m.know({"t": 1})
    future = m.send(b"a")
    m.run()
    m.client.respond(InitProducerIdResponse(error_code=code))
    m.run(2)
    assert future.exception(0).code == code
    assert m.accumulator.pool.available == m.accumulator.pool.total


def test_a_rule_that_comes_later_lets_a_producer_go_on_that_was_refused_its_id() -> None:
    m = ProducerModel(linger_ms=0)
    m.know({"t": 1})
    refused = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    m.send(b"a")
    m.run()
    m.client.respond(refused)
    m.run(5, advance_ms=100)
    assert len(m.client.sent) == 1  # nobody waits for an id, so nobody asks for one
    second = m.send(b"b")
    m.run()
    m.client.respond(refused)
    m.run(2)
    assert second.exception(0).code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    third = m.send(b"c")
    m.run(advance_ms=20)
    m.initialized()
    m.run()
    m.answer()
    m.run()
    assert third.exception(0) is None
    assert m.broker.log("t").values == [b"c"]


def test_a_batch_lingers_for_more_records() -> None:
    m = ready_producer(linger_ms=50)
    m.send(b"a")
    m.run(advance_ms=40)
    assert m.waiting == []
    m.run(advance_ms=15)
    assert len(m.waiting) == 1


def test_a_second_batch_makes_the_first_go_out_before_its_time() -> None:
    m = ready_producer(linger_ms=1000, batch_size=100)
    m.send(b"x" * 60)
    m.send(b"x" * 60)
    m.run()
    assert len(m.waiting) == 1


def test_one_request_carries_at_most_one_batch_of_a_partition_and_max_request_size() -> None:
    m = ready_producer({"t": 3}, batch_size=300, max_request_size=700)
    for partition in (0, 1, 2):
        m.send(b"x" * 250, partition=partition)
        m.send(b"x" * 250, partition=partition)
    m.run()
    (request,) = m.waiting
    assert [data.index for data in request.message.topic_data[0].partition_data] == [0, 1]
    m.run()
    # The partition that had to wait comes first now.
    assert m.waiting[1].message.topic_data[0].partition_data[0].index == 2


def test_without_idempotence_one_in_flight_keeps_the_order_by_muting_the_partition() -> None:
    m = ready_producer(enable_idempotence=False, max_in_flight_requests_per_connection=1, batch_size=100)
    m.send(b"x" * 60)
    m.send(b"y" * 60)
    m.run(3)
    assert len(m.waiting) == 1
    m.answer()
    m.run()
    assert len(m.waiting) == 1
    m.settle()
    assert m.broker.log("t").values == [b"x" * 60, b"y" * 60]


def test_acks_0_counts_as_done_when_written_and_knows_no_offset() -> None:
    m = ready_producer(acks="0")
    future = m.send(b"a")
    m.run()
    assert future.result(0).offset == -1


def test_topics_are_named_by_id_when_all_have_one() -> None:
    m = ready_producer(ids=True)
    future = m.send(b"a")
    m.run()
    assert m.waiting[0].version >= 13
    assert m.waiting[0].message.topic_data[0].name == ""
    m.answer()
    assert future.result(0).topic == "t"


def test_topics_without_id_are_named_by_name() -> None:
    m = ready_producer()
    m.send(b"a")
    m.run()
    assert m.waiting[0].version == 12
    assert m.waiting[0].message.topic_data[0].name == "t"


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_batches_in_flight_hold_no_more_memory_than_they_are_charged_for(codec: str) -> None:
    m = ready_producer(compression_type=codec, batch_size=100_000)
    pool = m.accumulator.pool
    values = [random.Random(seed).randbytes(99_000) for seed in range(6)]
    m.send(values.pop())
    m.run()
    m.settle()
    tracemalloc.start()
    try:
        for value in values:
            m.send(value)
            m.run()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert pool.total - pool.available >= 5 * 100_000
    # The mocked client holds on to the requests, as a connection does that does not get rid of them.
    assert len(m.waiting) == 5
    assert held < pool.total - pool.available + 50_000


def test_records_expire_by_delivery_timeout_and_say_why() -> None:
    m = ready_producer(delivery_timeout_ms=5000, request_timeout_ms=1000)
    future = m.send(b"a")
    m.run()
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS, times=1000)
    while not future.done():
        if m.waiting:
            m.answer()
        m.run(advance_ms=500)
    error = future.exception(0)
    assert isinstance(error, KafkaTimeoutError)
    assert "t-0" in str(error)
    assert "delivery.timeout.ms" in str(error)
    assert "replicas" in str(error.__cause__)
    assert m.accumulator.pool.available == m.accumulator.pool.total


def test_a_record_expires_by_its_own_age_whatever_became_of_those_before_it() -> None:
    m = ready_producer(delivery_timeout_ms=5000, request_timeout_ms=1000)
    first = m.send(b"a")
    m.run()
    m.answer()
    assert first.exception(0) is None
    m.run(advance_ms=3000)
    second = m.send(b"b")
    m.run()
    m.run(advance_ms=2100)
    assert not second.done(), "it was the time of the first that ended"
    m.run(advance_ms=2890)
    assert not second.done()
    m.run(advance_ms=11)
    assert isinstance(second.exception(0), KafkaTimeoutError)


def test_records_for_an_unknown_leader_expire_and_ask_for_metadata_meanwhile() -> None:
    m = ProducerModel(
        linger_ms=0, delivery_timeout_ms=2000, request_timeout_ms=1000, enable_idempotence=False
    )
    m.know({"t": 1}, nodes=1)
    m.know({"u": 1}, nodes=1)
    future = m.send(b"a", topic="t")
    m.run()
    assert m.core.metadata.update_requested
    m.run(advance_ms=2001)
    assert "never sent" in str(future.exception(0))


def test_a_batch_that_expires_in_flight_keeps_its_memory_until_the_request_ends() -> None:
    m = ready_producer(
        delivery_timeout_ms=2000, request_timeout_ms=1500, max_in_flight_requests_per_connection=5
    )
    future = m.send(b"a")
    m.run()
    sent = m.waiting[0]
    sent.request.timeout_ms = 60_000
    carried = bytes(sent.message.topic_data[0].partition_data[0].records)
    m.run(advance_ms=2001)
    assert isinstance(future.exception(0), KafkaTimeoutError)
    assert m.accumulator.pool.available < m.accumulator.pool.total
    assert bytes(sent.message.topic_data[0].partition_data[0].records) == carried
    m.answer()
    assert m.accumulator.pool.available == m.accumulator.pool.total
    assert m.broker.log("t").values == [b"a"]


def test_a_callback_that_raises_does_not_keep_others_from_being_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    m = ready_producer()
    told: list[str] = []

    def bad(metadata: object, error: object) -> None:
        raise RuntimeError("mine")

    m.send(b"a", callback=bad)
    m.send(b"b", callback=lambda metadata, error: told.append("b"))
    m.run()
    m.answer()
    assert told == ["b"]
    assert "mine" in caplog.text


def test_a_full_buffer_sends_what_lingers() -> None:
    m = ready_producer(
        linger_ms=60_000, buffer_memory=1000, batch_size=900, max_request_size=900, max_block_ms=0
    )
    m.send(b"x" * 500)
    m.run()
    assert m.waiting == []
    m.accumulator.pool._waiters.append(object())  # type: ignore[arg-type]
    m.run()
    m.accumulator.pool._waiters.clear()
    assert len(m.waiting) == 1


def test_aborting_fails_everything_once_and_closes_the_client() -> None:
    m = ready_producer()
    told: list[BaseException | None] = []
    m.send(b"a", callback=lambda metadata, error: told.append(error))
    m.run()
    m.send(b"b", callback=lambda metadata, error: told.append(error))
    m.sender.force_close()
    m.sender.run()
    assert [type(error) for error in told] == [ClientClosedError, ClientClosedError]
    assert m.client.closed
    with pytest.raises(ClientClosedError):
        m.send(b"c")


def test_an_unexpected_fault_in_a_round_does_not_end_the_thread(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    m = ready_producer()
    future = m.send(b"a")
    whole = m.sender.run_once
    faults = iter([RuntimeError("odd")])

    def run_once() -> None:
        for fault in faults:
            raise fault
        whole()
        if m.waiting:
            m.client.respond(m.broker.produce(m.waiting[0].message))

    monkeypatch.setattr(Sender, "run_once", staticmethod(run_once))
    m.sender.initiate_close()
    m.sender.run()
    assert future.result(0).offset == 0
    assert "odd" in caplog.text


def test_a_batch_that_cannot_be_compressed_fails_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    m = ready_producer({"t": 2}, compression_type="gzip")
    whole = type(m.accumulator.queued.compressor).compress
    broken = iter([RuntimeError("no codec")])

    def compress(self: object, topic: str, body: memoryview) -> bytes | None:
        for fault in broken:
            raise fault
        return whole(self, topic, body)  # type: ignore[arg-type]

    monkeypatch.setattr(type(m.accumulator.queued.compressor), "compress", compress)
    first, second = m.send(b"a", partition=0), m.send(b"b", partition=1)
    m.run()
    m.settle()
    assert str(first.exception(0)) == "no codec"
    assert second.result(0).offset == 0


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_arrives(codec: str) -> None:
    m = ready_producer(compression_type=codec)
    futures = [m.send(b"value %d" % i) for i in range(100)]
    m.run()
    m.settle()
    assert m.broker.log("t").values == [b"value %d" % i for i in range(100)]
    assert futures[99].result(0).offset == 99


def test_a_topic_that_was_used_lately_stays_in_the_metadata_request() -> None:
    m = ready_producer(metadata_max_idle_ms=5000)
    m.send(b"a")
    m.time.advance(4000)
    m.run()
    plan = m.core.metadata.plan_request()
    request = plan.build(12)
    assert isinstance(request, MetadataRequest)
    assert [topic.name for topic in request.topics or []] == ["t"]
    assert m.core.metadata.retain_topic("t", False, m.time.monotonic_ms() + 4999)
    assert not m.core.metadata.retain_topic("t", False, m.time.monotonic_ms() + 5000)


def test_batches_end_in_the_state_that_tells_what_became_of_them() -> None:
    m = ready_producer()
    m.send(b"a")
    (batch,) = m.accumulator.queued.incomplete.snapshot()
    assert batch.state is BatchState.QUEUED
    m.run()
    assert batch.state is BatchState.IN_FLIGHT
    m.answer()
    assert batch.state is BatchState.SUCCEEDED


def test_the_topics_of_an_answer_are_found_without_comparing_each_with_all() -> None:
    compared = 0

    class Id(Uuid):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return isinstance(other, Uuid) and self.bytes == other.bytes

        def __hash__(self) -> int:
            return hash(self.bytes)

    count = 200
    ids = {f"t{i}": Id(i.to_bytes(16, "big")) for i in range(count)}
    m = ready_producer(dict.fromkeys(ids, 1))
    for topic in ids:
        m.send(b"v", topic)
    batches = [batch for queue in m.accumulator.queued.active_queues() for batch in queue.batches]
    plan = ProduceRequestPlan(batches, ids.get, acks=-1, timeout_ms=1000, codec=CompressionType.NONE)
    compared = 0
    assert [plan.find("", Id(ids[batch.tp.topic].bytes), 0) for batch in batches] == batches
    assert compared <= 2 * count
    assert plan.find("", Id(b"\xff" * 16), 0) is None
    assert plan.find("t7", Uuid.ZERO, 0) is batches[7]


@pytest.mark.parametrize("answer", ["none", "lost"])
def test_a_record_says_whether_it_may_be_written_when_the_producer_ends(answer: str) -> None:
    m = ready_producer({"t": 2}, linger_ms=0)
    sent = m.send(b"sent", partition=0)
    m.run()
    if answer == "lost":
        m.take_but_lose_answer()
    kept = m.send(b"kept", partition=1)
    m.sender.force_close()
    m.sender.run()
    assert [type(future.exception(0)) for future in (sent, kept)] == [ClientClosedError] * 2
    assert "may have been written" in str(sent.exception(0))
    assert "may have been written" not in str(kept.exception(0))
