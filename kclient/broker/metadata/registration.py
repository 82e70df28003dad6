"""The records of a broker that starts: its registration, its topics, and a new leader epoch for all it leads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.image.features import MAX_PRODUCER_ID, METADATA_VERSION_FEATURE
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.partition import NO_LEADER, PartitionImage
from kclient.broker.metadata.metadata_store import FORMAT_FEATURE, FORMAT_LEVEL
from kclient.broker.metadata.record_serde import METADATA_VERSION
from kclient.broker.metadata.recovered_topic import RecoveredTopic
from kclient.broker.network.listener import SECURITY_PROTOCOLS, Listener
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError
from kclient.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from kclient.protocol.schema import Message

DIRECTORIES_SETTING = "kclient.log.directories"
"""The setting of a broker, in its metadata, that has the paths of its log directories by their ids: Kafka's records
have a place for the ids alone. It is no setting that anybody sets."""


def remembered_directories(image: MetadataImage, node_id: int) -> dict[Uuid, str]:
    """The paths of a broker's log directories when they were last seen. Raises KafkaStorageError."""
    text = image.configs.of(ResourceType.BROKER, str(node_id)).get(DIRECTORIES_SETTING, "{}")
    try:
        return {Uuid.from_base64(known): str(path) for known, path in json.loads(text).items()}
    except (ValueError, AttributeError) as error:
        raise KafkaStorageError(
            f"{DIRECTORIES_SETTING} in the metadata log is not readable: {error}"
        ) from error


def starting_records(
    image: MetadataImage,
    node_id: int,
    broker_epoch: int,
    listeners: Iterable[Listener],
    topics: Iterable[RecoveredTopic],
    logs: LogManager,
    inherited: Sequence[Message] = (),
) -> Iterator[Message]:
    """The records of a start, as one change: the broker with its directories, and its partitions in new epochs.

    `listeners` have the addresses that clients are told. `topics` are all there are, with the directory of each
    partition. `inherited` is what else another cluster's metadata said.
    """
    live = logs.directory_places()
    if FORMAT_FEATURE not in image.features.levels:
        yield FeatureLevelRecord(name=METADATA_VERSION_FEATURE, feature_level=METADATA_VERSION)
        yield FeatureLevelRecord(name=FORMAT_FEATURE, feature_level=FORMAT_LEVEL)
        # Of producers that are known from adopted logs no id may be given to another one.
        known = max(
            (one.producer_id for each in logs.all_logs() for one in each.producer_states()), default=-1
        )
        known = max(
            [known, *(one.next_producer_id - 1 for one in inherited if isinstance(one, ProducerIdsRecord))]
        )
        if 0 <= known < MAX_PRODUCER_ID:
            yield ProducerIdsRecord(broker_id=node_id, broker_epoch=broker_epoch, next_producer_id=known + 1)
        yield from (one for one in inherited if not isinstance(one, ProducerIdsRecord))
    yield RegisterBrokerRecord(
        broker_id=node_id,
        incarnation_id=Uuid.random(),
        broker_epoch=broker_epoch,
        end_points=_endpoints(listeners),
        features=[
            BrokerFeature(
                name=METADATA_VERSION_FEATURE,
                min_supported_version=METADATA_VERSION,
                max_supported_version=METADATA_VERSION,
            )
        ],
        rack=None,
        fenced=False,
        log_dirs=list(live),
    )
    yield from _directories_record(image, node_id, live)
    for topic in topics:
        yield from _topic_records(image, node_id, topic, live, logs)


def _endpoints(listeners: Iterable[Listener]) -> list[BrokerEndpoint]:
    """Return the listeners as the metadata has them, where each has a name of its own."""
    endpoints: list[BrokerEndpoint] = []
    for number, listener in enumerate(listeners):
        taken = any(listener.name == each.name for each in endpoints)
        endpoints.append(
            BrokerEndpoint(
                name=f"{listener.name}-{number}" if taken else listener.name,
                host=listener.endpoint.host,
                port=listener.endpoint.port,
                security_protocol=SECURITY_PROTOCOLS.index(listener.security_protocol),
            )
        )
    return endpoints


def _directories_record(image: MetadataImage, node_id: int, live: Mapping[Uuid, str]) -> Iterator[Message]:
    before = remembered_directories(image, node_id)
    places = set(live.values())
    after = {known: path for known, path in before.items() if path not in places} | dict(live)
    if after != before:
        yield ConfigRecord(
            resource_type=ResourceType.BROKER,
            resource_name=str(node_id),
            name=DIRECTORIES_SETTING,
            value=json.dumps({str(known): path for known, path in after.items()}, separators=(",", ":")),
        )


def _topic_records(
    image: MetadataImage, node_id: int, topic: RecoveredTopic, live: Mapping[Uuid, str], logs: LogManager
) -> Iterator[Message]:
    known = image.topics.by_id.get(topic.id)
    if known is None:
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        for name, value in topic.configs.items():
            yield ConfigRecord(
                resource_type=ResourceType.TOPIC, resource_name=topic.name, name=name, value=value
            )
    partitions: Sequence[PartitionImage] = () if known is None else known.partitions
    places = zip_longest(partitions, topic.directories, topic.leader_epochs)
    for number, (partition, directory, former_epoch) in enumerate(places):
        log = logs.get_log(TopicPartition(topic.name, number))
        latest = None if log is None else log.latest_epoch
        next_in_log = max(-1 if each is None else each for each in (latest, former_epoch)) + 1
        leader = node_id if directory in live else NO_LEADER
        if partition is None:
            yield partition_record(
                topic.id, number, node_id, directory, leader=leader, leader_epoch=next_in_log
            )
        elif next_in_log > partition.leader_epoch + 1:
            # The log knows more than the metadata, which came from elsewhere: its epochs are not given out again.
            yield partition_record(
                topic.id, number, node_id, directory,
                leader=leader, leader_epoch=next_in_log, partition_epoch=partition.partition_epoch + 1,
            )  # fmt: skip
        elif leader != NO_LEADER or partition.leader != NO_LEADER:
            yield PartitionChangeRecord(
                partition_id=number,
                topic_id=topic.id,
                leader=leader,
                directories=None if partition.directory_of(node_id) == directory else [directory],
            )


def partition_record(
    topic_id: Uuid,
    number: int,
    node_id: int,
    directory: Uuid,
    *,
    leader: int,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
) -> PartitionRecord:
    """The record of a partition whose one replica is this broker's."""
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=[node_id],
        isr=[node_id],
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        directories=[directory],
    )
