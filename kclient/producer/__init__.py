"""The producer: from `send` to the brokers."""

from __future__ import annotations

import typing

from kclient.utils import lazy

if typing.TYPE_CHECKING:
    from kclient.producer.bulk import BulkFuture, RecordRange
    from kclient.producer.config import ProducerConfig
    from kclient.producer.health import ProducerHealth
    from kclient.producer.interceptor import ProducerInterceptor
    from kclient.producer.kafka_producer import KafkaProducer
    from kclient.producer.partitioner import DefaultPartitioner, Partitioner, RoundRobinPartitioner
    from kclient.producer.settings import ProducerSettings
    from kclient.producer.types import ProducerRecord, RecordMetadata
else:
    __getattr__, __dir__ = lazy.names(
        __name__,
        {
            "kclient.producer.bulk": ("BulkFuture", "RecordRange"),
            "kclient.producer.config": ("ProducerConfig",),
            "kclient.producer.health": ("ProducerHealth",),
            "kclient.producer.interceptor": ("ProducerInterceptor",),
            "kclient.producer.kafka_producer": ("KafkaProducer",),
            "kclient.producer.partitioner": ("DefaultPartitioner", "Partitioner", "RoundRobinPartitioner"),
            "kclient.producer.settings": ("ProducerSettings",),
            "kclient.producer.types": ("ProducerRecord", "RecordMetadata"),
        },
    )

__all__ = [
    "BulkFuture",
    "DefaultPartitioner",
    "KafkaProducer",
    "Partitioner",
    "ProducerConfig",
    "ProducerHealth",
    "ProducerInterceptor",
    "ProducerRecord",
    "ProducerSettings",
    "RecordMetadata",
    "RecordRange",
    "RoundRobinPartitioner",
]
