"""Controller: creates, changes and deletes topics, and gives out blocks of producer ids."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import attrs

from kclient.broker.config import BrokerConfig
from kclient.broker.log.config import LogConfig
from kclient.broker.metadata.broker_settings import (
    ALL_BROKERS,
    BrokerSettings,
    check_change,
    check_common,
    dynamic_settings,
    overridden,
)
from kclient.broker.metadata.cache import MetadataCache, MetadataListener, existing_topic
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.image.features import MAX_PRODUCER_ID
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.topics import TopicImage
from kclient.broker.metadata.metadata_store import MetadataStore
from kclient.broker.metadata.recovered_topic import RecoveredTopic
from kclient.broker.metadata.registration import partition_record, starting_records
from kclient.broker.metadata.topic_names import (
    INTERNAL_TOPICS,
    METADATA_TOPICS,
    OFFSETS_TOPIC,
    colliding_topic,
    validate_topic_name,
)
from kclient.broker.network.listener import Listener
from kclient.broker.replica.metadata_publisher import ReplicaMetadataPublisher
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.common.uuid import Uuid
from kclient.errors import (
    ConfigError,
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
from kclient.protocol.messages.metadata_records import (
    ConfigRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kclient.protocol.schema import Message
from kclient.utils.log_context import LogContext

PRODUCER_ID_BLOCK = 1000
"""Producer ids that a broker is given at a time."""

MAX_RECORDS_PER_REQUEST = 10_000
"""Most records that one request may add to the metadata log, as in Kafka."""
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


@attrs.frozen
class TopicPlan:
    """A topic as it will be, or would be. Immutable."""

    name: str
    id: Uuid
    partition_count: int
    configs: Mapping[str, str]


Charge = Callable[[int], object]
"""Is told of the partitions that are about to be made or deleted; what it raises forbids that."""


def _free(partitions: int) -> None:
    del partitions


class Controller:
    """Decides on changes of the metadata, and carries them out: into the log, which makes them true, then to those
    who act on them, then into what clients see.

    Thread-safe; changes are made one at a time.
    """

    def __init__(
        self,
        store: MetadataStore,
        cache: MetadataCache,
        replicas: ReplicaManager,
        config: BrokerConfig,
        log_context: LogContext,
    ) -> None:
        self.cache = cache
        self._store = store
        self._logs = replicas.log_manager
        self._config = config
        self.settings = BrokerSettings(config)
        """The broker's settings as they are now."""
        self._log_defaults = config.log_config()
        self._log = log_context.logger(__name__)
        self._lock = threading.Lock()
        self._replicas = ReplicaMetadataPublisher(
            replicas, config.node_id, self._log_defaults, log_context, store.forget_deleted
        )
        self._listeners: list[MetadataListener] = []
        self._broker_epoch = -1

    def add_listener(self, listener: MetadataListener) -> None:
        """Call `listener(delta, image)` after each change of topics or settings, with no lock held."""
        self._listeners.append(listener)

    def start(
        self,
        topics: Iterable[RecoveredTopic],
        listeners: Iterable[Listener],
        inherited: Sequence[Message] = (),
    ) -> None:
        """Register the broker, and lead every partition there is in a new epoch: the first thing after a start.

        `topics` are those of the metadata and of adopted logs, with the directories of their partitions;
        `inherited` is what else another cluster's metadata said. Raises KafkaError.
        """
        with self._lock:
            store = self._store
            self._broker_epoch = store.end_offset
            records = starting_records(
                store.image,
                self._config.node_id,
                self._broker_epoch,
                listeners,
                topics,
                self._logs,
                inherited,
            )
            delta = store.commit(list(records))
            self._replicas.lead_all(store.image)
            self._use_settings(store.image)
            self.cache.on_metadata_update(delta, store.image)

    def create_topic(
        self, new: NewTopic, *, validate_only: bool = False, charge: Charge = _free
    ) -> TopicPlan:
        """Create a topic; with `validate_only` only say what it would be. `charge` is told of its partitions before.

        Raises what `charge` raises, InvalidTopicError, TopicExistsError, InvalidPartitionsError,
        InvalidReplicationFactorError, InvalidReplicaAssignmentError, InvalidConfigurationError, PolicyViolationError
        and KafkaStorageError.
        """
        with self._lock:
            plan = self._validate(new)
            charge(plan.partition_count)
            if validate_only:
                return plan
            published = self._create(plan)
        self._tell(*published)
        return plan

    def create_automatically(self, name: str, *, charge: Charge = _free) -> TopicImage:
        """The topic called `name`, created with the defaults if it does not exist. Raises as `create_topic` does."""
        topic = self.cache.topic(name)
        if topic is not None:
            return topic
        if name == OFFSETS_TOPIC:
            new = NewTopic(name, self._config.offsets_topic_num_partitions, configs=OFFSETS_TOPIC_CONFIGS)
        else:
            new = NewTopic(name)
        try:
            self.create_topic(new, charge=charge)
        except TopicExistsError:
            pass  # somebody else was faster
        return self.cache.existing_topic(name)

    def delete_topic(self, topic: TopicImage, *, charge: Charge = _free) -> None:
        """Delete `topic` and its records. `charge` is told of its partitions before.

        Raises UnknownTopicOrPartitionError, TopicDeletionDisabledError, InvalidRequestError for an internal topic,
        KafkaStorageError, and what `charge` raises.
        """
        if not self._config.delete_topic_enable:
            raise TopicDeletionDisabledError
        if topic.name in INTERNAL_TOPICS:
            raise InvalidRequestError(f"{topic.name} holds the broker's own state and cannot be deleted")
        with self._lock:
            known = self._store.image.topics.by_id.get(topic.id)
            if known is None:
                raise UnknownTopicOrPartitionError(f"There is no topic {topic.name} with id {topic.id}")
            charge(known.partition_count)
            published = self._commit([RemoveTopicRecord(topic_id=known.id)])
        self._log.info("Deleted topic %s", known.name)
        self._tell(*published)

    def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
        charge: Charge = _free,
    ) -> None:
        """Give topic `name` more partitions, `count` in all. `charge` is told of the new ones before.

        Raises what `charge` raises, UnknownTopicOrPartitionError, InvalidPartitionsError,
        InvalidReplicaAssignmentError, PolicyViolationError and KafkaStorageError, also if some of them cannot be led,
        which are offline then.
        """
        with self._lock:
            topic = existing_topic(self._store.image, name)
            added = count - topic.partition_count
            if added <= 0:
                raise InvalidPartitionsError(
                    f"Topic {name} has {topic.partition_count} partitions; their number can only grow, not to {count}"
                )
            check_partition_limit(added)
            if assignments is not None:
                if len(assignments) != added:
                    raise InvalidReplicaAssignmentError(
                        f"{added} partitions are added to {name}, but {len(assignments)} assignments given"
                    )
                for nodes in assignments:
                    self._check_replicas(nodes)
            charge(added)
            if validate_only:
                return
            published = self._commit(list(self._partition_records(topic.id, topic.partition_count, count)))
        self._log.info("Topic %s has %d partitions now", name, count)
        self._tell(*published)

    def alter_configs(
        self,
        name: str,
        change: Callable[[Mapping[str, str]], Mapping[str, str]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Give topic `name` the settings that `change` makes of those it has: all that differ from the defaults.

        Nobody else changes them meanwhile. Raises UnknownTopicOrPartitionError, InvalidConfigurationError,
        KafkaStorageError, and what `change` raises.
        """
        with self._lock:
            image = self._store.image
            existing_topic(image, name)
            before = image.configs.of(ResourceType.TOPIC, name)
            configs = change(before)
            self.log_config(configs)
            changes = _differences(before, configs)
            if validate_only or not changes:
                return
            published = self._commit(list(_config_records(name, changes)))
        self._log.info("Topic %s has new settings: %s", name, ", ".join(sorted(configs)) or "only defaults")
        self._tell(*published)

    def alter_broker_configs(
        self,
        name: str,
        change: Callable[[Mapping[str, str]], Mapping[str, str]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Give a broker, or ALL_BROKERS, the dynamic settings that `change` makes of those it has.

        Raises InvalidRequestError, KafkaStorageError, and what `change` raises.
        """

        def plan(image: MetadataImage) -> list[Message]:
            before = dynamic_settings(image.configs, name)
            configs = change(before)
            own = str(self._config.node_id)
            levels = {each: dynamic_settings(image.configs, each) for each in (ALL_BROKERS, own)}
            try:
                if name == ALL_BROKERS:
                    check_common(configs)
                overridden(self._config, configs)
                levels[name] = dict(configs)
                after = overridden(self._config, {**levels[ALL_BROKERS], **levels[own]})
                check_change(self.settings.current, after)
            except ConfigError as error:
                raise InvalidRequestError(str(error)) from None
            if validate_only:
                return []
            return list(_config_records(name, _differences(before, configs), ResourceType.BROKER))

        self.change(plan)

    def change(self, plan: Callable[[MetadataImage], Sequence[Message]]) -> None:
        """Commit the records that `plan` makes of the metadata as they are; none changes nothing.

        Raises KafkaStorageError, and what `plan` raises.
        """
        with self._lock:
            records = plan(self._store.image)
            published = self._commit(records) if records else None
        if published is not None:
            self._tell(*published)

    def allocate_producer_ids(self) -> range:
        """A block of producer ids that nobody has had, and nobody else will get. Raises KafkaStorageError."""
        with self._lock:
            first = self._store.image.producer_ids.next_producer_id
            after = first + PRODUCER_ID_BLOCK
            if after > MAX_PRODUCER_ID:
                raise KafkaStorageError("All producer ids have been given out")
            record = ProducerIdsRecord(
                broker_id=self._config.node_id, broker_epoch=self._broker_epoch, next_producer_id=after
            )
            self._commit([record])
        return range(first, after)

    def log_config(self, configs: Mapping[str, str]) -> LogConfig:
        """The settings of a topic with these overrides. Raises InvalidConfigurationError."""
        return LogConfig.from_topic_configs(configs, self._log_defaults)

    def _validate(self, new: NewTopic) -> TopicPlan:
        validate_topic_name(new.name)
        if new.name in METADATA_TOPICS:
            raise InvalidTopicError(f"{new.name} is the log of controllers and cannot be created")
        topics = self._store.image.topics.by_name
        if new.name in topics:
            raise TopicExistsError(f"Topic {new.name} exists already")
        collision = colliding_topic(new.name, topics)
        if collision is not None:
            raise InvalidTopicError(
                f"Topic {new.name} differs from {collision} only in '.' and '_', which metrics cannot tell apart"
            )
        count = self._partition_count(new)
        # A value of null asks for the default.
        configs = {name: value for name, value in new.configs.items() if value is not None}
        self.log_config(configs)
        return TopicPlan(new.name, Uuid.random(), count, MappingProxyType(configs))

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
            check_partition_limit(len(new.assignments))
            return len(new.assignments)
        if new.replication_factor not in {-1, 1}:
            raise InvalidReplicationFactorError(
                f"The replication factor can be 1 or -1, not {new.replication_factor}: there is one broker"
            )
        if new.partition_count == -1:
            return self._config.num_partitions
        if new.partition_count < 1:
            raise InvalidPartitionsError(f"A topic has at least one partition, not {new.partition_count}")
        check_partition_limit(new.partition_count)
        return new.partition_count

    def _check_replicas(self, nodes: Sequence[int]) -> None:
        if list(nodes) != [self._config.node_id]:
            raise InvalidReplicaAssignmentError(
                f"Replicas can only be assigned to [{self._config.node_id}], the one broker, not to {list(nodes)}"
            )

    def _create(self, plan: TopicPlan) -> tuple[MetadataDelta, MetadataImage]:
        records = [
            TopicRecord(name=plan.name, topic_id=plan.id),
            *_config_records(plan.name, plan.configs),
            *self._partition_records(plan.id, 0, plan.partition_count),
        ]
        try:
            published = self._commit(records)
        except (KafkaError, OSError):
            if plan.id in self._store.image.topics.by_id:
                # Nobody was told of the topic: undo, so that the next try can succeed.
                self._commit([RemoveTopicRecord(topic_id=plan.id)])
            raise
        self._log.info("Created topic %s with %d partitions", plan.name, plan.partition_count)
        return published

    def _partition_records(self, topic_id: Uuid, first: int, count: int) -> list[Message]:
        node_id = self._config.node_id
        return [
            partition_record(topic_id, number, node_id, directory, leader=node_id)
            for number, directory in enumerate(self._logs.choose_directories(count - first), first)
        ]

    def _commit(self, records: Sequence[Message]) -> tuple[MetadataDelta, MetadataImage]:
        """Make a change true, act on it, and show it. Under the lock. Raises KafkaStorageError."""
        delta = self._store.commit(records)
        image = self._store.image
        if delta.configs is not None and any(
            kind == ResourceType.BROKER for kind, _ in delta.configs.changed
        ):
            self._use_settings(image)
        try:
            self._replicas.on_metadata_update(delta, image)
        finally:
            self.cache.on_metadata_update(delta, image)
        return delta, image

    def _use_settings(self, image: MetadataImage) -> None:
        """Use the broker's settings that the metadata has. Under the lock."""
        self.settings = BrokerSettings.of(self._config, image.configs)
        defaults = self.settings.current.log_config()
        if defaults != self._log_defaults:
            self._log_defaults = defaults
            self._replicas.use_defaults(defaults, image)

    def _tell(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for listener in self._listeners:
            listener(delta, image)


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    """Return the settings that are other than before, None for those that go."""
    return {
        **{key: None for key in before if key not in after},
        **{key: value for key, value in after.items() if before.get(key) != value},
    }


def _config_records(
    resource: str, changes: Mapping[str, str | None], kind: ResourceType = ResourceType.TOPIC
) -> Iterable[Message]:
    for name, value in changes.items():
        yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def check_partition_limit(count: int) -> None:
    """Raise PolicyViolationError if one request would make so many partitions, of all its topics together."""
    if count > MAX_PARTITIONS_PER_REQUEST:
        raise PolicyViolationError(
            f"One request can create at most {MAX_PARTITIONS_PER_REQUEST} partitions, not {count}"
        )
