"""A metadata log as a Kafka leaves it, of records that a test says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kclient.broker.metadata.metadata_log import MetadataLog
from kclient.common.uuid import Uuid
from kclient.protocol.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    TopicRecord,
)
from kclient.protocol.schema import Message
from kclient.utils.time import SYSTEM_TIME


def write_kafka_log(log_dir: Path, *records: Message, snapshot: bool = False) -> Path:
    """Write `__cluster_metadata-0` in a log directory; with `snapshot` the records are in one. Its path."""
    directory = log_dir / "__cluster_metadata-0"
    log = MetadataLog(directory, SYSTEM_TIME)
    log.start()
    first: Message = FeatureLevelRecord(name="metadata.version", feature_level=25)
    log.append([first, *records])
    if snapshot:
        log.write_snapshot([first, *records])
    log.close()
    return directory


def topic_records(
    name: str, topic_id: Uuid, replicas: Sequence[Sequence[int]], leader_epoch: int = 3, **configs: str
) -> list[Message]:
    """The records of a topic with these replicas of each partition. Settings have underscores for dots."""
    return [
        TopicRecord(name=name, topic_id=topic_id),
        *(
            PartitionRecord(
                partition_id=number,
                topic_id=topic_id,
                replicas=list(nodes),
                isr=list(nodes),
                leader=nodes[0],
                leader_epoch=leader_epoch,
                directories=[Uuid.ZERO] * len(nodes),
            )
            for number, nodes in enumerate(replicas)
        ),
        *(
            ConfigRecord(resource_type=2, resource_name=name, name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ),
    ]
