"""TopicsImage: the topics with their partitions, and deleted ones of which there may still be files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType

import attrs

from kclient.broker.metadata.image.partition import PartitionImage
from kclient.broker.metadata.topic_names import INTERNAL_TOPICS
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError
from kclient.protocol.messages.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kclient.protocol.schema import Message


@attrs.frozen
class TopicImage:
    """One topic. Immutable."""

    name: str
    id: Uuid
    partitions: tuple[PartitionImage, ...] = ()

    @property
    def partition_count(self) -> int:
        """The number of partitions."""
        return len(self.partitions)

    @property
    def is_internal(self) -> bool:
        """True for the topics in which the broker keeps its own state."""
        return self.name in INTERNAL_TOPICS

    def topic_partitions(self) -> list[TopicPartition]:
        """All partitions in order."""
        return [TopicPartition(self.name, number) for number in range(len(self.partitions))]

    def records(self) -> Iterator[Message]:
        """The records that make the topic."""
        yield TopicRecord(name=self.name, topic_id=self.id)
        for number, partition in enumerate(self.partitions):
            yield partition.record(self.id, number)


@attrs.frozen
class DeletedTopic:
    """A topic that was deleted, with those partitions of which there may still be files. Immutable."""

    name: str
    id: Uuid
    partitions: Mapping[int, PartitionImage]

    @property
    def directories(self) -> frozenset[Uuid]:
        """The log directories that may have files of it."""
        return frozenset(each for partition in self.partitions.values() for each in _places(partition))

    def without(self, directories: AbstractSet[Uuid]) -> DeletedTopic:
        """Its remainder when the files in `directories` are gone."""
        left = {number: one for number, one in self.partitions.items() if _places(one) - directories}
        return DeletedTopic(self.name, self.id, left)

    def records(self) -> Iterator[Message]:
        """The records by which it is remembered: what it was, and that it is gone."""
        yield TopicRecord(name=self.name, topic_id=self.id)
        for number, partition in self.partitions.items():
            yield partition.record(self.id, number)
        yield RemoveTopicRecord(topic_id=self.id)


@attrs.frozen
class TopicsImage:
    """All topics. Immutable. `deleted` has those of which files may be left, by id."""

    by_name: Mapping[str, TopicImage] = MappingProxyType({})
    by_id: Mapping[Uuid, TopicImage] = MappingProxyType({})
    deleted: Mapping[Uuid, DeletedTopic] = MappingProxyType({})

    def records(self) -> Iterator[Message]:
        """The records that make all of this, those of deleted topics first."""
        for gone in self.deleted.values():
            yield from gone.records()
        for topic in self.by_name.values():
            yield from topic.records()

    def without_deleted(self, topic_id: Uuid) -> TopicsImage:
        """The same when the files of a deleted topic are known to be gone."""
        return attrs.evolve(
            self, deleted={known: gone for known, gone in self.deleted.items() if known != topic_id}
        )


class TopicDelta:
    """Changes of one topic. Used by one thread."""

    __slots__ = ("changes", "image")

    def __init__(self, image: TopicImage) -> None:
        self.image = image
        """The topic before the change."""
        self.changes: dict[int, PartitionImage] = {}
        """The partitions that are new or other than they were, by number."""

    def replay_partition(self, record: PartitionRecord) -> None:
        """Take a partition as it is."""
        if record.partition_id < 0:
            raise KafkaStorageError(f"Topic {self.image.name} has no partition {record.partition_id}")
        self.changes[record.partition_id] = PartitionImage.of(record)

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        """Change a partition."""
        number = record.partition_id
        before = self.changes.get(number)
        if before is None:
            if not 0 <= number < len(self.image.partitions):
                raise KafkaStorageError(
                    f"A change is recorded of {self.image.name}-{number}, which is unknown"
                )
            before = self.image.partitions[number]
        self.changes[number] = before.changed(record)

    def replay_clear_elr(self) -> None:
        """Forget the eligible leader replicas of all partitions (KIP-966)."""
        for number, partition in {**dict(enumerate(self.image.partitions)), **self.changes}.items():
            if partition.eligible_leader_replicas or partition.last_known_elr:
                self.changes[number] = attrs.evolve(partition, eligible_leader_replicas=(), last_known_elr=())

    def apply(self) -> TopicImage:
        """The topic after the change."""
        if not self.changes:
            return self.image
        partitions = dict(enumerate(self.image.partitions))
        partitions.update(self.changes)
        try:
            whole = tuple(partitions[number] for number in range(len(partitions)))
        except KeyError as missing:
            raise KafkaStorageError(f"Topic {self.image.name} has no partition {missing}") from None
        return TopicImage(self.image.name, self.image.id, whole)

    def deleted(self) -> DeletedTopic:
        """The topic as one that is gone."""
        partitions = {**dict(enumerate(self.image.partitions)), **self.changes}
        left = {number: one for number, one in partitions.items() if _places(one)}
        return DeletedTopic(self.image.name, self.image.id, left)


class TopicsDelta:
    """Changes of all topics. Used by one thread."""

    def __init__(self, image: TopicsImage) -> None:
        self.image = image
        """The topics before the change."""
        self.changed: dict[Uuid, TopicDelta] = {}
        """The topics that are new or other than they were, by id."""
        self.deleted: dict[Uuid, TopicImage] = {}
        """The topics that were there before and are not any more, by id."""
        self._names: dict[str, Uuid] = {}  # of new topics
        self._graves: dict[Uuid, DeletedTopic] | None = None

    def replay_topic(self, record: TopicRecord) -> None:
        """Take in a new topic."""
        name, topic_id = record.name, record.topic_id
        named = self.image.by_name.get(name)
        if (
            topic_id in self.changed
            or topic_id in self.image.by_id
            or name in self._names
            or (named is not None and named.id not in self.deleted)
        ):
            raise KafkaStorageError(f"Topic {name} with id {topic_id} is recorded twice")
        self.changed[topic_id] = TopicDelta(TopicImage(name, topic_id))
        self._names[name] = topic_id

    def topic(self, topic_id: Uuid) -> TopicDelta:
        """The changes of a topic. Raises KafkaStorageError if there is none with this id."""
        delta = self.changed.get(topic_id)
        if delta is None:
            image = self.image.by_id.get(topic_id)
            if image is None or topic_id in self.deleted:
                raise KafkaStorageError(f"There is a record of a topic with id {topic_id}, which is unknown")
            delta = self.changed[topic_id] = TopicDelta(image)
        return delta

    def replay_clear_elr(self, record: ClearElrRecord) -> None:
        """Forget the eligible leader replicas of a topic, or of all if none is named."""
        there = {**self.image.by_id, **{topic_id: delta.image for topic_id, delta in self.changed.items()}}
        named = [
            topic_id
            for topic_id, topic in there.items()
            if topic_id not in self.deleted and record.topic_name in {"", topic.name}
        ]
        if record.topic_name and not named:
            raise KafkaStorageError(f"There is a record of topic {record.topic_name}, which is unknown")
        for topic_id in named:
            self.topic(topic_id).replay_clear_elr()

    def replay_removal(self, record: RemoveTopicRecord) -> str:
        """Take a topic away; returns its name."""
        delta = self.topic(record.topic_id)
        del self.changed[record.topic_id]
        name = delta.image.name
        if self._names.get(name) == record.topic_id:
            del self._names[name]
        else:
            self.deleted[record.topic_id] = delta.image
        self._dead()[record.topic_id] = delta.deleted()
        return name

    def replay_registration(self, directories: Iterable[Uuid]) -> None:
        """Forget the files of deleted topics in these directories: who registers them has removed the files."""
        live = frozenset(directories)
        for topic_id, gone in list((self._graves or self.image.deleted).items()):
            if gone.directories & live:
                left = gone.without(live)
                if left.partitions:
                    self._dead()[topic_id] = left
                else:
                    del self._dead()[topic_id]

    def apply(self) -> TopicsImage:
        """The topics after the change."""
        by_name, by_id = dict(self.image.by_name), dict(self.image.by_id)
        for topic_id, gone in self.deleted.items():
            del by_name[gone.name], by_id[topic_id]
        for topic_id, delta in self.changed.items():
            by_name[delta.image.name] = by_id[topic_id] = delta.apply()
        return TopicsImage(by_name, by_id, self.image.deleted if self._graves is None else self._graves)

    def _dead(self) -> dict[Uuid, DeletedTopic]:
        if self._graves is None:
            self._graves = dict(self.image.deleted)
        return self._graves


def _places(partition: PartitionImage) -> AbstractSet[Uuid]:
    return frozenset(partition.directories) - {Uuid.ZERO}
