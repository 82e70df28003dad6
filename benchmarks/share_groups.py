"""Share groups of a measurement's own."""

from __future__ import annotations

import uuid

from kclient.admin import AlterConfigOp, ConfigResource, ConfigResourceType, KafkaAdminClient


def new_share_group(servers: str) -> str:
    """Name a group that nobody has used, which begins where the topics begin."""
    name = f"bench-{uuid.uuid4().hex[:12]}"
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.incremental_alter_configs(
            {
                ConfigResource(ConfigResourceType.GROUP, name): [
                    AlterConfigOp("share.auto.offset.reset", "earliest")
                ]
            }
        )
    return name
