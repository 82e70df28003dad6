"""Looking up offsets of partitions, at their leaders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kclient.admin.internals.context import OperationContext, settle_each
from kclient.admin.internals.driver import Target
from kclient.admin.internals.fan_out import ask_leaders, by_topic
from kclient.admin.internals.steps import Operation
from kclient.admin.types import ListedOffset, OffsetSpec
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kclient.utils.futures import KafkaFuture

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
