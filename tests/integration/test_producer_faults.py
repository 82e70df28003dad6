"""The producer against brokers and networks that misbehave.

After each fault the same must hold: every record has one outcome within delivery.timeout.ms, an acknowledged one is in
the log at the offset told, with idempotence none is there twice and all are in order, and nothing is left behind.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.network.proxy import FaultProxy
from harness.network.scripted_broker import ScriptedBroker, cluster_of
from harness.producer.cluster import ProxiedCluster
from harness.producer.model import FakeBroker
from harness.waiting import wait_until
from kclient.errors import ErrorCode, KafkaTimeoutError
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from kclient.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.record import iter_batches


@pytest.fixture
def cluster() -> Iterator[ProxiedCluster]:
    with ScriptedBroker(topics={"t": 1}) as broker, FaultProxy(broker.address) as proxy:
        yield ProxiedCluster(broker, proxy)


def test_an_answer_that_is_swallowed_makes_no_second_copy(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        cluster.send(producer)
        producer.flush()
        cluster.proxy.swallow(ApiKeys.PRODUCE)
        cluster.send(producer, 10)
        producer.flush()
    cluster.check()


def test_without_idempotence_a_swallowed_answer_may_make_a_second_copy_but_loses_nothing(
    cluster: ProxiedCluster,
) -> None:
    with cluster.producer(enable_idempotence=False) as producer:
        cluster.proxy.swallow(ApiKeys.PRODUCE)
        cluster.send(producer)
        producer.flush()
    cluster.check(once=False)
    assert cluster.logs.log("t").values == [b"000000", b"000000"]


@pytest.mark.parametrize("on_response", [False, True])
@pytest.mark.parametrize("cut_with", ["cut", "reset"])
def test_a_connection_that_breaks_at_any_byte_loses_and_repeats_nothing(
    cluster: ProxiedCluster, cut_with: str, on_response: bool
) -> None:
    with cluster.producer() as producer:
        cluster.send(producer)
        producer.flush()
        for at in (0, 1, 3, 4, 5, 8, 11, 20, 40, 60, 100):
            rule = getattr(cluster.proxy, cut_with)(ApiKeys.PRODUCE, at, on_response=on_response)
            cluster.send(producer, 3)
            producer.flush()
            assert rule.hits <= 1
    cluster.check()


def test_a_silent_broker_is_given_up_after_request_timeout_and_its_late_answer_ignored(
    cluster: ProxiedCluster,
) -> None:
    with cluster.producer() as producer:
        cluster.send(producer)
        producer.flush()
        cluster.proxy.delay(ApiKeys.PRODUCE, 900)
        cluster.send(producer, 5)
        started = time.monotonic()
        producer.flush()
        assert time.monotonic() - started < 15
    cluster.check()


def test_a_busy_producer_keeps_its_cluster_although_the_bootstrap_address_is_gone(
    cluster: ProxiedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kclient")
    with (
        FaultProxy(cluster.broker.address) as door,
        cluster.producer(
            bootstrap_servers=door.bootstrap,
            max_in_flight_requests_per_connection=1,
            batch_size=100,
            buffer_memory=32_000,  # so that batches do not grow while others wait
            metadata_max_age_ms=50,
            delivery_timeout_ms=5000,
            max_block_ms=5000,
        ) as producer,
    ):
        cluster.send(producer)
        producer.flush()
        door.stop()
        cluster.proxy.delay(ApiKeys.PRODUCE, 10, times=1000)
        begun = len(cluster.broker.requests)
        cluster.send(producer, 60, size=1500)
        producer.flush()
    cluster.check()
    assert "Starting again" not in caplog.text
    # And the metadata had its turn although there was always another batch to send.
    asked = [header.api_key for header, _ in cluster.broker.requests[begun:]]
    last = len(asked) - asked[::-1].index(ApiKeys.PRODUCE)
    assert asked[:last].count(ApiKeys.METADATA) > 2


def test_a_corrupt_answer_closes_the_connection_and_is_tried_again(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        cluster.send(producer)
        producer.flush()
        cluster.proxy.corrupt(ApiKeys.PRODUCE, at=6)
        cluster.send(producer, 3)
        producer.flush()
    cluster.check()


def test_a_broker_that_goes_and_comes_back_gets_everything_once_and_in_order(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        for _ in range(3):
            cluster.send(producer, 200, size=100)
            cluster.proxy.stop()
            cluster.send(producer, 200, size=100)
            cluster.proxy.start()
            cluster.send(producer, 200, size=100)
        producer.flush(30_000)
    cluster.check()
    assert len(cluster.logs.log("t").values) == 1800


def test_acks_0_is_done_when_written_and_fails_when_it_cannot_be_written(cluster: ProxiedCluster) -> None:
    with cluster.producer(acks="0") as producer:
        cluster.send(producer, 5)
        producer.flush()
        assert all(future.result(0).offset == -1 for _, future in cluster.sent)
        wait_until(lambda: len(cluster.logs.log("t").values) == 5)
        cluster.check()


def test_records_expire_when_the_broker_is_gone_and_say_what_happened(cluster: ProxiedCluster) -> None:
    with cluster.producer(request_timeout_ms=100, delivery_timeout_ms=400) as producer:
        cluster.send(producer)
        producer.flush()
        cluster.proxy.stop()
        cluster.send(producer, 50)
        started = time.monotonic()
        producer.flush(60_000)
        assert time.monotonic() - started < 30
    for _, future in cluster.sent[1:]:
        error = future.exception(0)
        assert isinstance(error, KafkaTimeoutError)
        assert "t-0" in str(error)
        assert "delivery.timeout.ms" in str(error)
    cluster.check(all_delivered=False)


def test_batches_that_expire_in_flight_are_never_overwritten_by_others(cluster: ProxiedCluster) -> None:
    # CVE-2026-35554: the memory of an expired batch is used for others while the request may still be written.
    seen: list[bytes | None] = []
    topics: set[str] = set()

    def slow(header: Any, message: Any) -> Any:
        for topic in message.topic_data:
            topics.add(topic.name)
            for data in topic.partition_data:
                for batch in iter_batches(memoryview(data.records)):
                    batch.ensure_valid()
                    seen.extend(record.value for record in batch.records())
        threading.Event().wait(0.25)
        return cluster.produce(message)

    cluster.broker.topics["other"] = 1
    cluster.broker.on(ApiKeys.PRODUCE, slow)
    with cluster.producer(
        request_timeout_ms=200,
        delivery_timeout_ms=200,
        buffer_memory=200_000,
        batch_size=20_000,
        max_block_ms=20_000,
    ) as producer:
        for _ in range(20):
            cluster.send(producer, 5, size=5000)
            producer.send("other", b"o" * 9000)
        producer.flush(30_000)
        metrics = {name.name: value for name, value in producer.metrics().items()}
        wait_until(lambda: producer._core.accumulator.pool.available == 200_000)
        assert metrics["record-error-total"] > 0
    mine = {value for value, _ in cluster.sent} | {b"o" * 9000}
    assert set(seen) <= mine
    assert topics == {"t", "other"}
    cluster.check(all_delivered=False)


def test_a_leader_that_moves_is_followed_without_waiting_for_metadata_max_age() -> None:
    brokers = cluster_of(2, {"t": 1})
    logs = FakeBroker()
    with brokers[0], brokers[1]:
        moved = threading.Event()

        def produce_on(node: int) -> Any:
            def produce(header: Any, message: Any) -> Any:
                if moved.is_set() == (node == 1):
                    return logs.produce(message)
                hint = LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
                partition = PartitionProduceResponse(
                    index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, base_offset=-1, current_leader=hint
                )
                return ProduceResponse(
                    responses=[TopicProduceResponse(name="t", partition_responses=[partition])],
                    node_endpoints=[NodeEndpoint(node_id=1, host="127.0.0.1", port=brokers[1].port)],
                )

            return produce

        for broker in brokers:
            broker.on(ApiKeys.INIT_PRODUCER_ID, lambda h, m: InitProducerIdResponse(producer_id=1))
            broker.on(ApiKeys.PRODUCE, produce_on(broker.node_id))
        with KafkaProducer(
            bootstrap_servers=brokers[0].bootstrap, linger_ms=0, retry_backoff_ms=20_000
        ) as producer:
            assert producer.send("t", b"before").result(10).offset == 0
            moved.set()
            started = time.monotonic()
            assert producer.send("t", b"after").result(10).offset == 1
            assert time.monotonic() - started < 15
    assert logs.log("t").values == [b"before", b"after"]


RETRIABLE = [
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
]


@pytest.mark.parametrize("code", RETRIABLE, ids=lambda code: code.name)
def test_every_passing_error_is_tried_again(cluster: ProxiedCluster, code: ErrorCode) -> None:
    with cluster.producer() as producer:
        cluster.send(producer)
        producer.flush()
        cluster.logs.fail("t", code, times=3)
        cluster.send(producer, 5)
        producer.flush()
    cluster.check()


FINAL = [
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
]


@pytest.mark.parametrize("code", FINAL, ids=lambda code: code.name)
def test_every_final_error_fails_the_batch_at_once_and_the_producer_goes_on(
    cluster: ProxiedCluster, code: ErrorCode
) -> None:
    with cluster.producer() as producer:
        cluster.send(producer)
        producer.flush()
        cluster.logs.fail("t", code)
        cluster.send(producer)
        producer.flush()
        assert cluster.sent[-1][1].exception(0).code == code  # type: ignore[union-attr]
        cluster.send(producer, 3)
        producer.flush()
    cluster.check(all_delivered=False)
    assert len(cluster.logs.log("t").values) == 4


def test_a_waiting_producer_uses_no_cpu_and_sends_few_requests(cluster: ProxiedCluster) -> None:
    with cluster.producer(retry_backoff_ms=100, retry_backoff_max_ms=100) as producer:
        cluster.send(producer)
        producer.flush()
        cluster.logs.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS, times=10)
        cluster.send(producer, 3)
        before, started = len(cluster.broker.requests), time.process_time()
        producer.flush()
        assert len(cluster.broker.requests) - before < 40
        assert time.process_time() - started < 0.6
    cluster.check()


@pytest.mark.parametrize("seed", range(6))
def test_random_network_faults_lose_and_repeat_nothing(cluster: ProxiedCluster, seed: int) -> None:
    rng = random.Random(seed)
    proxy = cluster.proxy
    with cluster.producer(batch_size=rng.choice([0, 500, 16_384]), request_timeout_ms=150) as producer:
        for _ in range(12):
            both = rng.random() < 0.5
            fault = rng.choice(["cut", "reset", "swallow", "blackhole", "drop", "delay"])
            if fault in {"cut", "reset"}:
                getattr(proxy, fault)(ApiKeys.PRODUCE, rng.randrange(200), on_response=both)
            elif fault == "delay":
                proxy.delay(ApiKeys.PRODUCE, rng.randrange(250), on_response=both)
            elif fault == "drop":
                proxy.drop_connections(with_reset=both)
            else:
                getattr(proxy, fault)(ApiKeys.PRODUCE, on_response=both)
            cluster.send(producer, rng.randrange(1, 60), size=rng.randrange(50))
        proxy.clear()
        producer.flush(30_000)
    cluster.check()
