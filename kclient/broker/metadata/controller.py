"""Controller: creates, changes and deletes topics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import attrs

from kclient.broker.config import BrokerConfig
from kclient.broker.log.config import LogConfig
from kclient.broker.metadata.cache import (
    CLUSTER_METADATA_TOPIC,
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    MetadataCache,
    TopicImage,
)
from kclient.broker.metadata.topic_names import colliding_topic, validate_topic_name
from kclient.broker.metadata.topics import TopicStore
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    KafkaError,
    KafkaStorageError,
    PolicyViolationError,
    TopicDeletionDisabledError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kclient.utils.log_context import LogContext

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Partitions one request may create: Kafka's own limit, which keeps a typing error from filling the disk."""

OFFSETS_TOPIC_CONFIGS = MappingProxyType(
    {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": str(100 * 1024 * 1024)}
)


@attrs.frozen
class NewTopic:
    """A topic to be created. -1 for `partition_count` and `replication_factor` means the broker's default."""

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = MappingProxyType({})
    configs: Mapping[str, str | None] = MappingProxyType({})


class Controller:
    """Decides on topics and carries the decision out: journal, then files, then the metadata that clients
    see.

    Thread-safe; changes are made one at a time.
    """

    def __init__(
        self,
        store: TopicStore,
        cache: MetadataCache,
        replicas: ReplicaManager,
        config: BrokerConfig,
        log_context: LogContext,
    ) -> None:
        self.cache = cache
        self._store = store
        self._replicas = replicas
        self._config = config
        self._log_defaults = config.log_config()
        self._log = log_context.logger(__name__)
        self._lock = threading.Lock()
        self._deletion_listeners: list[Callable[[Sequence[TopicPartition]], None]] = []

    def add_deletion_listener(self, listener: Callable[[Sequence[TopicPartition]], None]) -> None:
        """Call `listener(partitions)` after a topic was deleted, with no lock held."""
        self._deletion_listeners.append(listener)

    def lead_all(self) -> None:
        """Lead every partition there is: the first thing after a start. Those whose log directory is missing are
        offline. Raises KafkaError.
        """
        offline: dict[str, list[TopicPartition]] = {}
        for topic in self.cache.topics():
            log_config = self.log_config(topic.configs)
            for tp, directory in zip(topic.topic_partitions(), topic.directories, strict=True):
                try:
                    self._replicas.make_leader(tp, topic.id, log_config, directory)
                except KafkaStorageError as error:
                    if directory in self._replicas.log_manager.directory_places():
                        raise  # not the disk is to blame
                    self._replicas.set_offline(tp, str(error))
                    offline.setdefault(str(error), []).append(tp)
        for reason, tps in offline.items():
            self._log.error("%d partitions are offline, %s the first of them: %s", len(tps), tps[0], reason)

    def create_topic(self, new: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """Create a topic; with `validate_only` only say what it would be.

        Raises InvalidTopicError, TopicExistsError, InvalidPartitionsError, InvalidReplicationFactorError,
        InvalidReplicaAssignmentError, InvalidConfigurationError, PolicyViolationError and KafkaStorageError.
        """
        with self._lock:
            topic = self._validate(new)
            return topic if validate_only else self._create(topic)

    def create_automatically(self, name: str) -> TopicImage:
        """The topic called `name`, created with the defaults if it does not exist. Raises as `create_topic` does."""
        topic = self.cache.topic(name)
        if topic is not None:
            return topic
        if name == OFFSETS_TOPIC:
            new = NewTopic(name, self._config.offsets_topic_num_partitions, configs=OFFSETS_TOPIC_CONFIGS)
        else:
            new = NewTopic(name)
        try:
            return self.create_topic(new)
        except TopicExistsError:
            topic = self.cache.topic(name)  # somebody else was faster
            if topic is None:
                raise
            return topic

    def delete_topic(self, topic: TopicImage) -> None:
        """Delete `topic` and its records. Raises UnknownTopicOrPartitionError, TopicDeletionDisabledError,
        InvalidRequestError for an internal topic, and KafkaStorageError.
        """
        if not self._config.delete_topic_enable:
            raise TopicDeletionDisabledError
        if topic.name in INTERNAL_TOPICS:
            raise InvalidRequestError(f"{topic.name} holds the broker's own state and cannot be deleted")
        with self._lock:
            known = self.cache.topic(topic.name)
            if known is None or known.id != topic.id:
                raise UnknownTopicOrPartitionError(f"There is no topic {topic.name} with id {topic.id}")
            self._store.delete(known)
            self.cache.remove(known.name)
            self._delete_partitions(known)
        partitions = known.topic_partitions()
        self._log.info("Deleted topic %s", known.name)
        for listener in self._deletion_listeners:
            listener(partitions)

    def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Give topic `name` more partitions, `count` in all.

        Raises UnknownTopicOrPartitionError, InvalidPartitionsError, InvalidReplicaAssignmentError,
        PolicyViolationError and KafkaStorageError.
        """
        with self._lock:
            topic = self.cache.existing_topic(name)
            added = count - topic.partition_count
            if added <= 0:
                raise InvalidPartitionsError(
                    f"Topic {name} has {topic.partition_count} partitions; their number can only grow, not to {count}"
                )
            _check_partition_limit(added)
            if assignments is not None:
                if len(assignments) != added:
                    raise InvalidReplicaAssignmentError(
                        f"{added} partitions are added to {name}, but {len(assignments)} assignments given"
                    )
                for nodes in assignments:
                    self._check_replicas(nodes)
            if validate_only:
                return
            directories = (*topic.directories, *self._replicas.log_manager.choose_directories(added))
            grown = attrs.evolve(topic, partition_count=count, directories=directories)
            self._store.put(grown)
            self._make_leaders(grown, topic.partition_count)
            self.cache.put(grown)
        self._log.info("Topic %s has %d partitions now", name, count)

    def alter_configs(self, name: str, configs: Mapping[str, str], *, validate_only: bool = False) -> None:
        """Make `configs` all the settings of topic `name` that differ from the defaults.

        Raises UnknownTopicOrPartitionError, InvalidConfigurationError and KafkaStorageError.
        """
        with self._lock:
            topic = self.cache.existing_topic(name)
            log_config = self.log_config(configs)
            if validate_only:
                return
            changed = attrs.evolve(topic, configs=MappingProxyType(dict(configs)))
            self._store.put(changed)
            self.cache.put(changed)
            for tp in changed.topic_partitions():
                self._replicas.update_config(tp, log_config)
        self._log.info("Topic %s has new settings: %s", name, ", ".join(sorted(configs)) or "only defaults")

    def log_config(self, configs: Mapping[str, str]) -> LogConfig:
        """The settings of a topic with these overrides. Raises InvalidConfigurationError."""
        return LogConfig.from_topic_configs(configs, self._log_defaults)

    def _validate(self, new: NewTopic) -> TopicImage:
        validate_topic_name(new.name)
        if new.name == CLUSTER_METADATA_TOPIC:
            raise InvalidTopicError(f"{new.name} is the journal of Kafka's controllers and cannot be created")
        if self.cache.topic(new.name) is not None:
            raise TopicExistsError(f"Topic {new.name} exists already")
        collision = colliding_topic(new.name, (topic.name for topic in self.cache.topics()))
        if collision is not None:
            raise InvalidTopicError(
                f"Topic {new.name} differs from {collision} only in '.' and '_', which metrics cannot tell apart"
            )
        count = self._partition_count(new)
        # A value of null asks for the default.
        configs = {name: value for name, value in new.configs.items() if value is not None}
        self.log_config(configs)
        return TopicImage(new.name, Uuid.random(), count, MappingProxyType(configs))

    def _partition_count(self, new: NewTopic) -> int:
        if new.assignments:
            if new.partition_count != -1 or new.replication_factor != -1:
                raise InvalidRequestError(
                    "With replica assignments, the number of partitions and the replication factor must be -1"
                )
            if sorted(new.assignments) != list(range(len(new.assignments))):
                raise InvalidReplicaAssignmentError(
                    "The partitions of an assignment must be numbered from 0 on"
                )
            for nodes in new.assignments.values():
                self._check_replicas(nodes)
            _check_partition_limit(len(new.assignments))
            return len(new.assignments)
        if new.replication_factor not in {-1, 1}:
            raise InvalidReplicationFactorError(
                f"The replication factor can be 1 or -1, not {new.replication_factor}: there is one broker"
            )
        if new.partition_count == -1:
            return self._config.num_partitions
        if new.partition_count < 1:
            raise InvalidPartitionsError(f"A topic has at least one partition, not {new.partition_count}")
        _check_partition_limit(new.partition_count)
        return new.partition_count

    def _check_replicas(self, nodes: Sequence[int]) -> None:
        if list(nodes) != [self._config.node_id]:
            raise InvalidReplicaAssignmentError(
                f"Replicas can only be assigned to [{self._config.node_id}], the one broker, not to {list(nodes)}"
            )

    def _create(self, new: TopicImage) -> TopicImage:
        directories = tuple(self._replicas.log_manager.choose_directories(new.partition_count))
        topic = attrs.evolve(new, directories=directories)
        self._store.put(topic)
        try:
            self._make_leaders(topic, 0)
        except (KafkaError, OSError):
            # Nobody has seen the topic: undo, so that the next try can succeed.
            self._store.delete(topic)
            self._delete_partitions(topic)
            raise
        self.cache.put(topic)
        self._log.info("Created topic %s with %d partitions", topic.name, topic.partition_count)
        return topic

    def _delete_partitions(self, topic: TopicImage) -> None:
        for tp in topic.topic_partitions():
            try:
                self._replicas.delete_partition(tp)
            except KafkaStorageError as error:
                # The journal knows of the deletion and where the partition is.
                self._log.warning("The files of %s are removed at a later start: %s", tp, error)

    def _make_leaders(self, topic: TopicImage, first: int) -> None:
        log_config = self.log_config(topic.configs)
        for tp in topic.topic_partitions()[first:]:
            self._replicas.make_leader(tp, topic.id, log_config, topic.directories[tp.partition])


def _check_partition_limit(count: int) -> None:
    if count > MAX_PARTITIONS_PER_REQUEST:
        raise PolicyViolationError(
            f"One request can create at most {MAX_PARTITIONS_PER_REQUEST} partitions, not {count}"
        )
