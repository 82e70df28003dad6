"""A consumer that reads a topic without the help of a group."""

from __future__ import annotations

import uuid

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer


def reader(servers: str, topic: str, partitions: int = 1, **settings: object) -> KafkaConsumer[bytes, bytes]:
    """A consumer of all of a topic, without the help of a group."""
    consumer = KafkaConsumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"g-{uuid.uuid4().hex[:8]}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.assign([TopicPartition(topic, i) for i in range(partitions)])
    return consumer
