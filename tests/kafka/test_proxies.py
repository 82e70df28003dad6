"""A real broker behind proxies, by a name that only they know."""

from __future__ import annotations

import pytest

from harness.network.forward_proxy import ForwardProxy
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import KafkaAdminClient


@pytest.mark.parametrize("scheme", ["socks5", "http"])
def test_records_go_there_and_back_through_a_proxy(kafka: RealKafka, scheme: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    host, _, port = kafka.bootstrap_servers.partition(":")
    with ForwardProxy({"kafka.invalid": host}, ("me", "secret")) as proxy:
        settings = {"bootstrap.servers": f"kafka.invalid:{port}", "kclient.proxy.url": proxy.url(scheme)}
        with KafkaProducer(settings) as producer:
            for i in range(1000):
                producer.send(topic, b"%d" % i)
        with KafkaConsumer(settings, group_id=f"g-{topic}", auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            assert [next(iter(consumer)).value for _ in range(1000)] == [b"%d" % i for i in range(1000)]
        with KafkaAdminClient(settings) as admin:
            assert topic in admin.list_topics()
        assert set(proxy.asked) == {("kafka.invalid", int(port)), (host, int(port))}
