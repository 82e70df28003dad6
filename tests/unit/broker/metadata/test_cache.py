"""Topics as they are now: by name, by id, and after each change."""

from __future__ import annotations

import pytest

from kclient.broker.metadata.cache import MetadataCache
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.topics import TopicImage
from kclient.broker.metadata.registration import partition_record
from kclient.broker.metadata.topic_names import INTERNAL_TOPICS
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import UnknownTopicOrPartitionError
from kclient.protocol.messages.metadata_records import ConfigRecord, RemoveTopicRecord, TopicRecord
from kclient.protocol.schema import Message


class Published:
    """A cache, and the changes that it hears of."""

    def __init__(self) -> None:
        self.cache = MetadataCache()

    def publish(self, *records: Message) -> None:
        delta = MetadataDelta(self.cache.image)
        for record in records:
            delta.replay(record)
        self.cache.on_metadata_update(delta, delta.apply())

    def topic(self, name: str, partitions: int = 1) -> TopicImage:
        """Make a topic."""
        topic_id = Uuid.random()
        added = [
            partition_record(topic_id, number, 1, Uuid.random(), leader=1) for number in range(partitions)
        ]
        self.publish(TopicRecord(name=name, topic_id=topic_id), *added)
        return self.cache.existing_topic(name)


@pytest.fixture
def published() -> Published:
    return Published()


def test_a_topic_is_found_by_its_name_and_by_its_id(published: Published) -> None:
    topics, cache = [published.topic("a"), published.topic("b")], published.cache
    for each in topics:
        assert cache.topic(each.name) is cache.topic_by_id(each.id) is cache.existing_topic(each.name) is each


def test_a_topic_that_there_is_not_is_none_or_an_error(published: Published) -> None:
    published.topic("a")
    assert (published.cache.topic("A"), published.cache.topic_by_id(Uuid.ZERO)) == (None, None)
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic A"):
        published.cache.existing_topic("A")


def test_topics_are_in_order_of_their_names_whenever_they_came(published: Published) -> None:
    for name in ("b", "c", "a", "B"):
        published.topic(name)
    assert [each.name for each in published.cache.topics()] == ["B", "a", "b", "c"]


@pytest.mark.parametrize(("number", "there"), [(-1, False), (0, True), (2, True), (3, False)])
def test_a_partition_is_there_if_its_number_is_below_the_count(
    published: Published, number: int, there: bool
) -> None:
    published.topic("a", 3)
    assert published.cache.contains(TopicPartition("a", number)) is there
    assert not published.cache.contains(TopicPartition("b", number))


def test_a_changed_topic_takes_the_place_of_what_it_was(published: Published) -> None:
    old = published.topic("a")
    published.topic("b")
    published.publish(partition_record(old.id, 1, 1, Uuid.random(), leader=1))
    new = published.cache.topic("a")
    assert new is published.cache.topic_by_id(old.id)
    assert new is not None
    assert (old.partition_count, new.partition_count, len(published.cache.topics())) == (1, 2, 2)


def test_a_removed_topic_is_gone_by_its_id_too_and_the_others_stay(published: Published) -> None:
    a, b = published.topic("a"), published.topic("b")
    cache = published.cache
    published.publish(RemoveTopicRecord(topic_id=a.id))
    assert (cache.topic("a"), cache.topic_by_id(a.id), cache.topics()) == (None, None, [b])
    assert cache.topic_by_id(b.id) is b
    again = published.topic("a")
    assert (cache.topic_by_id(a.id), cache.topic_by_id(again.id)) == (None, again)


def test_settings_are_those_of_the_topic_and_none_for_what_there_is_not(published: Published) -> None:
    published.topic("a")
    published.publish(ConfigRecord(resource_type=2, resource_name="a", name="retention.ms", value="5"))
    assert published.cache.topic_configs("a") == {"retention.ms": "5"}
    assert published.cache.topic_configs("b") == {}


def test_a_list_of_topics_stays_as_it_was_when_they_change(published: Published) -> None:
    published.topic("a")
    seen = published.cache.topics()
    published.topic("b")
    assert [each.name for each in seen] == ["a"]


def test_partitions_count_from_zero_and_internal_topics_are_known_by_their_names(
    published: Published,
) -> None:
    assert published.topic("a", 2).topic_partitions() == [TopicPartition("a", 0), TopicPartition("a", 1)]
    assert TopicImage("a", Uuid.random()).topic_partitions() == []
    assert all(TopicImage(name, Uuid.random()).is_internal for name in INTERNAL_TOPICS)
    assert not TopicImage("__mine", Uuid.random()).is_internal
