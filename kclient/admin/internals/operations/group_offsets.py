"""Offsets that groups of consumers have committed: listed, altered and deleted at the groups' coordinators."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from kclient.admin.internals.context import (
    COORDINATOR_MOVED,
    OperationContext,
    accepted_answer_about,
    refused,
    retry_on_codes,
    said_of_each,
    settle,
    settle_each,
)
from kclient.admin.internals.driver import Target
from kclient.admin.internals.fan_out import RetryOn, ask_coordinators, by_topic
from kclient.admin.internals.steps import Operation, answer_of
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.futures import KafkaFuture

if TYPE_CHECKING:
    from kclient.protocol.messages.offset_fetch import OffsetFetchRequest

# Later versions name topics by id, and say nothing of those that were deleted.
_LAST_OFFSET_FETCH_WITH_NAMES = 9
_LAST_OFFSET_COMMIT_WITH_NAMES = 9

# The first version that can wait for the transactions that have not ended.
_FIRST_STABLE_OFFSET_FETCH = 7

# The first version that can ask for several groups (KIP-709).
_FIRST_OFFSET_FETCH_OF_SEVERAL = 8

Committed: TypeAlias = "dict[TopicPartition, OffsetAndMetadata | None]"


def list_group_offsets(
    context: OperationContext,
    group_id: str,
    partitions: Collection[TopicPartition] | None,
    require_stable: bool,
) -> Operation[Committed]:
    """OffsetFetch for one group; None as value where nothing is committed."""
    answers = yield from _fetch(context, {group_id: partitions}, require_stable)
    answer = answers[group_id]
    if isinstance(answer, KafkaError):
        raise refused(group_id, answer, "Listing the offsets") if answer.code is not None else answer
    return _settled(group_id, partitions, answer)


def list_groups_offsets(
    context: OperationContext,
    specs: Mapping[str, Collection[TopicPartition] | None],
    require_stable: bool,
) -> Operation[dict[str, Committed]]:
    """OffsetFetch for several groups, one request to each coordinator."""
    answers = yield from _fetch(context, specs, require_stable)
    results: dict[str, Committed] = {}
    errors: dict[str, KafkaError] = {}
    for group_id, answer in answers.items():
        try:
            if isinstance(answer, KafkaError):
                raise answer
            results[group_id] = _settled(group_id, specs[group_id], answer)
        except KafkaError as error:
            errors[group_id] = error
    return settle(specs, results, errors, "Listing the offsets of groups")


def _settled(group_id: str, partitions: Collection[TopicPartition] | None, group: Any) -> Committed:
    outcomes = {
        TopicPartition(topic.name, partition.partition_index): Errors.for_code(partition.error_code)
        or _committed(partition)
        for topic in group.topics
        for partition in topic.partitions
    }
    return settle_each(partitions or (), outcomes, f"Listing the offsets of group {group_id}")


def _fetch(
    context: OperationContext,
    specs: Mapping[str, Collection[TopicPartition] | None],
    require_stable: bool,
) -> Operation[dict[str, Any]]:
    """Answers of the coordinators, of each group as a whole."""
    wanted = {
        group_id: None if partitions is None else by_topic(partitions)
        for group_id, partitions in specs.items()
    }

    def ask(coordinator: Target, groups: list[str], retry_on: RetryOn | None) -> KafkaFuture[Any]:
        least = _FIRST_OFFSET_FETCH_OF_SEVERAL if len(groups) > 1 else None
        return context.call(
            ApiKeys.OFFSET_FETCH,
            lambda version: _request({group: wanted[group] for group in groups}, version, require_stable),
            coordinator,
            retry_on,
            min_version=least or (_FIRST_STABLE_OFFSET_FETCH if require_stable else None),
            max_version=_LAST_OFFSET_FETCH_WITH_NAMES,
        )

    def read(groups: list[str], answer: Any) -> dict[str, Any]:
        # An old broker is asked for one group, and does not repeat its name.
        said = {group.group_id: group for group in answer.groups} or {groups[0]: answer}
        return {
            group_id: _passing_error(group) or Errors.for_code(group.error_code) or group
            for group_id, group in said.items()
        }

    def retry_on(answer: Any) -> KafkaError | None:
        return _passing_error(answer.groups[0] if answer.groups else answer)

    return (yield from ask_coordinators(context, list(specs), ask, read, retry_on))


_passing_error = retry_on_codes(
    lambda group: [group, *(partition for topic in group.topics for partition in topic.partitions)],
    *COORDINATOR_MOVED,
    Errors.UNSTABLE_OFFSET_COMMIT,
)


def _request(
    wanted: Mapping[str, Mapping[str, list[int]] | None], version: int, require_stable: bool
) -> OffsetFetchRequest:
    from kclient.protocol.messages.offset_fetch import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopic,
        OffsetFetchRequestTopics,
    )

    if version >= _FIRST_OFFSET_FETCH_OF_SEVERAL:
        groups = [
            OffsetFetchRequestGroup(
                group_id=group_id,
                topics=None
                if topics is None
                else [OffsetFetchRequestTopics(name=t, partition_indexes=p) for t, p in topics.items()],
            )
            for group_id, topics in wanted.items()
        ]
        return OffsetFetchRequest(groups=groups, require_stable=require_stable)
    ((group_id, only),) = wanted.items()
    old = (
        None
        if only is None
        else [OffsetFetchRequestTopic(name=t, partition_indexes=p) for t, p in only.items()]
    )
    return OffsetFetchRequest(group_id=group_id, topics=old, require_stable=require_stable)


def _committed(partition: Any) -> OffsetAndMetadata | None:
    if partition.committed_offset < 0:
        return None
    epoch = partition.committed_leader_epoch
    return OffsetAndMetadata(
        partition.committed_offset, partition.metadata or "", epoch if epoch >= 0 else None
    )


def alter_group_offsets(
    context: OperationContext, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> Operation[dict[TopicPartition, None]]:
    """OffsetCommit in nobody's name, which a group takes while it has no members."""
    from kclient.protocol.messages.offset_commit import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )

    def committed(tp: TopicPartition) -> OffsetCommitRequestPartition:
        offset = offsets[tp]
        return OffsetCommitRequestPartition(
            partition_index=tp.partition,
            committed_offset=offset.offset,
            committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
            committed_metadata=offset.metadata,
        )

    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic, partitions=[committed(TopicPartition(topic, number)) for number in numbers]
            )
            for topic, numbers in by_topic(offsets).items()
        ],
    )

    def partitions(answer: Any) -> list[Any]:
        return [partition for topic in answer.topics for partition in topic.partitions]

    answer = yield from answer_of(
        context.call(
            ApiKeys.OFFSET_COMMIT,
            request,
            Target.of_group(group_id),
            retry_on_codes(partitions, *COORDINATOR_MOVED),
            max_version=_LAST_OFFSET_COMMIT_WITH_NAMES,
        )
    )
    outcomes = said_of_each(offsets, _errors(answer))
    return settle_each(offsets, outcomes, f"Altering the offsets of group {group_id}")


def delete_group_offsets(
    context: OperationContext, group_id: str, partitions: Collection[TopicPartition]
) -> Operation[dict[TopicPartition, None]]:
    """OffsetDelete (KIP-496)."""
    from kclient.protocol.messages.offset_delete import (
        OffsetDeleteRequest,
        OffsetDeleteRequestPartition,
        OffsetDeleteRequestTopic,
    )

    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers],
            )
            for topic, numbers in by_topic(partitions).items()
        ],
    )
    retry = retry_on_codes(lambda message: [message], *COORDINATOR_MOVED)
    call = context.call(ApiKeys.OFFSET_DELETE, request, Target.of_group(group_id), retry)
    answer = yield from accepted_answer_about(group_id, call, "Deleting offsets")
    outcomes = said_of_each(partitions, _errors(answer))
    return settle_each(partitions, outcomes, f"Deleting offsets of group {group_id}")


def _errors(answer: Any) -> dict[TopicPartition, KafkaError | None]:
    return {
        TopicPartition(topic.name, partition.partition_index): Errors.for_code(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }
