"""Connections of the producer that break, or stand still, in the middle of a frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.network.proxy import FaultProxy
from harness.network.scripted_broker import ScriptedBroker
from harness.producer.cluster import Cluster, ProxiedCluster
from harness.waiting import wait_until
from kclient.errors import ErrorCode, KafkaTimeoutError
from kclient.protocol.api_keys import ApiKeys
from kclient.record import iter_batches


@pytest.fixture
def cluster() -> Iterator[ProxiedCluster]:
    with ScriptedBroker(topics={"t": 1}) as broker, FaultProxy(broker.address) as proxy:
        yield ProxiedCluster(broker, proxy)


@pytest.mark.parametrize("on_response", [False, True], ids=["request", "response"])
@pytest.mark.parametrize("end", ["cut", "reset"])
def test_a_first_produce_that_breaks_at_any_byte_loses_nothing_and_doubles_nothing(
    cluster: ProxiedCluster, end: str, on_response: bool
) -> None:
    at = 0
    while True:
        rule = getattr(cluster.proxy, end)(ApiKeys.PRODUCE, at, on_response=on_response)
        with cluster.producer() as producer:
            cluster.send(producer, 2)
        assert rule.hits == 1
        if at >= rule.frame_bytes:
            break  # the last time all of the frame passed before the end; frames are not all of one size
        at += 1
    assert len(cluster.logs.log("t").values) == 2 * (at + 1)
    cluster.check()


def test_without_acks_a_produce_that_breaks_at_any_byte_counts_as_sent_and_is_never_doubled(
    cluster: ProxiedCluster,
) -> None:
    at = 0
    while True:
        rule = cluster.proxy.reset(ApiKeys.PRODUCE, at, on_response=False)
        with cluster.producer(acks="0") as producer:
            cluster.send(producer, 2)
        wait_until(lambda rule=rule: rule.hits == 1)  # type: ignore[misc]
        if at >= rule.frame_bytes:
            break
        at += 1
    assert all(future.result(0).offset == -1 for _, future in cluster.sent)
    cluster.check()


# A broker that stops reading in the middle of a request.


def answer_and_stop_reading(cluster: Cluster) -> None:
    """Have the broker answer the next produce request, and read nothing more until `reading` is set."""

    def produce(header: Any, message: Any) -> Any:
        cluster.broker.reading.clear()
        return cluster.produce(message)

    cluster.broker.once(ApiKeys.PRODUCE, produce)


def received_records(broker: ScriptedBroker) -> list[tuple[str, bytes]]:
    """Topic and value of every record of every produce request, the batches' checksums checked."""
    found = []
    for message in broker.received(ApiKeys.PRODUCE):
        for topic in message.topic_data:
            for data in topic.partition_data:
                for batch in iter_batches(memoryview(data.records)):
                    batch.ensure_valid()
                    found += [(topic.name, record.value or b"") for record in batch.records()]
    return found


# More than the buffers of two sockets take while nobody reads.
_LARGE = 8 << 20


def test_a_produce_that_is_half_written_at_its_timeout_is_sent_whole_on_a_new_connection() -> None:
    with ScriptedBroker(topics={"t": 1}) as broker:
        cluster = Cluster(broker)
        answer_and_stop_reading(cluster)
        with cluster.producer(max_request_size=16 << 20, batch_size=0, request_timeout_ms=400) as producer:
            cluster.send(producer)
            producer.flush()
            before = broker.accepted
            cluster.send(producer, size=_LARGE)
            cluster.send(producer, 3)
            wait_until(lambda: broker.accepted > before, what="a new connection")
            broker.reading.set()
            producer.flush(20_000)
        # What was written of the large request before has reached nobody.
        assert received_records(broker) == [("t", value) for value, _ in cluster.sent]
        cluster.check()


def test_a_batch_that_expires_half_written_keeps_its_bytes_and_its_memory_until_the_request_ends() -> None:
    # CVE-2026-35554: the memory of an expired batch was used for other batches while it was still being written.
    def value(name: bytes) -> bytes:
        return name * (_LARGE // len(name))

    total = 64 << 20
    with ScriptedBroker(topics={"t": 1, "other": 1}) as broker:
        cluster = Cluster(broker)
        settings: dict[str, Any] = {
            "enable_idempotence": False,
            "max_request_size": 16 << 20,
            "buffer_memory": total,
            "batch_size": 0,
            # Sent a second time after about 2000 ms, so it expires long before the second request does.
            "retry_backoff_ms": 2000,
            "retry_backoff_max_ms": 2000,
            "request_timeout_ms": 3000,
            "delivery_timeout_ms": 3000,
        }
        with cluster.producer(**settings) as producer:

            def free_bytes() -> float:
                return next(v for k, v in producer.metrics().items() if k.name == "buffer-available-bytes")

            # Both topics have to be known before nothing is read any more.
            producer.send("other", b"first").result(10)
            producer.partitions_for("t")
            cluster.logs.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS)
            answer_and_stop_reading(cluster)
            expiring = producer.send("t", value(b"expires "))
            assert isinstance(expiring.exception(10), KafkaTimeoutError)
            accepted = broker.accepted
            assert free_bytes() <= total - _LARGE
            others = [producer.send("other", value(name)) for name in (b"another ", b"a third ", b"a fourth")]
            assert free_bytes() <= total - 4 * _LARGE
            broker.reading.set()
            assert [future.result(20).offset for future in others] == [1, 2, 3]
            wait_until(lambda: free_bytes() == total)
            assert broker.accepted == accepted, "the request was to be finished, not begun again"
        assert received_records(broker) == [
            ("other", b"first"),
            ("t", value(b"expires ")),
            ("t", value(b"expires ")),
            ("other", value(b"another ")),
            ("other", value(b"a third ")),
            ("other", value(b"a fourth")),
        ]
        assert broker.errors == []
