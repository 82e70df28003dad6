"""The producer: from `send` to the brokers."""

from __future__ import annotations

from kclient.producer.bulk import BulkFuture, RecordRange
from kclient.producer.config import ProducerConfig
from kclient.producer.interceptor import ProducerInterceptor
from kclient.producer.kafka_producer import KafkaProducer
from kclient.producer.partitioner import DefaultPartitioner, Partitioner, RoundRobinPartitioner
from kclient.producer.types import ProducerRecord, RecordMetadata

__all__ = [
    "BulkFuture",
    "DefaultPartitioner",
    "KafkaProducer",
    "Partitioner",
    "ProducerConfig",
    "ProducerInterceptor",
    "ProducerRecord",
    "RecordMetadata",
    "RecordRange",
    "RoundRobinPartitioner",
]
