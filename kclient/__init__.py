"""Apache Kafka's client for Python: producer, consumer, admin client and the errors they raise.

The embedded broker is `kclient.broker.EmbeddedKafka`; every error class is in `kclient.errors`.
"""

from __future__ import annotations

import typing

from kclient._accel import IMPL
from kclient._version import __version__
from kclient.common.node import Node
from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata, OffsetAndTimestamp
from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    AdminError,
    AuthenticationError,
    AuthorizationError,
    BufferExhaustedError,
    ClientClosedError,
    CommitFailedError,
    ConcurrentModificationError,
    ConfigError,
    CorruptRecordError,
    ForkedClientError,
    KafkaError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    RecordTooLargeError,
    RetriableError,
    SerializationError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
    WakeupError,
)
from kclient.utils import lazy

if typing.TYPE_CHECKING:
    from kclient.admin import AdminSettings, KafkaAdminClient, NewTopic, OffsetSpec
    from kclient.consumer import (
        AcknowledgeType,
        ConsumerInterceptor,
        ConsumerRebalanceListener,
        ConsumerRecord,
        ConsumerRecords,
        ConsumerSettings,
        KafkaConsumer,
        KafkaShareConsumer,
        ShareConsumerSettings,
        SubscriptionPattern,
    )
    from kclient.producer import (
        KafkaProducer,
        Partitioner,
        ProducerInterceptor,
        ProducerRecord,
        ProducerSettings,
        RecordMetadata,
        RoundRobinPartitioner,
    )
    from kclient.serialization import (
        Deserializer,
        JsonDeserializer,
        JsonSerializer,
        Serde,
        Serializer,
        StringDeserializer,
        StringSerializer,
    )
    from kclient.utils.futures import KafkaFuture
else:
    __getattr__, __dir__ = lazy.names(
        __name__,
        {
            "kclient.admin": ("AdminSettings", "KafkaAdminClient", "NewTopic", "OffsetSpec"),
            "kclient.consumer": (
                "AcknowledgeType",
                "ConsumerInterceptor",
                "ConsumerRebalanceListener",
                "ConsumerRecord",
                "ConsumerRecords",
                "ConsumerSettings",
                "KafkaConsumer",
                "KafkaShareConsumer",
                "ShareConsumerSettings",
                "SubscriptionPattern",
            ),
            "kclient.producer": (
                "KafkaProducer",
                "Partitioner",
                "ProducerInterceptor",
                "ProducerRecord",
                "ProducerSettings",
                "RecordMetadata",
                "RoundRobinPartitioner",
            ),
            "kclient.serialization": (
                "Deserializer",
                "JsonDeserializer",
                "JsonSerializer",
                "Serde",
                "Serializer",
                "StringDeserializer",
                "StringSerializer",
            ),
            "kclient.utils.futures": ("KafkaFuture",),
        },
    )

__all__ = [
    "IMPL",
    "AcknowledgeType",
    "AdminError",
    "AdminSettings",
    "AuthenticationError",
    "AuthorizationError",
    "BufferExhaustedError",
    "ClientClosedError",
    "CommitFailedError",
    "ConcurrentModificationError",
    "ConfigError",
    "ConsumerGroupMetadata",
    "ConsumerInterceptor",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerRecords",
    "ConsumerSettings",
    "CorruptRecordError",
    "Deserializer",
    "ForkedClientError",
    "JsonDeserializer",
    "JsonSerializer",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaError",
    "KafkaFuture",
    "KafkaProducer",
    "KafkaShareConsumer",
    "KafkaTimeoutError",
    "NewTopic",
    "NoOffsetForPartitionError",
    "Node",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRangeError",
    "OffsetSpec",
    "PartitionInfo",
    "Partitioner",
    "ProducerInterceptor",
    "ProducerRecord",
    "ProducerSettings",
    "RecordDeserializationError",
    "RecordMetadata",
    "RecordTooLargeError",
    "RetriableError",
    "RoundRobinPartitioner",
    "Serde",
    "SerializationError",
    "Serializer",
    "ShareConsumerSettings",
    "StringDeserializer",
    "StringSerializer",
    "SubscriptionPattern",
    "TopicExistsError",
    "TopicIdPartition",
    "TopicPartition",
    "UnknownTopicOrPartitionError",
    "Uuid",
    "WakeupError",
    "__version__",
]
