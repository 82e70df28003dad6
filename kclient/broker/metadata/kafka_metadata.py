"""KafkaMetadata: the metadata in a log that Kafka wrote, as this broker takes it over.

Kafka's log stays as it is. What it says of topics decides on the directories that are found; what else it says (quotas,
access rules, passwords, settings of brokers) becomes records of this broker's own log.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from kclient.broker.log.config import LogConfig
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.topics import TopicImage
from kclient.broker.metadata.metadata_directory import find_foreign_logs
from kclient.broker.metadata.metadata_store import MetadataStore
from kclient.broker.metadata.recovered_topic import RecoveredTopic
from kclient.errors import InvalidConfigurationError, KafkaStorageError
from kclient.protocol.messages.metadata_records import ConfigRecord
from kclient.protocol.schema import Message
from kclient.utils.time import Time

log = logging.getLogger(__name__)

_RETENTION = "retention.ms"
_BROKER_RETENTION_MS = {
    "log.retention.hours": 3_600_000,
    "log.retention.minutes": 60_000,
    "log.retention.ms": 1,
}
_ALL_BROKERS = ""


@attrs.frozen
class KafkaMetadata:
    """The metadata of a Kafka at the valid end of its log. Immutable."""

    directory: Path
    """The directory of its log."""
    image: MetadataImage

    @classmethod
    def read(cls, places: Sequence[Path], time: Time) -> KafkaMetadata | None:
        """Read the log that is in one of the directories, the longest if there are several; None if there is none.

        Changes nothing. Raises KafkaStorageError for a log that is damaged before its end, or of something newer.
        """
        stores = []
        for directory in find_foreign_logs(places):
            try:
                stores.append(MetadataStore(directory, time, snapshot_bytes=sys.maxsize))
            except KafkaStorageError as error:
                raise KafkaStorageError(
                    f"The metadata log of the Kafka that wrote this cannot be read: {error}. Move {directory} away to "
                    "take its topics without their settings"
                ) from error
        store = max(stores, key=lambda store: store.end_offset, default=None)
        return None if store is None or not store.found else cls(store.directory, store.image)

    def topics(self, node_id: int) -> list[RecoveredTopic]:
        """The topics as broker `node_id` has them. Settings that it does not know are left out."""
        return [self._topic(topic, node_id) for topic in self.image.topics.by_name.values()]

    def records(self, node_id: int) -> Iterator[Message]:
        """The records of all that is no topic's: producer ids, quotas, access rules, passwords, and the settings that
        broker `node_id` has, or others than brokers.
        """
        image = self.image
        yield from image.producer_ids.records()
        yield from image.client_quotas.records()
        yield from image.acls.records()
        yield from image.scram.records()
        for record in image.configs.records():
            if isinstance(record, ConfigRecord) and _is_ours(record, node_id):
                yield record

    def left_out(self) -> dict[str, list[str]]:
        """The names of settings that this broker does not know, or not with these values, by topic."""
        named = {name: self._settings(name) for name in self.image.topics.by_name}
        return {
            name: sorted(left)
            for name, settings in named.items()
            if (left := self.image.configs.of(ResourceType.TOPIC, name).keys() - settings)
        }

    def retention_ms(self) -> str:
        """The retention.ms of topics that have none of their own, as far as the metadata says; "-1" if it does not."""
        settings = self.image.configs.of(ResourceType.BROKER, _ALL_BROKERS)
        found = -1
        for name, unit_ms in _BROKER_RETENTION_MS.items():
            value = settings.get(name, "")
            if value.isdecimal():
                found = int(value) * unit_ms
        return str(found)

    def _topic(self, topic: TopicImage, node_id: int) -> RecoveredTopic:
        return RecoveredTopic(
            topic.name,
            topic.id,
            topic.partition_count,
            self._settings(topic.name),
            tuple(partition.directory_of(node_id) for partition in topic.partitions),
            tuple(partition.leader_epoch for partition in topic.partitions),
            sum(node_id not in partition.replicas for partition in topic.partitions),
        )

    def _settings(self, topic: str) -> Mapping[str, str]:
        return {
            name: value
            for name, value in self.image.configs.of(ResourceType.TOPIC, topic).items()
            if _is_known(name, value)
        }


def with_kept_records(topic: RecoveredTopic, defaults: LogConfig, retention_ms: str) -> RecoveredTopic:
    """The topic with a retention.ms of its own, if it has none and old records are deleted from it.

    What was the default is in Kafka's server.properties and not in its metadata: this broker's could delete what that
    one kept. Raises InvalidConfigurationError.
    """
    config = LogConfig.from_topic_configs(topic.configs, defaults)
    if _RETENTION in topic.configs or not config.delete:
        return topic
    return attrs.evolve(topic, configs={**topic.configs, _RETENTION: retention_ms})


def _is_known(name: str, value: str) -> bool:
    try:
        LogConfig.from_topic_configs({name: value})
    except InvalidConfigurationError:
        return False
    return True


def _is_ours(record: ConfigRecord, node_id: int) -> bool:
    if record.resource_type == ResourceType.BROKER:
        return record.resource_name in {_ALL_BROKERS, str(node_id)}
    return record.resource_type != ResourceType.TOPIC
