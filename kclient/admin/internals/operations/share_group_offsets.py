"""Places from which share groups go on, a partition each: listed, altered and deleted (KIP-932)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

from kclient.admin.groups import SharePartitionOffsetInfo
from kclient.admin.internals.context import (
    COORDINATOR_MOVED,
    OperationContext,
    accepted_answer_about,
    retry_on_codes,
    said_of_each,
    settle,
    settle_each,
)
from kclient.admin.internals.driver import Target
from kclient.admin.internals.fan_out import RetryOn, ask_coordinators, by_topic
from kclient.admin.internals.steps import Operation
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.futures import KafkaFuture

Starts: TypeAlias = "dict[TopicPartition, SharePartitionOffsetInfo | None]"

_MOVED = retry_on_codes(lambda message: [message], *COORDINATOR_MOVED)


def list_share_group_offsets(
    context: OperationContext, specs: Mapping[str, Collection[TopicPartition] | None]
) -> Operation[dict[str, Starts]]:
    """DescribeShareGroupOffsets, one request to each coordinator; None as value where there is no start yet."""
    from kclient.protocol.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
        DescribeShareGroupOffsetsRequestTopic,
    )

    def wanted(group_id: str) -> DescribeShareGroupOffsetsRequestGroup:
        partitions = specs[group_id]
        topics = (
            None
            if partitions is None
            else [
                DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=numbers)
                for topic, numbers in by_topic(partitions).items()
            ]
        )
        return DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics)

    def ask(coordinator: Target, groups: list[str], retry_on: RetryOn | None) -> KafkaFuture[Any]:
        request = DescribeShareGroupOffsetsRequest(groups=list(map(wanted, groups)))
        return context.call(ApiKeys.DESCRIBE_SHARE_GROUP_OFFSETS, request, coordinator, retry_on)

    def read(_: list[str], answer: Any) -> dict[str, Any]:
        return {
            group.group_id: Errors.for_code(group.error_code, group.error_message) or group
            for group in answer.groups
        }

    retry = retry_on_codes(attrgetter("groups"), *COORDINATOR_MOVED)
    answers = yield from ask_coordinators(context, list(specs), ask, read, retry)
    results: dict[str, Starts] = {}
    errors: dict[str, KafkaError] = {}
    for group_id, answer in answers.items():
        try:
            if isinstance(answer, KafkaError):
                raise answer
            what = f"Listing the offsets of share group {group_id}"
            results[group_id] = settle_each(specs[group_id] or (), _starts(answer), what)
        except KafkaError as error:
            errors[group_id] = error
    return settle(specs, results, errors, "Listing the offsets of share groups")


def _starts(group: Any) -> dict[TopicPartition, SharePartitionOffsetInfo | KafkaError | None]:
    return {
        TopicPartition(topic.topic_name, partition.partition_index): Errors.for_code(
            partition.error_code, partition.error_message
        )
        or _start(partition)
        for topic in group.topics
        for partition in topic.partitions
    }


def _start(partition: Any) -> SharePartitionOffsetInfo | None:
    if partition.start_offset < 0:
        return None
    epoch, lag = partition.leader_epoch, partition.lag
    return SharePartitionOffsetInfo(
        partition.start_offset, epoch if epoch >= 0 else None, lag if lag >= 0 else None
    )


def alter_share_group_offsets(
    context: OperationContext, group_id: str, offsets: Mapping[TopicPartition, int]
) -> Operation[dict[TopicPartition, None]]:
    """AlterShareGroupOffsets at the group's coordinator."""
    from kclient.protocol.messages.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestPartition,
        AlterShareGroupOffsetsRequestTopic,
    )

    request = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[
            AlterShareGroupOffsetsRequestTopic(
                topic_name=topic,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=number, start_offset=offsets[TopicPartition(topic, number)]
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(offsets).items()
        ],
    )
    call = context.call(ApiKeys.ALTER_SHARE_GROUP_OFFSETS, request, Target.of_group(group_id), _MOVED)
    answer = yield from accepted_answer_about(group_id, call, "Altering the offsets")
    said = {
        TopicPartition(topic.topic_name, partition.partition_index): Errors.for_code(
            partition.error_code, partition.error_message
        )
        for topic in answer.responses
        for partition in topic.partitions
    }
    what = f"Altering the offsets of share group {group_id}"
    return settle_each(offsets, said_of_each(offsets, said), what)


def delete_share_group_offsets(
    context: OperationContext, group_id: str, topics: Sequence[str]
) -> Operation[dict[str, None]]:
    """DeleteShareGroupOffsets at the group's coordinator."""
    from kclient.protocol.messages.delete_share_group_offsets import (
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequestTopic,
    )

    request = DeleteShareGroupOffsetsRequest(
        group_id=group_id, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    )
    call = context.call(ApiKeys.DELETE_SHARE_GROUP_OFFSETS, request, Target.of_group(group_id), _MOVED)
    answer = yield from accepted_answer_about(group_id, call, "Deleting offsets")
    said = {
        topic.topic_name: Errors.for_code(topic.error_code, topic.error_message) for topic in answer.responses
    }
    what = f"Deleting offsets of share group {group_id}"
    return settle_each(topics, said_of_each(topics, said), what)
