"""MetadataCache: the metadata as it is now, to be read without a lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.topics import TopicImage
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import UnknownTopicOrPartitionError

MetadataListener: TypeAlias = Callable[[MetadataDelta, MetadataImage], None]


class MetadataCache:
    """The newest image that was published, for handlers. Thread-safe.

    Readers take no lock: a change replaces the image. Changes come from the controller only, which makes them one at
    a time.
    """

    __slots__ = ("_listeners", "image")

    def __init__(self) -> None:
        self._listeners: list[MetadataListener] = []
        self.image = MetadataImage()
        """The metadata as it is now."""

    def add_listener(self, listener: MetadataListener) -> None:
        """Call `listener(delta, image)` for every change, in their order and before handlers can see it.

        For what is made of the metadata to be read as often as the metadata itself. No other change is made meanwhile.
        """
        self._listeners.append(listener)

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Show `image` from now on."""
        for listener in self._listeners:
            listener(delta, image)
        self.image = image

    def topic(self, name: str) -> TopicImage | None:
        """The topic called `name`."""
        return self.image.topics.by_name.get(name)

    def existing_topic(self, name: str) -> TopicImage:
        """The topic called `name`. Raises UnknownTopicOrPartitionError."""
        return existing_topic(self.image, name)

    def topic_by_id(self, topic_id: Uuid) -> TopicImage | None:
        """The topic with this identifier."""
        return self.image.topics.by_id.get(topic_id)

    def topics(self) -> list[TopicImage]:
        """All topics in order of their names."""
        return [topic for _, topic in sorted(self.image.topics.by_name.items())]

    def topic_configs(self, name: str) -> Mapping[str, str]:
        """The settings of a topic that differ from the broker's defaults."""
        return self.image.configs.of(ResourceType.TOPIC, name)

    def contains(self, tp: TopicPartition) -> bool:
        """True if the partition exists."""
        topic = self.topic(tp.topic)
        return topic is not None and 0 <= tp.partition < topic.partition_count


def existing_topic(image: MetadataImage, name: str) -> TopicImage:
    """The topic called `name` of an image. Raises UnknownTopicOrPartitionError."""
    topic = image.topics.by_name.get(name)
    if topic is None:
        raise UnknownTopicOrPartitionError(f"There is no topic {name}")
    return topic
