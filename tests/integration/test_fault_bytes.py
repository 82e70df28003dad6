"""Connections of the producer that break, or stand still, in the middle of a frame."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from faults import FaultProxy, ScriptedBroker
from faults_cluster import Cluster, ProxiedCluster
from helpers import wait_until
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
        if at == rule.frame_bytes:
            break  # the last time all of the frame passed before the end
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
        if at == rule.frame_bytes:
            break
        at += 1
    assert all(future.result(0).offset == -1 for _, future in cluster.sent)
    cluster.check()


# A broker that stops reading in the middle of a request.


class Stalled:
    """What `hold` answers, with the broker reading nothing more from that connection until `go_on`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._go = threading.Event()
        self.began = threading.Event()

    def hold(self, header: Any, message: Any) -> Any:
        self.began.set()
        assert self._go.wait(30)
        return self._cluster.produce(message)

    def go_on(self) -> None:
        self._go.set()


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
        stalled = Stalled(cluster)
        broker.once(ApiKeys.PRODUCE, stalled.hold)
        with cluster.producer(max_request_size=16 << 20, batch_size=0, request_timeout_ms=400) as producer:
            cluster.send(producer)
            assert stalled.began.wait(10)
            cluster.send(producer, size=_LARGE)
            cluster.send(producer, 3)
            producer.flush(20_000)
            # The broker has not read on: what was written of the large request before has reached nobody.
            large = [value for _, value in received_records(broker) if len(value) > _LARGE]
            assert large == [cluster.sent[1][0]]
            stalled.go_on()
        cluster.check()
        assert len(cluster.logs.log("t").values) == 5


def test_a_batch_that_expires_half_written_keeps_its_bytes_and_its_memory_until_the_request_ends() -> None:
    # CVE-2026-35554: the memory of an expired batch was used for other batches while it was still being written.
    def value(name: bytes) -> bytes:
        return name * (_LARGE // len(name))

    with ScriptedBroker(topics={"t": 1, "other": 1}) as broker:
        cluster = Cluster(broker)
        stalled = Stalled(cluster)
        settings: dict[str, Any] = {
            "enable_idempotence": False,
            "max_request_size": 16 << 20,
            "buffer_memory": 64 << 20,
            "batch_size": 0,
            # Sent a second time after about 1200 ms, so it expires long before the second request does.
            "retry_backoff_ms": 1200,
            "retry_backoff_max_ms": 1200,
            "request_timeout_ms": 2000,
            "delivery_timeout_ms": 2000,
        }
        with cluster.producer(**settings) as producer:

            def free_bytes() -> float:
                return next(v for k, v in producer.metrics().items() if k.name == "buffer-available-bytes")

            producer.send("other", b"first").result(10)
            cluster.logs.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS)
            expiring = producer.send("t", value(b"expires "))
            wait_until(lambda: not cluster.logs.errors["t", 0])
            broker.once(ApiKeys.PRODUCE, stalled.hold)
            producer.send("other", b"stalls")
            assert stalled.began.wait(10)
            error = expiring.exception(10)
            assert isinstance(error, KafkaTimeoutError)
            accepted = broker.accepted
            assert free_bytes() <= (64 << 20) - _LARGE
            others = [producer.send("other", value(name)) for name in (b"another ", b"a third ", b"a fourth")]
            assert free_bytes() <= (64 << 20) - 4 * _LARGE
            stalled.go_on()
            assert [future.result(20).offset for future in others] == [2, 3, 4]
            wait_until(lambda: free_bytes() == 64 << 20)
            assert broker.accepted == accepted, "the request was to be finished, not begun again"
        assert received_records(broker) == [
            ("other", b"first"),
            ("t", value(b"expires ")),
            ("other", b"stalls"),
            ("t", value(b"expires ")),
            ("other", value(b"another ")),
            ("other", value(b"a third ")),
            ("other", value(b"a fourth")),
        ]
        assert broker.errors == []
