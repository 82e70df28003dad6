"""OffsetCommit and OffsetFetch requests of a consumer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.requests import Offsets
from kclient.protocol.messages import offset_commit, offset_fetch

LAST_VERSION_WITH_NAMES: Final = 9
"""Of both requests; newer ones have ids, and names no more."""
_FIRST_FETCH_VERSION_WITH_GROUPS: Final = 8
_FIRST_FETCH_VERSION_WITH_STABLE: Final = 7
_FIRST_FETCH_VERSION_WITH_MEMBERS: Final = 9

TopicIds = Mapping[str, Uuid | None]


def commit_request(
    group_id: str, group_instance_id: str | None, generation: Generation, offsets: Offsets, ids: TopicIds
) -> offset_commit.OffsetCommitRequest:
    """Return the request that commits `offsets`, of topics with `ids` as far as they are known."""
    topics: dict[str, offset_commit.OffsetCommitRequestTopic] = {}
    for tp, offset in offsets.items():
        topic = topics.get(tp.topic)
        if topic is None:
            topic = topics[tp.topic] = offset_commit.OffsetCommitRequestTopic(
                name=tp.topic, topic_id=ids[tp.topic] or Uuid.ZERO
            )
        topic.partitions.append(
            offset_commit.OffsetCommitRequestPartition(
                partition_index=tp.partition,
                committed_offset=offset.offset,
                committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    return offset_commit.OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation.id,
        member_id=generation.member_id,
        group_instance_id=group_instance_id,
        topics=list(topics.values()),
    )


def lookup_request(
    group_id: str,
    generation: Generation | None,
    partitions: Iterable[TopicPartition],
    ids: TopicIds,
    version: int,
) -> offset_fetch.OffsetFetchRequest:
    """Return the request for what is committed of `partitions`.

    Offsets that a transaction may still change are waited for (KIP-447), where the broker can tell.
    """
    by_topic: dict[str, list[int]] = {}
    for tp in sorted(partitions):
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    stable = version >= _FIRST_FETCH_VERSION_WITH_STABLE
    if version < _FIRST_FETCH_VERSION_WITH_GROUPS:
        return offset_fetch.OffsetFetchRequest(
            group_id=group_id,
            topics=[
                offset_fetch.OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                for name, numbers in by_topic.items()
            ],
            require_stable=stable,
        )
    topics = [
        offset_fetch.OffsetFetchRequestTopics(
            name=name, topic_id=ids[name] or Uuid.ZERO, partition_indexes=numbers
        )
        for name, numbers in by_topic.items()
    ]
    group = offset_fetch.OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    if generation is not None and version >= _FIRST_FETCH_VERSION_WITH_MEMBERS:
        group.member_id, group.member_epoch = generation.member_id, generation.id
    return offset_fetch.OffsetFetchRequest(groups=[group], require_stable=stable)
