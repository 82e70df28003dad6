"""Metrics pushed to a real broker, whose plugin writes down what it gets (KIP-714, KIP-1076)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.real_kafka import telemetry
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.java import compiled, missing_compiler
from harness.real_kafka.node import missing, tool
from harness.requirements import skip_if
from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.consumer import KafkaConsumer
from kclient.errors import KafkaTimeoutError
from kclient.metrics import KafkaMetric, MetricName
from kclient.producer import KafkaProducer


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pushes that the broker has got."""
    return tmp_path_factory.mktemp("pushes")


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory, directory: Path) -> Iterator[RealKafka]:
    """A broker that wants all metrics of clients every 200 ms."""
    skip_if(missing() or missing_compiler())
    classes = compiled(telemetry.PLUGIN, tmp_path_factory.mktemp("classes"))
    with RealKafka(settings=telemetry.settings(directory), more_classes=classes) as broker:
        tool(
            "org.apache.kafka.tools.ClientMetricsCommand",
            *("--bootstrap-server", broker.bootstrap_servers, "--alter", "--name", "all"),
            *("--metrics", "*", "--interval", "200"),
        )
        yield broker


def of_client(directory: Path, client_id: str) -> list[telemetry.Push]:
    return [push for push in telemetry.pushes(directory) if push.client_id == client_id]


def total(pushes: list[telemetry.Push], name: str) -> float:
    """A sum over all pushes: brokers ask for what was added since the one before."""
    return sum(push.value(name) for push in pushes)


def test_a_producers_metrics_reach_the_brokers_plugin(receiver: RealKafka, directory: Path) -> None:
    topic = new_topic(receiver.bootstrap_servers, 1)
    orders = KafkaMetric(MetricName("orders-open", "shop", (("country", "no"),)), lambda: 42)
    with KafkaProducer(bootstrap_servers=receiver.bootstrap_servers, client_id="seller") as producer:
        producer.register_metric_for_subscription(orders)
        for _ in range(100):
            producer.send(topic, b"value")
        producer.flush()
        known_as = str(producer.client_instance_id())
        wait_until(
            lambda: total(of_client(directory, "seller"), "producer.record.send.total") == 100,
            60,
            "pushes that tell of all records",
        )

    pushes = of_client(directory, "seller")
    assert {push.client_instance_id for push in pushes} == {known_as}
    assert pushes[-1].value("producer.request.latency.avg") > 0
    assert pushes[-1].value("shop.orders.open", country="no") == 42
    assert [push.terminating for push in pushes] == [False] * (len(pushes) - 1) + [True]
    assert total(pushes, "producer.record.send.total") == 100


def test_a_consumers_pushes_say_which_member_of_which_group_it_is(
    receiver: RealKafka, directory: Path
) -> None:
    topic = new_topic(receiver.bootstrap_servers, 1)
    produce(receiver.bootstrap_servers, topic, 10)
    with KafkaConsumer(
        bootstrap_servers=receiver.bootstrap_servers,
        client_id="buyer",
        group_id="buyers",
        client_rack="r1",
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.subscribe([topic])

        def told() -> bool:
            consumer.poll(50)
            read = total(of_client(directory, "buyer"), "consumer.fetch.manager.records.consumed.total")
            return read == 10

        wait_until(told, 60, "pushes that tell of all records")
        member_id = consumer.group_metadata().member_id

    last = of_client(directory, "buyer")[-1]
    assert last.terminating
    assert last.labels == {"group_id": "buyers", "group_member_id": member_id, "client_rack": "r1"}


def test_on_a_broker_without_a_plugin_the_client_has_no_id(kafka: RealKafka) -> None:
    with (
        KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer,
        pytest.raises(KafkaTimeoutError, match="nobody receives metrics on the brokers"),
    ):
        producer.client_instance_id(timeout_ms=3000)
