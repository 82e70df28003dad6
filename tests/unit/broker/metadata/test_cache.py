"""Topics as they are now: by name, by id, and after each change."""

from __future__ import annotations

import pytest

from kclient.broker.metadata.cache import INTERNAL_TOPICS, MetadataCache, TopicImage
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import UnknownTopicOrPartitionError


def topic(name: str, partitions: int = 1) -> TopicImage:
    return TopicImage(name, Uuid.random(), partitions)


def test_a_topic_is_found_by_its_name_and_by_its_id() -> None:
    a, b = topic("a"), topic("b")
    cache = MetadataCache([a])
    cache.put(b)
    for each in (a, b):
        assert cache.topic(each.name) is cache.topic_by_id(each.id) is cache.existing_topic(each.name) is each


def test_a_topic_that_there_is_not_is_none_or_an_error() -> None:
    cache = MetadataCache([topic("a")])
    assert (cache.topic("A"), cache.topic_by_id(Uuid.ZERO)) == (None, None)
    with pytest.raises(UnknownTopicOrPartitionError, match="no topic A"):
        cache.existing_topic("A")


def test_topics_are_in_order_of_their_names_whenever_they_came() -> None:
    cache = MetadataCache([topic("b"), topic("c")])
    cache.put(topic("a"))
    cache.put(topic("B"))
    assert [each.name for each in cache.topics()] == ["B", "a", "b", "c"]


@pytest.mark.parametrize(("number", "there"), [(-1, False), (0, True), (2, True), (3, False)])
def test_a_partition_is_there_if_its_number_is_below_the_count(number: int, there: bool) -> None:
    cache = MetadataCache([topic("a", 3)])
    assert cache.contains(TopicPartition("a", number)) is there
    assert not cache.contains(TopicPartition("b", number))


def test_a_changed_topic_takes_the_place_of_what_it_was() -> None:
    old = topic("a")
    cache = MetadataCache([old, topic("b")])
    new = TopicImage("a", old.id, 5)
    cache.put(new)
    assert cache.topic("a") is cache.topic_by_id(old.id) is new
    assert len(cache.topics()) == 2


def test_a_removed_topic_is_gone_by_its_id_too_and_the_others_stay() -> None:
    a, b = topic("a"), topic("b")
    cache = MetadataCache([a, b])
    cache.remove("a")
    cache.remove("never")
    assert (cache.topic("a"), cache.topic_by_id(a.id), cache.topics()) == (None, None, [b])
    assert cache.topic_by_id(b.id) is b
    again = topic("a")
    cache.put(again)
    assert (cache.topic_by_id(a.id), cache.topic_by_id(again.id)) == (None, again)


def test_a_list_of_topics_stays_as_it_was_when_they_change() -> None:
    cache = MetadataCache([topic("a")])
    seen = cache.topics()
    cache.put(topic("b"))
    cache.remove("a")
    assert [each.name for each in seen] == ["a"]


def test_partitions_count_from_zero_and_internal_topics_are_known_by_their_names() -> None:
    assert topic("a", 2).topic_partitions() == [TopicPartition("a", 0), TopicPartition("a", 1)]
    assert topic("a", 0).topic_partitions() == []
    assert all(topic(name).is_internal for name in INTERNAL_TOPICS)
    assert not topic("__mine").is_internal
