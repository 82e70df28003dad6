"""The consumer: reading records, alone or as a member of a group."""

from __future__ import annotations

import typing

from kclient.utils import lazy

if typing.TYPE_CHECKING:
    from kclient.config.durations import ByDuration
    from kclient.consumer.acknowledge import AcknowledgementCommitCallback, AcknowledgeType
    from kclient.consumer.assignor import (
        Assignment,
        ConsumerPartitionAssignor,
        CooperativeStickyAssignor,
        RangeAssignor,
        RebalanceProtocol,
        RoundRobinAssignor,
        StickyAssignor,
        Subscription,
    )
    from kclient.consumer.columns import BinaryColumn, HeaderColumns, RecordColumns
    from kclient.consumer.config import ConsumerConfig
    from kclient.consumer.group_membership_operation import GroupMembershipOperation
    from kclient.consumer.health import ConsumerHealth
    from kclient.consumer.interceptor import ConsumerInterceptor
    from kclient.consumer.kafka_consumer import KafkaConsumer
    from kclient.consumer.kafka_share_consumer import KafkaShareConsumer
    from kclient.consumer.listener import ConsumerRebalanceListener
    from kclient.consumer.settings import ConsumerSettings
    from kclient.consumer.share_config import ShareConsumerConfig
    from kclient.consumer.share_settings import ShareConsumerSettings
    from kclient.consumer.subscription_pattern import SubscriptionPattern
    from kclient.consumer.types import ConsumerRecord, ConsumerRecords
else:
    __getattr__, __dir__ = lazy.names(
        __name__,
        {
            "kclient.config.durations": ("ByDuration",),
            "kclient.consumer.assignor": (
                "Assignment",
                "ConsumerPartitionAssignor",
                "CooperativeStickyAssignor",
                "RangeAssignor",
                "RebalanceProtocol",
                "RoundRobinAssignor",
                "StickyAssignor",
                "Subscription",
            ),
            "kclient.consumer.acknowledge": ("AcknowledgementCommitCallback", "AcknowledgeType"),
            "kclient.consumer.columns": ("BinaryColumn", "HeaderColumns", "RecordColumns"),
            "kclient.consumer.config": ("ConsumerConfig",),
            "kclient.consumer.group_membership_operation": ("GroupMembershipOperation",),
            "kclient.consumer.health": ("ConsumerHealth",),
            "kclient.consumer.interceptor": ("ConsumerInterceptor",),
            "kclient.consumer.kafka_consumer": ("KafkaConsumer",),
            "kclient.consumer.kafka_share_consumer": ("KafkaShareConsumer",),
            "kclient.consumer.listener": ("ConsumerRebalanceListener",),
            "kclient.consumer.settings": ("ConsumerSettings",),
            "kclient.consumer.share_config": ("ShareConsumerConfig",),
            "kclient.consumer.share_settings": ("ShareConsumerSettings",),
            "kclient.consumer.subscription_pattern": ("SubscriptionPattern",),
            "kclient.consumer.types": ("ConsumerRecord", "ConsumerRecords"),
        },
    )

__all__ = [
    "AcknowledgeType",
    "AcknowledgementCommitCallback",
    "Assignment",
    "BinaryColumn",
    "ByDuration",
    "ConsumerConfig",
    "ConsumerHealth",
    "ConsumerInterceptor",
    "ConsumerPartitionAssignor",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerRecords",
    "ConsumerSettings",
    "CooperativeStickyAssignor",
    "GroupMembershipOperation",
    "HeaderColumns",
    "KafkaConsumer",
    "KafkaShareConsumer",
    "RangeAssignor",
    "RebalanceProtocol",
    "RecordColumns",
    "RoundRobinAssignor",
    "ShareConsumerConfig",
    "ShareConsumerSettings",
    "StickyAssignor",
    "Subscription",
    "SubscriptionPattern",
]
