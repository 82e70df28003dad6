from __future__ import annotations

import attrs
from prometheus_client import CollectorRegistry, generate_latest

from kclient.metrics import Measurement, MetricName
from kclient.observability.prometheus import KafkaCollector

_CLIENT = (("client-id", "c"),)
RATE = MetricName("record-send-rate", "producer-metrics", _CLIENT, "The records per second")
TOTAL = MetricName("record-send-total", "producer-topic-metrics", (*_CLIENT, ("topic", "t-1")), "All records")


@attrs.define(eq=False)
class Client:
    values: list[Measurement]

    def measurements(self) -> list[Measurement]:
        return self.values


def lines(*clients: Client) -> list[str]:
    registry = CollectorRegistry()
    registry.register(KafkaCollector(*clients))
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_metrics_have_names_of_group_and_name_and_tags_are_labels() -> None:
    client = Client([Measurement(RATE, 2.5, cumulative=False), Measurement(TOTAL, 7.0, cumulative=True)])

    assert lines(client) == [
        'kafka_producer_record_send_rate{client_id="c"} 2.5',
        'kafka_producer_topic_record_send_total{client_id="c",topic="t-1"} 7.0',
    ]


def test_sums_are_counters_and_all_others_gauges() -> None:
    registry = CollectorRegistry()
    values = [Measurement(RATE, 1.0, cumulative=False), Measurement(TOTAL, 7.0, cumulative=True)]
    registry.register(KafkaCollector(Client(values)))

    text = generate_latest(registry).decode()

    assert "# TYPE kafka_producer_record_send_rate gauge" in text
    assert "# TYPE kafka_producer_topic_record_send_total counter" in text
    assert "# HELP kafka_producer_record_send_rate The records per second" in text


def test_clients_share_a_family() -> None:
    other = MetricName(RATE.name, RATE.group, (("client-id", "d"),))
    clients = [Client([Measurement(name, 1.0, cumulative=False)]) for name in (RATE, other)]

    assert lines(*clients) == [
        'kafka_producer_record_send_rate{client_id="c"} 1.0',
        'kafka_producer_record_send_rate{client_id="d"} 1.0',
    ]


def test_metrics_without_a_value_are_left_out() -> None:
    assert lines(Client([Measurement(RATE, float("nan"), cumulative=False)])) == []


def test_clients_come_and_go() -> None:
    collector = KafkaCollector()
    client = Client([Measurement(RATE, 1.0, cumulative=False)])
    assert list(collector.collect()) == []
    collector.add(client)
    assert len(list(collector.collect())) == 1
    collector.remove(client)
    assert list(collector.collect()) == []


def test_a_client_and_its_topics_have_one_family_of_a_name() -> None:
    """Readers of the format take no second one."""
    of_client = MetricName("bytes-consumed-total", "consumer-fetch-manager-metrics", _CLIENT, "All bytes")
    of_topic = attrs.evolve(of_client, tags=(*_CLIENT, ("topic", "t")))
    registry = CollectorRegistry()
    values = [Measurement(of_client, 3, cumulative=True), Measurement(of_topic, 2, cumulative=True)]
    registry.register(KafkaCollector(Client(values)))
    name = "kafka_consumer_fetch_manager_bytes_consumed_total"
    assert generate_latest(registry).decode().splitlines() == [
        f"# HELP {name} All bytes",
        f"# TYPE {name} counter",
        f'{name}{{client_id="c"}} 3.0',
        f'{name}{{client_id="c",topic="t"}} 2.0',
    ]
