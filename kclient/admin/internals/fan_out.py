"""Requests to several brokers at once: to all of them, to the leaders of partitions, to the coordinators of groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from kclient.admin.internals.context import OperationContext, said_of_each, settle
from kclient.admin.internals.driver import Role, Target
from kclient.admin.internals.steps import Operation, answer_of
from kclient.common.cluster import PROPAGATION_MS
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    Errors,
    KafkaError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kclient.utils.futures import KafkaFuture

K = TypeVar("K")
V = TypeVar("V")
RetryOn: TypeAlias = Callable[[Any], KafkaError | None]


def by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers per topic, in order."""
    grouped: dict[str, list[int]] = {}
    for tp in sorted(partitions):
        grouped.setdefault(tp.topic, []).append(tp.partition)
    return grouped


def topic_request(names: Sequence[str]) -> MetadataRequest:
    """Metadata of `names` that creates none of them."""
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )


def ask_every_broker(
    context: OperationContext,
    request: Any,
    retry_on: RetryOn,
    *,
    min_version: int | None = None,
) -> Operation[dict[int, Any]]:
    """Send `request` to every broker; its answer, or its error, by the broker's id."""
    metadata = yield from answer_of(context.call(ApiKeys.METADATA, MetadataRequest(topics=[])))
    brokers = [broker.node_id for broker in metadata.brokers]
    answers = yield [
        context.call(
            request.API_KEY, request, Target(Role.NODE, node_id=node_id), retry_on, min_version=min_version
        )
        for node_id in brokers
    ]
    return {
        node_id: answer if isinstance(answer, KafkaError) else Errors.for_code(answer.error_code) or answer
        for node_id, answer in zip(brokers, answers, strict=True)
    }


def settle_brokers(
    answers: Mapping[int, Any], listed: Callable[[int, Any], Mapping[str, V]], what: str
) -> dict[str, V]:
    """Return all that brokers have `listed`, each by its id and its answer; raises as `settle` if one has failed."""
    results: dict[str, V] = {}
    errors: dict[str, KafkaError] = {}
    for node_id, answer in answers.items():
        if isinstance(answer, KafkaError):
            errors[f"broker {node_id}"] = answer
        else:
            results.update(listed(node_id, answer))
    return settle(answers, results, errors, what)


def ask_leaders(
    context: OperationContext,
    partitions: Collection[TopicPartition],
    ask: Callable[[Target, list[TopicPartition]], KafkaFuture[Any]],
    read: Callable[[Any], Mapping[TopicPartition, V | KafkaError]],
) -> Operation[dict[TopicPartition, V | KafkaError]]:
    """`ask` the leader of each partition, and `read` its answer; the outcome by partition.

    Partitions whose leader moves or is not there any more, or that fail for now, are tried again. So is, for
    `PROPAGATION_MS`, what the broker that tells the leaders does not know: it may not have heard of a new topic yet.
    """
    outcomes: dict[TopicPartition, V | KafkaError] = {}
    left, attempt = list(partitions), 0
    propagation = context.timer.time.timer(PROPAGATION_MS)
    while left:
        metadata = yield from answer_of(context.call(ApiKeys.METADATA, topic_request(list(by_topic(left)))))
        per_leader: dict[int, list[TopicPartition]] = {}
        passing: dict[TopicPartition, KafkaError] = {}
        for tp, leader in _leaders(metadata, left).items():
            if not isinstance(leader, KafkaError):
                per_leader.setdefault(leader, []).append(tp)
            elif leader.code == Errors.LEADER_NOT_AVAILABLE or (
                isinstance(leader, UnknownTopicOrPartitionError) and not propagation.is_expired()
            ):
                passing[tp] = leader
            else:
                outcomes[tp] = leader
        answers = yield [ask(Target(Role.LEADER, node_id=leader), tps) for leader, tps in per_leader.items()]
        for tps, answer in zip(per_leader.values(), answers, strict=True):
            for tp, outcome in outcomes_of(answer, tps, read).items():
                if isinstance(outcome, KafkaError) and outcome.retriable:
                    passing[tp] = outcome
                else:
                    outcomes[tp] = outcome
        left = list(passing)
        if left:
            yield context.pause(attempt, f"{left[0]}: {passing[left[0]]}")
            attempt += 1
    return {tp: outcomes[tp] for tp in partitions}


def ask_coordinators(
    context: OperationContext,
    group_ids: Sequence[str],
    ask: Callable[[Target, list[str], RetryOn | None], KafkaFuture[Any]],
    read: Callable[[list[str], Any], Mapping[str, V | KafkaError]],
    retry_on: RetryOn,
) -> Operation[dict[str, V | KafkaError]]:
    """`ask` each coordinator about all of its groups at once, and `read` what it says of them; the outcome by group.

    Groups that fail for now, as their coordinator has moved, are asked for once more and one by one: a call about one
    group follows it to its next coordinator, which `retry_on` is for. So are all if the broker is too old for several.
    """
    outcomes: dict[str, V | KafkaError] = {}
    batches: dict[int, list[str]] = {}
    alone = list(group_ids)
    if len(group_ids) > 1:
        places = yield [context.coordinator(Target.of_group(group_id)) for group_id in group_ids]
        for group_id, place in zip(group_ids, places, strict=True):
            if isinstance(place, KafkaError):
                outcomes[group_id] = place
            else:
                batches.setdefault(place.id, []).append(group_id)
        alone = [batch[0] for batch in batches.values() if len(batch) == 1]
    together = [batch for batch in batches.values() if len(batch) > 1]
    answers = yield [ask(Target.of_group(batch[0]), batch, None) for batch in together]
    for batch, answer in zip(together, answers, strict=True):
        for group_id, outcome in outcomes_of(answer, batch, partial(read, batch)).items():
            if isinstance(outcome, UnsupportedVersionError) or getattr(outcome, "retriable", False):
                alone.append(group_id)
            else:
                outcomes[group_id] = outcome
    answers = yield [ask(Target.of_group(group_id), [group_id], retry_on) for group_id in alone]
    for group_id, answer in zip(alone, answers, strict=True):
        outcomes.update(outcomes_of(answer, [group_id], partial(read, [group_id])))
    return {group_id: outcomes[group_id] for group_id in group_ids}


def outcomes_of(
    answer: Any, asked: Collection[K], read: Callable[[Any], Mapping[K, V | KafkaError]]
) -> dict[K, V | KafkaError]:
    """Part of an answer for each key that was `asked` for; the error of all of them if there was no answer."""
    return (
        dict.fromkeys(asked, answer) if isinstance(answer, KafkaError) else said_of_each(asked, read(answer))
    )


def _leaders(metadata: Any, wanted: Collection[TopicPartition]) -> dict[TopicPartition, int | KafkaError]:
    """The id of each partition's leader, or the reason why it is not known."""
    topics = {topic.name: topic for topic in metadata.topics}
    partitions = {
        TopicPartition(name, each.partition_index): each
        for name, topic in topics.items()
        for each in topic.partitions
    }
    leaders: dict[TopicPartition, int | KafkaError] = {}
    for tp in wanted:
        topic = topics.get(tp.topic)
        if topic is None:
            leaders[tp] = UnknownServerError("The broker was asked for its leader and says nothing of it")
            continue
        partition = partitions.get(tp)
        leaders[tp] = Errors.for_code(topic.error_code) or (
            UnknownTopicOrPartitionError()
            if partition is None
            else Errors.for_code(partition.error_code) or partition.leader_id
        )
    return leaders
