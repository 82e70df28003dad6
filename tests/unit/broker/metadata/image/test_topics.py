"""Topics as records make them: new, changed, deleted, and remembered for as long as files of them may be left."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import pytest

from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError
from kclient.protocol.messages.metadata_records import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kclient.protocol.schema import Message

T, U = Uuid.random(), Uuid.random()
A, B = Uuid.random(), Uuid.random()


def topic(name: str = "t", topic_id: Uuid = T, count: int = 2, directory: Uuid = A) -> list[Message]:
    partitions = [
        PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[directory],
        )
        for number in range(count)
    ]
    return [TopicRecord(name=name, topic_id=topic_id), *partitions]


def replayed(records: Iterable[Message], image: MetadataImage | None = None) -> MetadataImage:
    delta = MetadataDelta(image or MetadataImage())
    for record in records:
        delta.replay(record)
    return delta.apply()


def registration(*directories: Uuid) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(broker_id=1, rack=None, log_dirs=list(directories))


def test_a_topic_is_found_by_its_name_and_by_its_id_with_all_its_partitions() -> None:
    topics = replayed(topic()).topics
    made = topics.by_name["t"]
    assert made is topics.by_id[T]
    assert (made.name, made.id, made.partition_count) == ("t", T, 2)
    assert made.topic_partitions() == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert not made.is_internal
    assert made.partitions[1].directory_of(1) == A
    assert made.partitions[1].directory_of(2) == Uuid.ZERO


def test_an_image_stays_as_it_was_when_the_next_one_is_made() -> None:
    before = replayed(topic())
    after = replayed([*topic("u", U), RemoveTopicRecord(topic_id=T)], before)
    assert (set(before.topics.by_name), set(after.topics.by_name)) == ({"t"}, {"u"})
    assert before.topics.deleted == {}


def test_a_leader_that_is_named_begins_a_new_epoch_also_if_it_is_the_same() -> None:
    image = replayed(topic())
    image = replayed([PartitionChangeRecord(partition_id=1, topic_id=T, leader=1)], image)
    changed = image.topics.by_name["t"].partitions[1]
    assert (changed.leader, changed.leader_epoch, changed.partition_epoch) == (1, 1, 1)
    untouched = image.topics.by_name["t"].partitions[0]
    assert (untouched.leader_epoch, untouched.partition_epoch) == (0, 0)


def test_a_change_without_a_leader_keeps_the_leader_and_its_epoch() -> None:
    image = replayed(topic())
    change = PartitionChangeRecord(partition_id=0, topic_id=T, directories=[B], isr=[])
    changed = replayed([change], image).topics.by_name["t"].partitions[0]
    assert changed == attrs.evolve(
        image.topics.by_name["t"].partitions[0], directories=(B,), isr=(), partition_epoch=1
    )


def test_replicas_that_stay_keep_their_directories() -> None:
    change = PartitionChangeRecord(partition_id=0, topic_id=T, replicas=[2, 1])
    changed = replayed([*topic(), change]).topics.by_name["t"].partitions[0]
    assert (changed.replicas, changed.directories) == ((2, 1), (Uuid.ZERO, A))


@pytest.mark.parametrize(
    "records",
    [
        [*topic(), *topic()],
        [*topic(), *topic("t", U)],
        [RemoveTopicRecord(topic_id=T)],
        [*topic(), RemoveTopicRecord(topic_id=T), RemoveTopicRecord(topic_id=T)],
        [topic()[1]],
        [PartitionChangeRecord(partition_id=0, topic_id=T)],
        [*topic(), PartitionChangeRecord(partition_id=2, topic_id=T)],
        [*topic(), PartitionChangeRecord(partition_id=-1, topic_id=T)],
        [*topic(), PartitionRecord(partition_id=-1, topic_id=T)],
        [topic()[0], topic()[2]],
    ],
    ids=[
        "twice", "of the name of another", "deleted before it was made", "deleted twice", "partition of nothing",
        "change of nothing", "change of no partition", "change of a negative number", "a negative number", "a gap",
    ],
)  # fmt: skip
@pytest.mark.parametrize("at_once", [True, False])
def test_records_that_contradict_each_other_are_an_error(records: list[Message], at_once: bool) -> None:
    def replay() -> None:
        image = MetadataImage()
        for batch in [records] if at_once else [records[:-1], records[-1:]]:
            image = replayed(batch, image)

    with pytest.raises(KafkaStorageError):
        replay()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_deleted_topic_is_gone_with_its_settings_and_remembered(at_once: bool) -> None:
    setting = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5")
    records = [*topic(), setting, RemoveTopicRecord(topic_id=T)]
    image = replayed(records) if at_once else replayed(records[-1:], replayed(records[:-1]))
    assert (image.topics.by_name, image.topics.by_id, image.configs.resources) == ({}, {}, {})
    gone = image.topics.deleted[T]
    assert (gone.name, gone.directories) == ("t", {A})


def test_a_name_is_free_again_in_the_change_that_deletes_it() -> None:
    image = replayed([RemoveTopicRecord(topic_id=T), *topic("t", U, 1)], replayed(topic()))
    assert (image.topics.by_name["t"].id, set(image.topics.by_id), set(image.topics.deleted)) == (U, {U}, {T})


def test_a_deleted_topic_is_forgotten_when_every_directory_of_it_was_registered() -> None:
    first, second = topic(count=1), topic(count=2, directory=B)
    image = replayed([*first, second[2], RemoveTopicRecord(topic_id=T)])
    assert image.topics.deleted[T].directories == {A, B}
    image = replayed([registration(A)], image)
    assert image.topics.deleted[T].directories == {B}
    assert replayed([registration(B)], image).topics.deleted == {}


@pytest.mark.parametrize("registered_before", [True, False])
def test_a_snapshot_remembers_deleted_topics_and_no_registration_before_it_takes_them_away(
    registered_before: bool,
) -> None:
    records = [*topic(), RemoveTopicRecord(topic_id=T), *topic("t", U)]
    image = replayed([registration(A), *records] if registered_before else records)
    assert set(image.topics.deleted) == {T}
    assert replayed(image.records()) == image
    assert replayed(image.topics.without_deleted(T).records()).topics.deleted == {}


@pytest.mark.parametrize(("name", "cleared"), [("t", {T}), ("", {T, U})])
def test_eligible_leader_replicas_are_forgotten_of_a_topic_or_of_all(name: str, cleared: set[Uuid]) -> None:
    eligible = [
        PartitionChangeRecord(
            partition_id=1, topic_id=topic_id, eligible_leader_replicas=[1], last_known_elr=[2]
        )
        for topic_id in (T, U)
    ]
    before = replayed([*topic(), *topic("u", U), *eligible])
    after = replayed([ClearElrRecord(topic_name=name)], before)
    for topic_id in (T, U):
        was, now = before.topics.by_id[topic_id].partitions, after.topics.by_id[topic_id].partitions
        assert (was[1].eligible_leader_replicas, was[1].last_known_elr) == ((1,), (2,))
        if topic_id in cleared:
            assert now == (was[0], attrs.evolve(was[1], eligible_leader_replicas=(), last_known_elr=()))
        else:
            assert now == was


def test_eligible_leader_replicas_of_a_topic_that_is_unknown_are_an_error() -> None:
    with pytest.raises(KafkaStorageError, match="a record of topic gone, which is unknown"):
        replayed([*topic(), ClearElrRecord(topic_name="gone")])
