"""MetadataCache: the topics as they are now, to be read without a lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import UnknownTopicOrPartitionError

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
"""The partition in which Kafka's controllers keep their journal. It is no topic for clients."""


@attrs.frozen
class TopicImage:
    """One topic. Immutable. `configs` holds the settings that differ from the broker's defaults, as strings;
    `directories` has the id of each partition's log directory, zero while it is in none.
    """

    name: str
    id: Uuid
    partition_count: int
    configs: Mapping[str, str] = MappingProxyType({})
    directories: Sequence[Uuid] = ()

    @property
    def is_internal(self) -> bool:
        """True for the topics in which the broker keeps its own state."""
        return self.name in INTERNAL_TOPICS

    def topic_partitions(self) -> list[TopicPartition]:
        """All partitions in order."""
        return [TopicPartition(self.name, number) for number in range(self.partition_count)]


class MetadataCache:
    """Topics by name and by id.

    Readers take no lock: a change replaces the two dictionaries. Changes come from the controller only, which
    makes them one at a time.
    """

    __slots__ = ("_by_id", "_by_name")

    def __init__(self, topics: Iterable[TopicImage] = ()) -> None:
        self._by_name = {topic.name: topic for topic in topics}
        self._by_id = {topic.id: topic for topic in self._by_name.values()}

    def topic(self, name: str) -> TopicImage | None:
        """The topic called `name`."""
        return self._by_name.get(name)

    def existing_topic(self, name: str) -> TopicImage:
        """The topic called `name`. Raises UnknownTopicOrPartitionError."""
        topic = self._by_name.get(name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"There is no topic {name}")
        return topic

    def topic_by_id(self, topic_id: Uuid) -> TopicImage | None:
        """The topic with this identifier."""
        return self._by_id.get(topic_id)

    def topics(self) -> list[TopicImage]:
        """All topics in order of their names."""
        return [topic for _, topic in sorted(self._by_name.items())]

    def contains(self, tp: TopicPartition) -> bool:
        """True if the partition exists."""
        topic = self._by_name.get(tp.topic)
        return topic is not None and 0 <= tp.partition < topic.partition_count

    def put(self, topic: TopicImage) -> None:
        """Add a topic or replace its image."""
        self._by_name = {**self._by_name, topic.name: topic}
        self._by_id = {**self._by_id, topic.id: topic}

    def remove(self, name: str) -> None:
        """Forget a topic."""
        self._by_name = {known: topic for known, topic in self._by_name.items() if known != name}
        self._by_id = {topic_id: topic for topic_id, topic in self._by_id.items() if topic.name != name}
