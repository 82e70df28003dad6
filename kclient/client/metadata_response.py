"""The contents of a metadata answer, after the rules for stale leader epochs and recreated topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import attrs

from kclient.client.metadata_snapshot import MetadataSnapshot, PartitionMetadata
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaError
from kclient.errors.codes import Errors
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_Description: TypeAlias = tuple[int, int | None, tuple[int, ...], tuple[int, ...], tuple[int, ...]]


@attrs.define(eq=False)
class EpochMemory:
    """The newest leader epoch seen of each partition, and the topic id it belongs to. Guarded by its owner's
    lock.

    It outlives the picture: a topic that is missing from one answer must not come back with an older leader. So do
    the descriptions of the last answer: many partitions have the same, and most of them have it again next time.
    """

    epochs: dict[TopicPartition, int] = attrs.field(factory=dict)
    topic_ids: dict[str, Uuid] = attrs.field(factory=dict)
    descriptions: dict[_Description, PartitionMetadata] = attrs.field(factory=dict)

    def begin_topics(self, topic_ids: Mapping[str, Uuid]) -> None:
        """An answer speaks of these topics; with another id one is another topic, and its epochs begin anew."""
        renewed = {
            topic for topic, its_id in topic_ids.items() if self.topic_ids.get(topic, its_id) != its_id
        }
        if renewed:
            for tp in [tp for tp in self.epochs if tp.topic in renewed]:
                del self.epochs[tp]
        self.topic_ids.update(topic_ids)

    def accepts(self, tp: TopicPartition, epoch: int | None) -> bool:
        """True, remembering the epoch, unless a newer one was seen. A broker without epochs is believed."""
        if epoch is None:
            self.epochs.pop(tp, None)
            return True
        if epoch < self.epochs.get(tp, -1):
            return False
        self.epochs[tp] = epoch
        return True


@attrs.frozen(eq=False)
class Picture:
    """An answer's snapshot, the topics it speaks of, and those to ask for again with the reason."""

    snapshot: MetadataSnapshot
    answered: frozenset[str]
    stale_topics: dict[str, KafkaError]


def read_response(response: MetadataResponse, before: MetadataSnapshot, memory: EpochMemory) -> Picture:
    """The picture that `response` gives; what is older than `before`, or not known now, is as before."""
    partitions: dict[TopicPartition, PartitionMetadata] = {}
    topic_ids = {
        topic.name: topic.topic_id
        for topic in response.topics
        if topic.name is not None and not topic.error_code and topic.topic_id != Uuid.ZERO
    }
    memory.begin_topics(topic_ids)
    last, memory.descriptions = memory.descriptions, {}
    stale: dict[str, KafkaError] = {}
    kept: set[str] = set()
    answered, internal, invalid, unauthorized, missing = set(), set(), set(), set(), set()
    for topic in response.topics:
        name = topic.name
        if name is None:
            continue
        answered.add(name)
        error = Errors.for_code(topic.error_code)
        if error is None:
            if topic.is_internal:
                internal.add(name)
            partitions.update(_partitions(topic, name, before, memory, last, stale))
        elif topic.error_code == Errors.INVALID_TOPIC_EXCEPTION:
            invalid.add(name)
        elif topic.error_code == Errors.TOPIC_AUTHORIZATION_FAILED:
            unauthorized.add(name)
        elif error.invalid_metadata:
            stale[name] = error
            if topic.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION:
                missing.add(name)
                continue
            kept.add(name)
            if name in before.topic_ids:
                topic_ids[name] = before.topic_ids[name]
    if kept:
        partitions.update((tp, p) for tp, p in before.partitions.items() if tp.topic in kept)
    snapshot = MetadataSnapshot(
        response.cluster_id,
        {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in response.brokers},
        partitions,
        topic_ids,
        response.controller_id,
        frozenset(internal),
        frozenset(invalid),
        frozenset(unauthorized),
        frozenset(missing),
    )
    return Picture(snapshot, frozenset(answered), stale)


def _partitions(
    topic: MetadataResponseTopic,
    name: str,
    before: MetadataSnapshot,
    memory: EpochMemory,
    last: Mapping[_Description, PartitionMetadata],
    stale: dict[str, KafkaError],
) -> Iterator[tuple[TopicPartition, PartitionMetadata]]:
    for partition in topic.partitions:
        tp = TopicPartition(name, partition.partition_index)
        if partition.error_code:
            error = Errors.for_code(partition.error_code)
            if error is not None and error.invalid_metadata:
                stale[name] = error
        epoch = partition.leader_epoch if partition.leader_epoch >= 0 else None
        if memory.accepts(tp, epoch):
            description = _description(partition, epoch)
            found = memory.descriptions.get(description)
            if found is None:
                found = last.get(description) or PartitionMetadata(*description)
                memory.descriptions[description] = found
            yield tp, found
        elif tp in before.partitions:
            yield tp, before.partitions[tp]


def _description(partition: MetadataResponsePartition, epoch: int | None) -> _Description:
    return (
        partition.leader_id,
        epoch,
        tuple(partition.replica_nodes),
        tuple(partition.isr_nodes),
        tuple(partition.offline_replicas),
    )
