"""The few requests with which most tests of the broker begin, over a `Wire`."""

from __future__ import annotations

from typing import Any

from harness.broker.wire import Wire
from kclient.common.uuid import Uuid
from kclient.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.record.memory_records import iter_batches


def create(wire: Wire, name: str, partitions: int = 1, **configs: str) -> Uuid:
    """Make a topic; its id. Settings have underscores for dots."""
    settings = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
    ]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    result = wire.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0]
    assert result.error_code == 0, result.error_message
    topic_id = result.topic_id
    assert isinstance(topic_id, Uuid)
    return topic_id


def delete(wire: Wire, name: str) -> None:
    """Delete a topic."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
    assert wire.ask(request, 6).responses[0].error_code == 0


def find_coordinator(wire: Wire, group_id: str) -> None:
    """Look for the coordinator of a group, as clients do first; the broker makes the topic of offsets for it."""
    found = wire.ask(FindCoordinatorRequest(coordinator_keys=[group_id]), 4).coordinators[0]
    assert found.error_code == 0, found.error_message


def try_produce(wire: Wire, topic: str, records: bytes, partition: int = 0) -> Any:
    """Send a batch; the partition's answer."""
    data = [PartitionProduceData(index=partition, records=records)]
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )
    return wire.ask(request, 9).responses[0].partition_responses[0]


def produce(wire: Wire, topic: str, records: bytes, partition: int = 0) -> Any:
    """Append a batch; its base offset."""
    result = try_produce(wire, topic, records, partition)
    assert result.error_code == 0, result.error_message
    return result.base_offset


def fetch(wire: Wire, topic: str, partition: int = 0) -> Any:
    """The answer to a fetch from offset 0 on for the partition."""
    wanted = [FetchPartition(partition=partition, partition_max_bytes=1 << 20)]
    request = FetchRequest(
        max_wait_ms=0,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=wanted)],
    )
    return wire.ask(request, 12).responses[0].partitions[0]


def values(wire: Wire, topic: str, partition: int = 0) -> list[bytes]:
    """The values of all records of the partition."""
    data = fetch(wire, topic, partition)
    assert data.error_code == 0
    return [record.value for found in iter_batches(data.records) for record in found.records()]


def topics(wire: Wire) -> dict[str, Any]:
    """The metadata of all topics by name."""
    return {topic.name: topic for topic in wire.ask(MetadataRequest(topics=None), 12).topics}
