"""The admin client."""

from __future__ import annotations

import typing

from kclient.utils import lazy

if typing.TYPE_CHECKING:
    from kclient.admin.kafka_admin_client import KafkaAdminClient
    from kclient.admin.settings import AdminSettings
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
else:
    __getattr__, __dir__ = lazy.names(
        __name__,
        {
            "kclient.admin.kafka_admin_client": ("KafkaAdminClient",),
            "kclient.admin.settings": ("AdminSettings",),
            "kclient.admin.types": (
                "ClusterDescription",
                "CreatedTopic",
                "GroupDescription",
                "GroupListing",
                "ListedOffset",
                "MemberDescription",
                "NewTopic",
                "OffsetSpec",
                "TopicDescription",
                "TopicListing",
            ),
        },
    )

__all__ = [
    "AdminSettings",
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
