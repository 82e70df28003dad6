"""Brokers at other addresses than the client knows: replaced, or with another cluster in their place.

On Kafka 4.4, whose brokers say when a connection was meant for another one (KIP-1242).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.network.ports import free_port
from harness.network.proxy import FaultProxy
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import POM_4_4, missing
from harness.requirements import skip_if
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.consumer import KafkaConsumer
from kclient.errors import KafkaTimeoutError
from kclient.producer import KafkaProducer

_IMPATIENT: dict[str, Any] = {"request.timeout.ms": 1000, "socket.connection.setup.timeout.ms": 1000}


@pytest.fixture(scope="module")
def here() -> Iterator[RealKafka]:
    skip_if(missing())
    with RealKafka(pom=POM_4_4) as broker:
        yield broker


@pytest.fixture(scope="module")
def elsewhere(here: RealKafka) -> Iterator[RealKafka]:
    with RealKafka(pom=POM_4_4) as broker:
        yield broker


def bootstrap(broker: RealKafka) -> str:
    """A way to the broker that tells clients to come through its proxy."""
    return f"127.0.0.1:{broker.behind_proxy_port}"


def proxy_of(broker: RealKafka) -> FaultProxy:
    return FaultProxy(("127.0.0.1", broker.behind_proxy_port), port=broker.proxy_port)


def move(broker: RealKafka) -> None:
    """Stop the broker, and start it as one that clients find at another address."""
    broker.stop()
    port = free_port()
    text = broker.config.read_text()
    broker.config.write_text(
        text.replace(f"PROXIED://127.0.0.1:{broker.proxy_port}", f"PROXIED://127.0.0.1:{port}")
    )
    broker.proxy_port = port
    broker.start()


def test_records_do_not_go_to_another_cluster_that_has_taken_the_brokers_address(
    here: RealKafka, elsewhere: RealKafka
) -> None:
    topic = new_topic(here.bootstrap_servers, 1)
    with (
        proxy_of(here) as proxy,
        KafkaProducer(bootstrap_servers=bootstrap(here), **_IMPATIENT) as producer,
    ):
        producer.send(topic, b"before").result(60)
        proxy.target = "127.0.0.1", elsewhere.port
        proxy.drop_connections()
        accepted = proxy.accepted
        meanwhile = producer.send(topic, b"meanwhile")
        wait_until(lambda: proxy.accepted >= accepted + 3, 30, "connections that are refused")
        assert not meanwhile.done()

        proxy.target = "127.0.0.1", here.behind_proxy_port

        meanwhile.result(60)
    assert [record.value for record in read_all(here.bootstrap_servers, topic)] == [b"before", b"meanwhile"]
    with KafkaAdminClient(bootstrap_servers=elsewhere.bootstrap_servers) as admin:
        assert topic not in admin.list_topics()


@pytest.mark.parametrize("old", ["gone", "silent"])
def test_clients_find_the_cluster_again_when_all_of_its_brokers_were_replaced(
    here: RealKafka, old: str
) -> None:
    topic = new_topic(here.bootstrap_servers, 1)
    settings = {"bootstrap_servers": bootstrap(here), **_IMPATIENT}
    with ExitStack() as stack:
        proxy = stack.enter_context(proxy_of(here))
        # Where the old address does not refuse, nothing but the time tells that nobody is there (KIP-1102).
        producer = stack.enter_context(
            KafkaProducer(
                **settings, metadata_recovery_rebootstrap_trigger_ms=3000 if old == "silent" else 300_000
            )
        )
        steadfast = stack.enter_context(
            KafkaProducer(
                **settings, metadata_recovery_strategy="none", delivery_timeout_ms=8000, linger_ms=0
            )
        )
        consumer = stack.enter_context(
            KafkaConsumer(
                **settings,
                group_id=f"moved-{old}",
                auto_offset_reset="earliest",
                metadata_recovery_rebootstrap_trigger_ms=3000,
            )
        )
        consumer.subscribe([topic])
        producer.send(topic, b"before").result(60)
        steadfast.send(topic, b"before as well").result(60)
        read: list[bytes] = []

        def read_until(count: int) -> None:
            def poll() -> bool:
                read.extend(record.value for record in consumer.poll(200))
                return len(read) >= count

            wait_until(poll, 60, f"{count} records, of which there are {read}")

        read_until(2)
        if old == "gone":
            proxy.stop()
        else:
            for on_response in (False, True):
                proxy.blackhole(None, times=-1, on_response=on_response)
            proxy.drop_connections()
        move(here)
        lost = steadfast.send(topic, b"to nobody")

        with proxy_of(here):
            producer.send(topic, b"after").result(60)
            read_until(3)
            with pytest.raises(KafkaTimeoutError):
                lost.result(60)
            consumer.close()
    assert read == [b"before", b"before as well", b"after"]
