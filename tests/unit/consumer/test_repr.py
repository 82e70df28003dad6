"""The repr of a consumer."""

from __future__ import annotations

from harness.network.ports import closed_port
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer


def test_a_consumer_says_who_it_is_what_it_reads_and_whether_it_is_closed() -> None:
    server = f"127.0.0.1:{closed_port()}"
    with KafkaConsumer(bootstrap_servers=server, client_id="reader", group_id="g") as consumer:
        consumer.subscribe(["b", "a"])
        assert repr(consumer) == (
            f"<KafkaConsumer reader to {server} in group g subscribed to a, b with 0 partitions>"
        )
        consumer.unsubscribe()
        consumer.assign([TopicPartition("t", 3)])
        assert repr(consumer) == f"<KafkaConsumer reader to {server} in group g with 1 partition>"
    assert repr(consumer).startswith(f"<KafkaConsumer reader closed to {server}")
