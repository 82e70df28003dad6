"""Health of the three clients, on an embedded broker that goes away and comes back."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator

import attrs
import pytest

from harness.broker.proxied import proxied_broker
from harness.network.proxy import FaultProxy
from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.client.health import ClientHealth
from kclient.consumer import KafkaConsumer
from kclient.errors import BufferExhaustedError
from kclient.producer import KafkaProducer

_IMPATIENT: dict[str, object] = {"request.timeout.ms": 1000, "reconnect.backoff.max.ms": 200}


@attrs.frozen
class Net:
    """A broker that clients reach through a proxy alone."""

    proxy: FaultProxy
    topic: str

    @property
    def settings(self) -> dict[str, object]:
        return {"bootstrap.servers": self.proxy.bootstrap, **_IMPATIENT}


@pytest.fixture
def net() -> Iterator[Net]:
    with proxied_broker() as (proxy, _):
        yield Net(proxy, new_topic(proxy.bootstrap, 2))


def falls_ill_and_gets_well(net: Net, health: Callable[[], ClientHealth], work: Callable[[], object]) -> None:
    """Look at a client while its broker is there, while it is not, and when it is there again."""
    work()
    well = health()
    assert well.healthy, well.reasons
    assert any(each.state == "ready" and each.failure is None for each in well.connections)
    assert well.metadata_age_ms is not None
    net.proxy.stop()
    wait_until(lambda: not health().healthy, 30, "the loss of the broker")
    (reason,) = health().reasons
    assert f"127.0.0.1:{net.proxy.port}" in reason
    assert any(each.failure is not None for each in health().connections)
    json.dumps(health().to_dict())
    net.proxy.start()
    wait_until(lambda: health().healthy, 30, "the broker's return")


def test_a_producer_without_a_broker_is_ill_until_it_is_back(net: Net) -> None:
    with KafkaProducer(net.settings, linger_ms=0) as producer:

        def work() -> None:
            producer.send(net.topic, b"v").result(30)
            standing = producer.health()
            assert standing.undelivered_records == 0
            assert standing.buffer_total_bytes == standing.buffer_available_bytes == 32 * 1024 * 1024

        falls_ill_and_gets_well(net, producer.health, work)
    assert producer.health().reasons == ("The producer is closed",)


def test_records_that_wait_for_memory_are_told(net: Net) -> None:
    with KafkaProducer(net.settings, buffer_memory=40_000, batch_size=20_000, linger_ms=0) as producer:
        producer.send(net.topic, b"v").result(30)
        net.proxy.blackhole(None, times=-1, on_response=True)

        def fill() -> None:
            for _ in range(10):
                producer.send(net.topic, b"x" * 15_000)

        thread = threading.Thread(target=fill, daemon=True)
        thread.start()
        wait_until(lambda: producer.health().waiting_threads == 1, 30, "a record without memory")
        standing = producer.health()
        assert standing.healthy, standing.reasons  # not yet: brokers may only be slow
        assert standing.buffer_available_bytes < 20_000
        assert standing.undelivered_records == standing.records_queued + standing.records_in_flight > 0
        assert standing.oldest_batch_age_ms is not None
        net.proxy.clear()
        net.proxy.drop_connections()
        thread.join(60)
        assert not thread.is_alive()


def test_memory_that_does_not_come_free_for_max_block_is_a_reason(net: Net) -> None:
    settings = {**net.settings, "request.timeout.ms": 30_000}
    with KafkaProducer(
        settings, buffer_memory=40_000, batch_size=20_000, linger_ms=0, max_block_ms=300
    ) as producer:
        producer.send(net.topic, b"v").result(30)
        net.proxy.blackhole(None, times=-1, on_response=True)
        producer.send(net.topic, b"x" * 15_000)
        producer.send(net.topic, b"x" * 15_000)
        with pytest.raises(BufferExhaustedError):
            producer.send(net.topic, b"x" * 15_000)
        wait_until(lambda: not producer.health().healthy, 30, "the end of patience")
        (reason,) = producer.health().reasons
        assert "max.block.ms" in reason
        assert "buffer.memory" in reason
        net.proxy.clear()
        net.proxy.drop_connections()
        wait_until(lambda: producer.health().healthy, 30, "memory")


def test_a_member_without_a_broker_is_ill_until_it_is_back(net: Net) -> None:
    produce(net.proxy.bootstrap, net.topic, 10)
    stopping = threading.Event()
    with KafkaConsumer(net.settings, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([net.topic])

        def poll() -> None:
            while not stopping.is_set():
                consumer.poll(50)

        polling = threading.Thread(target=poll, daemon=True)
        polling.start()

        def work() -> None:
            def read() -> bool:
                standing = consumer.health()
                return standing.member_state == "stable" and set(standing.lag.values()) == {0}

            wait_until(read, 30, "everything read")
            standing = consumer.health()
            assert standing.group_id == "g"
            assert standing.last_heartbeat_ms is not None
            assert standing.last_poll_ms is not None
            assert standing.assignment_age_ms is not None

        try:
            falls_ill_and_gets_well(net, consumer.health, work)
        finally:
            stopping.set()
            polling.join(60)
    assert consumer.health().reasons == ("The consumer is closed",)


def test_a_member_whose_application_does_not_poll_is_ill(net: Net) -> None:
    with KafkaConsumer(net.settings, group_id="g", max_poll_interval_ms=1000) as consumer:
        consumer.subscribe([net.topic])
        wait_until(lambda: (consumer.poll(50), consumer.assignment())[1], 30, "the assignment")
        assert consumer.health().healthy
        wait_until(lambda: not consumer.health().healthy, 30, "the end of its time")
        (reason,) = consumer.health().reasons
        assert "max.poll.interval.ms" in reason
        consumer.poll(50)
        assert consumer.health().healthy


def test_an_admin_client_without_a_broker_is_ill_until_it_is_back(net: Net) -> None:
    with KafkaAdminClient(net.settings) as admin:

        def work() -> None:
            admin.list_topics()
            wait_until(lambda: admin.health().metadata_age_ms is not None, 30, "the brokers' metadata")

        falls_ill_and_gets_well(net, admin.health, work)
    assert admin.health().reasons == ("The admin client is closed",)
