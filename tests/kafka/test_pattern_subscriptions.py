"""A subscription by pattern, and answers about topics that were on their way when it came."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection

import pytest

from harness.network.proxy import FaultProxy
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener, KafkaConsumer
from kclient.protocol.api_keys import ApiKeys


class _Noting(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.assigned: list[set[TopicPartition]] = []

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.assigned.append(set(partitions))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_answer_to_an_earlier_request_does_not_stand_for_the_one_about_all_topics(
    kafka: RealKafka, kafka_proxy: FaultProxy, protocol: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2)
    produce(kafka.bootstrap_servers, topic, 20)
    asked, subscribed = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        asked.set()
        subscribed.wait()

    kafka_proxy.edit(ApiKeys.METADATA, hold, times=-1)
    listener = _Noting()
    with KafkaConsumer(
        bootstrap_servers=kafka_proxy.bootstrap,
        group_id=f"g-{topic}",
        group_protocol=protocol,
        auto_offset_reset="earliest",
    ) as consumer:
        assert asked.wait(10), "no broker was asked about topics"
        consumer.subscribe(re.compile(f"{topic[:-1]}."), listener)
        consumer.poll(100)  # its other thread has heard of the pattern by then
        subscribed.set()
        read = 0

        def has_all() -> bool:
            nonlocal read
            read += len(consumer.poll(100))
            return read == 20

        wait_until(has_all, what="all records")
    assert listener.assigned == [{TopicPartition(topic, 0), TopicPartition(topic, 1)}]
