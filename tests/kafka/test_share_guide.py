"""The programs of docs/share-groups.md run as they stand, on a real broker."""

from __future__ import annotations

from pathlib import Path

from harness.guides import python_blocks, run_block
from harness.real_kafka.broker import RealKafka
from kclient.admin import AlterConfigOp, ConfigResource, ConfigResourceType, KafkaAdminClient


def test_the_programs_of_the_guide_run(kafka: RealKafka, tmp_path: Path) -> None:
    servers = kafka.bootstrap_servers
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        for group in ("careful-mailers", "readers"):
            resource = ConfigResource(ConfigResourceType.GROUP, group)
            admin.incremental_alter_configs(
                {resource: [AlterConfigOp("share.auto.offset.reset", "earliest")]}
            )
    for block in python_blocks("docs/share-groups.md"):
        run_block(block.replace("localhost:9092", servers), tmp_path)
