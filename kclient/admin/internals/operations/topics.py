"""Creating, deleting, listing and describing topics, and the cluster they live in."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from kclient.admin.internals.context import OperationContext, retry_on_codes, settle_each
from kclient.admin.internals.driver import Role, Target
from kclient.admin.internals.fan_out import topic_request
from kclient.admin.internals.quota_retries import change_topics
from kclient.admin.internals.steps import Operation, answer_of
from kclient.admin.types import ClusterDescription, CreatedTopic, NewTopic, TopicDescription, TopicListing
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.utils.futures import KafkaFuture

if TYPE_CHECKING:
    from kclient.protocol.messages.create_topics import CreatableTopic
    from kclient.protocol.messages.delete_topics import DeleteTopicsRequest

_CONTROLLER = Target(Role.CONTROLLER)


def create_topics(
    context: OperationContext,
    topics: Sequence[NewTopic],
    validate_only: bool,
    retry_on_quota_violation: bool,
) -> Operation[dict[str, CreatedTopic]]:
    """CreateTopics at the controller."""
    from kclient.protocol.messages.create_topics import CreateTopicsRequest

    def submit(names: Sequence[str], delay_ms: int) -> KafkaFuture[Any]:
        wanted = set(names)
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics if topic.name in wanted],
            timeout_ms=context.timer.remaining_ms(),
            validate_only=validate_only,
        )
        moved = retry_on_codes(attrgetter("topics"), Errors.NOT_CONTROLLER)
        return context.call(ApiKeys.CREATE_TOPICS, request, _CONTROLLER, moved, delay_ms=delay_ms)

    def outcomes_of(answer: Any) -> dict[str, CreatedTopic | KafkaError]:
        return {
            topic.name: Errors.for_code(topic.error_code, topic.error_message)
            or CreatedTopic(topic.name, topic.topic_id, topic.num_partitions, topic.replication_factor)
            for topic in answer.topics
        }

    names = [topic.name for topic in topics]
    outcomes = yield from change_topics(context, names, submit, outcomes_of, retry_on_quota_violation)
    return settle_each(topics, outcomes, "Creating topics")


def _creatable(topic: NewTopic) -> CreatableTopic:
    from kclient.protocol.messages.create_topics import (
        CreatableReplicaAssignment,
        CreatableTopic,
        CreatableTopicConfig,
    )

    assignments = topic.replica_assignments or {}
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.num_partitions is None else topic.num_partitions,
        replication_factor=-1 if topic.replication_factor is None else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in sorted(assignments.items())
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def delete_topics(
    context: OperationContext, names: Sequence[str], retry_on_quota_violation: bool
) -> Operation[dict[str, None]]:
    """DeleteTopics at the controller."""
    from kclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

    def submit(names: Sequence[str], delay_ms: int) -> KafkaFuture[Any]:
        timeout_ms = context.timer.remaining_ms()

        def build(version: int) -> DeleteTopicsRequest:
            if version >= 6:
                return DeleteTopicsRequest(
                    topics=[DeleteTopicState(name=name) for name in names], timeout_ms=timeout_ms
                )
            return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)

        moved = retry_on_codes(attrgetter("responses"), Errors.NOT_CONTROLLER)
        return context.call(ApiKeys.DELETE_TOPICS, build, _CONTROLLER, moved, delay_ms=delay_ms)

    def outcomes_of(answer: Any) -> dict[str, KafkaError | None]:
        return {
            topic.name: Errors.for_code(topic.error_code, topic.error_message) for topic in answer.responses
        }

    outcomes = yield from change_topics(context, names, submit, outcomes_of, retry_on_quota_violation)
    return settle_each(names, outcomes, "Deleting topics")


def list_topics(context: OperationContext, include_internal: bool) -> Operation[dict[str, TopicListing]]:
    """Every topic that the client may see."""

    def build(version: int) -> MetadataRequest:
        # Version 0 asks for everything with an empty list; null came with version 1.
        return MetadataRequest(topics=[] if version == 0 else None, allow_auto_topic_creation=True)

    answer = yield from answer_of(context.call(ApiKeys.METADATA, build))
    return {
        topic.name: TopicListing(topic.name, topic.topic_id, topic.is_internal)
        for topic in answer.topics
        if include_internal or not topic.is_internal
    }


def describe_topics(
    context: OperationContext, names: Sequence[str]
) -> Operation[dict[str, TopicDescription]]:
    """Partitions, leaders and replicas of topics."""
    outcomes: dict[str, TopicDescription | KafkaError] = {}
    left, attempt = list(names), 0
    while left:
        answer = yield from answer_of(context.call(ApiKeys.METADATA, topic_request(left)))
        nodes = {broker.node_id: _node(broker) for broker in answer.brokers}
        left = []
        for topic in answer.topics:
            if topic.error_code == Errors.LEADER_NOT_AVAILABLE:
                left.append(topic.name)  # just being created; the leader comes within moments
            else:
                outcomes[topic.name] = Errors.for_code(topic.error_code) or _description(topic, nodes)
        if left:
            yield context.pause(attempt)
            attempt += 1
    return settle_each(names, outcomes, "Describing topics")


def _node(broker: Any) -> Node:
    return Node(broker.node_id, broker.host, broker.port, broker.rack)


def _description(topic: Any, nodes: dict[int, Node]) -> TopicDescription:
    def known(ids: list[int]) -> tuple[Node, ...]:
        # A replica whose broker is away is not among the brokers; it is still worth showing by its id.
        return tuple(nodes.get(node_id) or Node(node_id, "", -1) for node_id in ids)

    partitions = [
        PartitionInfo(
            topic.name,
            partition.partition_index,
            nodes.get(partition.leader_id),
            known(partition.replica_nodes),
            known(partition.isr_nodes),
            known(partition.offline_replicas),
            partition.leader_epoch if partition.leader_epoch >= 0 else None,
        )
        for partition in sorted(topic.partitions, key=lambda entry: int(entry.partition_index))
    ]
    return TopicDescription(topic.name, tuple(partitions), topic.topic_id, topic.is_internal)


def describe_cluster(context: OperationContext) -> Operation[ClusterDescription]:
    """Brokers and controller."""
    answer = yield from answer_of(context.call(ApiKeys.METADATA, MetadataRequest(topics=[])))
    nodes = {broker.node_id: _node(broker) for broker in answer.brokers}
    return ClusterDescription(answer.cluster_id, tuple(nodes.values()), nodes.get(answer.controller_id))
