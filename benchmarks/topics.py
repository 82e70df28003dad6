"""Topics of a measurement's own."""

from __future__ import annotations

import uuid

from kclient.admin import KafkaAdminClient, NewTopic


def create_topic(admin: KafkaAdminClient, partitions: int = 1) -> str:
    """Make a topic that nobody has used; its name."""
    name = f"bench-{uuid.uuid4().hex[:12]}"
    admin.create_topics([NewTopic(name, partitions, 1)])
    return name
