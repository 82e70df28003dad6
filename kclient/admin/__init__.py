"""The admin client."""

from __future__ import annotations

from kclient.admin.kafka_admin_client import KafkaAdminClient
from kclient.admin.types import (
    ClusterDescription,
    CreatedTopic,
    GroupDescription,
    GroupListing,
    ListedOffset,
    MemberDescription,
    NewTopic,
    OffsetSpec,
    TopicDescription,
    TopicListing,
)

__all__ = [
    "ClusterDescription",
    "CreatedTopic",
    "GroupDescription",
    "GroupListing",
    "KafkaAdminClient",
    "ListedOffset",
    "MemberDescription",
    "NewTopic",
    "OffsetSpec",
    "TopicDescription",
    "TopicListing",
]
