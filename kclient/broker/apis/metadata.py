"""Metadata (3), versions 0 to 13: the broker, topics, and who leads their partitions.

Versions: 0 takes no topics for all; 4 may forbid creation; 8 to 10 can ask for permitted operations; 10 and 12 know
topic ids, 13 has an error for the whole. Behaviour: a topic that does not exist is created if the client allows it
and auto.create.topics.enable is on. Access: DESCRIBE on the topics, CREATE for those that are made.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.resources import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from kclient.broker.broker_context import BrokerContext
from kclient.broker.metadata.image.topics import TopicImage
from kclient.broker.metadata.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import Errors, KafkaError, KafkaStorageError, UnknownTopicOrPartitionError
from kclient.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponsePartition
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def metadata(call: ApiCall, request: MetadataRequest) -> MetadataResponse:
    """Describe the topics that are asked for."""
    broker = call.broker
    if request.topics is None or (call.version == 0 and not request.topics):
        topics = [_describe(broker, topic) for topic in broker.controller.cache.topics()]
    else:
        topics = [_find(call, wanted, request.allow_auto_topic_creation) for wanted in request.topics]
    if request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = TOPIC_OPERATIONS
    endpoint = call.endpoint
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=broker.node_id, host=endpoint.host, port=endpoint.port)],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def _find(call: ApiCall, wanted: MetadataRequestTopic, may_create: bool) -> MetadataResponseTopic:
    cache = call.broker.controller.cache
    if wanted.name is None:
        topic = cache.topic_by_id(wanted.topic_id)
        if topic is None:
            # Before version 12 the response cannot say null.
            name = None if call.version >= 12 else ""
            return MetadataResponseTopic(
                error_code=int(Errors.UNKNOWN_TOPIC_ID), name=name, topic_id=wanted.topic_id
            )
        return _describe(call.broker, topic)
    if wanted.topic_id != Uuid.ZERO and call.version < 12:
        return MetadataResponseTopic(error_code=int(Errors.INVALID_REQUEST), name=wanted.name)
    topic = cache.topic(wanted.name)
    if topic is not None:
        return _describe(call.broker, topic)
    # Only the coordinator makes the topic of offsets: by mere curiosity it would come to be with the wrong
    # settings.
    creatable = may_create and call.broker.config.auto_create_topics_enable
    if wanted.name in INTERNAL_TOPICS and wanted.name != OFFSETS_TOPIC:
        creatable = False
    if not creatable:
        return MetadataResponseTopic(error_code=int(Errors.UNKNOWN_TOPIC_OR_PARTITION), name=wanted.name)
    try:
        return _describe(call.broker, call.broker.controller.create_automatically(wanted.name))
    except KafkaError as error:
        return MetadataResponseTopic(error_code=Errors.code_for(error), name=wanted.name)


def _describe(broker: BrokerContext, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[_partition(broker, tp) for tp in topic.topic_partitions()],
    )


def _partition(broker: BrokerContext, tp: TopicPartition) -> MetadataResponsePartition:
    described = MetadataResponsePartition(partition_index=tp.partition)
    tell_leader(broker, tp, described)
    return described


def tell_leader(
    broker: BrokerContext,
    tp: TopicPartition,
    described: MetadataResponsePartition | DescribeTopicPartitionsResponsePartition,
) -> None:
    """Write into `described` who leads a partition, and if it can."""
    nodes = [broker.node_id]
    described.leader_id = broker.node_id
    described.replica_nodes = described.isr_nodes = nodes
    try:
        partition = broker.replicas.partition(tp)
    except (UnknownTopicOrPartitionError, KafkaStorageError):
        partition = None  # deleted between the look at the topic and this one, or its directory is missing
    if partition is None or partition.log.log_dir.offline_error is not None:
        described.error_code = int(Errors.LEADER_NOT_AVAILABLE)
        described.leader_id = -1
        described.offline_replicas = nodes
    else:
        described.leader_epoch = partition.leader_epoch
