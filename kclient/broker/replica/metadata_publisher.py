"""ReplicaMetadataPublisher: what the metadata says of this broker's partitions is made true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from kclient.broker.log.config import LogConfig
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.topics import TopicImage
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError
from kclient.utils.log_context import LogContext


@attrs.frozen
class _Offline:
    tp: TopicPartition
    directory: Uuid
    error: KafkaStorageError


class ReplicaMetadataPublisher:
    """Leads, configures and deletes partitions. Called by the controller, one change at a time."""

    def __init__(
        self,
        replicas: ReplicaManager,
        node_id: int,
        log_defaults: LogConfig,
        log_context: LogContext,
        on_files_removed: Callable[[Uuid], None],
    ) -> None:
        """`on_files_removed(topic_id)` is called when there is nothing left of a deleted topic."""
        self._replicas = replicas
        self._node_id = node_id
        self._log_defaults = log_defaults
        self._log = log_context.logger(__name__)
        self._on_files_removed = on_files_removed

    def lead_all(self, image: MetadataImage) -> None:
        """Lead every partition there is. Those whose log directory is missing are offline. Raises KafkaStorageError
        for others that cannot be led.
        """
        offline: dict[str, list[TopicPartition]] = {}
        for topic in image.topics.by_name.values():
            for one in self._lead(topic, range(topic.partition_count), image):
                if one.directory in self._replicas.log_manager.directory_places():
                    raise one.error  # not the disk is to blame
                offline.setdefault(str(one.error), []).append(one.tp)
        for reason, tps in offline.items():
            self._log.error("%d partitions are offline, %s the first of them: %s", len(tps), tps[0], reason)

    def use_defaults(self, log_defaults: LogConfig, image: MetadataImage) -> None:
        """Use other defaults of topics, for all that there are as well."""
        self._log_defaults = log_defaults
        for topic in image.topics.by_name.values():
            self._configure(topic, image)

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Do what has changed. Raises KafkaStorageError if a partition cannot be led, which is offline then."""
        offline: list[_Offline] = []
        if delta.topics is not None:
            for topic in delta.topics.deleted.values():
                self._delete(topic)
            for topic_id, changed in delta.topics.changed.items():
                for one in self._lead(image.topics.by_id[topic_id], changed.changes, image):
                    offline.append(one)
                    if topic_id not in delta.image.topics.by_id:
                        break  # a topic that is new is undone: the rest of it need not be tried
        if delta.configs is not None:
            for kind, name in delta.configs.changed:
                topic_image = image.topics.by_name.get(name)
                if kind == ResourceType.TOPIC and topic_image is not None:
                    self._configure(topic_image, image)
        if offline:
            raise KafkaStorageError(f"{offline[0].tp} cannot be led: {offline[0].error}")

    def _lead(self, topic: TopicImage, numbers: Iterable[int], image: MetadataImage) -> Iterator[_Offline]:
        """Lead partitions of a topic; yield those that cannot be led, which are offline now."""
        config = self._log_config(topic, image)
        for number in numbers:
            tp, partition = TopicPartition(topic.name, number), topic.partitions[number]
            directory = partition.directory_of(self._node_id)
            try:
                self._replicas.log_manager.check_directory(directory)
                self._replicas.make_leader(
                    tp, topic.id, config, directory, leader_epoch=partition.leader_epoch
                )
            except KafkaStorageError as error:
                self._replicas.set_offline(tp, str(error))
                yield _Offline(tp, directory, error)

    def _configure(self, topic: TopicImage, image: MetadataImage) -> None:
        config = self._log_config(topic, image)
        for tp in topic.topic_partitions():
            self._replicas.update_config(tp, config)

    def _delete(self, topic: TopicImage) -> None:
        live = self._replicas.log_manager.directory_places()
        removed = True
        for tp, partition in zip(topic.topic_partitions(), topic.partitions, strict=True):
            # What is not open may all the same have a directory: one whose making was not finished.
            opened = self._replicas.log_manager.get_log(tp) is not None
            removed &= opened and partition.directory_of(self._node_id) in live
            try:
                self._replicas.delete_partition(tp)
            except KafkaStorageError as error:
                # The metadata remembers that the topic was deleted, and where the partition is.
                self._log.warning("The files of %s are removed at a later start: %s", tp, error)
                removed = False
        if removed:
            self._on_files_removed(topic.id)

    def _log_config(self, topic: TopicImage, image: MetadataImage) -> LogConfig:
        return LogConfig.from_topic_configs(
            image.configs.of(ResourceType.TOPIC, topic.name), self._log_defaults
        )
