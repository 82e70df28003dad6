"""Metadata (3), versions 0 to 13: the broker, topics, and who leads their partitions.

Versions: 0 takes no topics for all; 4 may forbid creation; 8 to 10 can ask for permitted operations; 10 and 12 know
topic ids, 13 has an error for the whole. Behaviour: a topic that does not exist is created if the client allows it
and auto.create.topics.enable is on. Access: DESCRIBE on the topics; of all topics those are told that the client may
see. CREATE on the cluster or the topics that are made. DESCRIBE on the cluster for being told what else the client may
do with it.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.broker_context import BrokerContext
from kclient.broker.metadata.image.topics import TopicImage
from kclient.broker.metadata.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    Errors,
    KafkaError,
    KafkaStorageError,
    ThrottlingQuotaExceededError,
    UnknownTopicOrPartitionError,
)
from kclient.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponsePartition
from kclient.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_HIDDEN = {Errors.TOPIC_AUTHORIZATION_FAILED, Errors.UNKNOWN_TOPIC_ID}


def metadata(call: ApiCall, request: MetadataRequest) -> MetadataResponse:
    """Describe the topics that are asked for."""
    broker = call.broker
    if request.topics is None or (call.version == 0 and not request.topics):
        every = broker.controller.cache.topics()
        visible = call.authorized_names(
            AclOperation.DESCRIBE, ResourceType.TOPIC, (topic.name for topic in every), log_denied=False
        )
        topics = [_describe(broker, topic) for topic in every if topic.name in visible]
    else:
        topics = [_find(call, wanted, request.allow_auto_topic_creation) for wanted in request.topics]
    if request.include_topic_authorized_operations:
        for described in topics:
            if described.error_code not in _HIDDEN and described.name:
                described.topic_authorized_operations = call.authorized_operations(
                    ResourceType.TOPIC, described.name
                )
    endpoint = call.endpoint
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=broker.node_id, host=endpoint.host, port=endpoint.port)],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = call.authorized_cluster_operations()
    return response


def _find(call: ApiCall, wanted: MetadataRequestTopic, may_create: bool) -> MetadataResponseTopic:
    cache = call.broker.controller.cache
    if wanted.name is None:
        # Before version 12 the response cannot say null.
        nameless = None if call.version >= 12 else ""
        topic = cache.topic_by_id(wanted.topic_id)
        if topic is None:
            return MetadataResponseTopic(
                error_code=int(Errors.UNKNOWN_TOPIC_ID), name=nameless, topic_id=wanted.topic_id
            )
        if not call.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
            # Whoever knows the id may know that there is a topic, but not its name.
            return MetadataResponseTopic(
                error_code=int(Errors.TOPIC_AUTHORIZATION_FAILED), name=nameless, topic_id=wanted.topic_id
            )
        return _describe(call.broker, topic)
    if wanted.topic_id != Uuid.ZERO and call.version < 12:
        return MetadataResponseTopic(error_code=int(Errors.INVALID_REQUEST), name=wanted.name)
    if not call.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, wanted.name):
        # Before it is looked for: those who may not see it are not told that there is none.
        return MetadataResponseTopic(error_code=int(Errors.TOPIC_AUTHORIZATION_FAILED), name=wanted.name)
    topic = cache.topic(wanted.name)
    if topic is not None:
        return _describe(call.broker, topic)
    # Only the coordinator makes the topic of offsets: by mere curiosity it would come to be with the wrong
    # settings.
    creatable = may_create and call.broker.config.auto_create_topics_enable
    if creatable and not _may_create(call, wanted.name):
        return MetadataResponseTopic(
            error_code=int(Errors.TOPIC_AUTHORIZATION_FAILED),
            name=wanted.name,
            is_internal=wanted.name in INTERNAL_TOPICS,
        )
    if wanted.name in INTERNAL_TOPICS and wanted.name != OFFSETS_TOPIC:
        creatable = False
    if not creatable:
        return MetadataResponseTopic(error_code=int(Errors.UNKNOWN_TOPIC_OR_PARTITION), name=wanted.name)
    try:
        charge = call.mutation_quota(strict_since=0).charge
        return _describe(call.broker, call.broker.controller.create_automatically(wanted.name, charge=charge))
    except ThrottlingQuotaExceededError:
        # As Kafka, where another broker makes the topic: so far there is none.
        return MetadataResponseTopic(error_code=int(Errors.UNKNOWN_TOPIC_OR_PARTITION), name=wanted.name)
    except KafkaError as error:
        return MetadataResponseTopic(error_code=Errors.code_for(error), name=wanted.name)


def _may_create(call: ApiCall, name: str) -> bool:
    return call.authorized(AclOperation.CREATE, ResourceType.CLUSTER, log_denied=False) or call.authorized(
        AclOperation.CREATE, ResourceType.TOPIC, name
    )


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
