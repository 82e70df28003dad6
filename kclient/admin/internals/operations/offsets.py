"""Looking up offsets: of partitions at their leaders, of groups at their coordinators."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from kclient.admin.internals.context import (
    COORDINATOR_MOVED,
    OperationContext,
    retry_on_codes,
    settle_each,
)
from kclient.admin.internals.driver import Target
from kclient.admin.internals.fan_out import ask_leaders, by_topic
from kclient.admin.internals.steps import Operation, answer_of
from kclient.admin.types import ListedOffset, OffsetSpec
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kclient.utils.futures import KafkaFuture

if TYPE_CHECKING:
    from kclient.protocol.messages.offset_fetch import OffsetFetchRequest

# Later versions name topics by id, and say nothing of those that were deleted.
_LAST_OFFSET_FETCH_WITH_NAMES = 9

# The first version that can wait for the transactions that have not ended.
_FIRST_STABLE_OFFSET_FETCH = 7

# Before these a broker takes the spec for a time, and answers with the first offset.
_FIRST_VERSIONS: dict[int, int] = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
}


def list_offsets(
    context: OperationContext, specs: Mapping[TopicPartition, int], isolation_level: int
) -> Operation[dict[TopicPartition, ListedOffset]]:
    """ListOffsets at each partition's leader; partitions whose leader moves are tried again."""

    def ask(leader: Target, partitions: list[TopicPartition]) -> KafkaFuture[Any]:
        return context.call(
            ApiKeys.LIST_OFFSETS,
            _request({tp: specs[tp] for tp in partitions}, isolation_level),
            leader,
            min_version=max(_FIRST_VERSIONS.get(specs[tp], 0) for tp in partitions),
        )

    outcomes = yield from ask_leaders(context, list(specs), ask, _read)
    return settle_each(specs, outcomes, "Listing offsets")


def _request(specs: Mapping[TopicPartition, int], isolation_level: int) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=p, timestamp=int(specs[TopicPartition(topic, p)]))
                    for p in partitions
                ],
            )
            for topic, partitions in by_topic(specs).items()
        ],
    )


def _read(answer: Any) -> dict[TopicPartition, ListedOffset | KafkaError]:
    return {
        TopicPartition(topic.name, partition.partition_index): Errors.for_code(partition.error_code)
        or ListedOffset(
            partition.offset,
            partition.timestamp,
            partition.leader_epoch if partition.leader_epoch >= 0 else None,
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


def list_consumer_group_offsets(
    context: OperationContext,
    group_id: str,
    partitions: Collection[TopicPartition] | None,
    require_stable: bool,
) -> Operation[dict[TopicPartition, OffsetAndMetadata | None]]:
    """OffsetFetch at the group's coordinator; None as value where nothing is committed."""
    from kclient.protocol.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopic,
        OffsetFetchRequestTopics,
    )

    wanted = None if partitions is None else by_topic(partitions)

    def build(version: int) -> OffsetFetchRequest:
        if version >= 8:
            topics = None
            if wanted is not None:
                topics = [OffsetFetchRequestTopics(name=t, partition_indexes=p) for t, p in wanted.items()]
            group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
            return OffsetFetchRequest(groups=[group], require_stable=require_stable)
        old = None
        if wanted is not None:
            old = [OffsetFetchRequestTopic(name=t, partition_indexes=p) for t, p in wanted.items()]
        return OffsetFetchRequest(group_id=group_id, topics=old, require_stable=require_stable)

    def body(message: Any) -> Any:
        return message.groups[0] if message.groups else message

    def unsettled(message: Any) -> list[Any]:
        group = body(message)
        return [group, *(partition for topic in group.topics for partition in topic.partitions)]

    answer = yield from answer_of(
        context.call(
            ApiKeys.OFFSET_FETCH,
            build,
            Target.of_group(group_id),
            retry_on_codes(unsettled, *COORDINATOR_MOVED, Errors.UNSTABLE_OFFSET_COMMIT),
            min_version=_FIRST_STABLE_OFFSET_FETCH if require_stable else None,
            max_version=_LAST_OFFSET_FETCH_WITH_NAMES,
        )
    )
    group = body(answer)
    error = Errors.for_code(group.error_code)
    if error is not None:
        raise error
    outcomes = {
        TopicPartition(topic.name, partition.partition_index): Errors.for_code(partition.error_code)
        or _committed(partition)
        for topic in group.topics
        for partition in topic.partitions
    }
    return settle_each(partitions or (), outcomes, f"Listing the offsets of group {group_id}")


def _committed(partition: Any) -> OffsetAndMetadata | None:
    if partition.committed_offset < 0:
        return None
    epoch = partition.committed_leader_epoch
    return OffsetAndMetadata(
        partition.committed_offset, partition.metadata or "", epoch if epoch >= 0 else None
    )
