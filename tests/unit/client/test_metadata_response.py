"""Metadata answers as snapshots: stale leaders, topics that come back or are others now, and what to ask again."""

from __future__ import annotations

import pytest

from kclient.client.metadata_response import EpochMemory, Picture, read_response
from kclient.client.metadata_snapshot import MetadataSnapshot
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    Errors,
    KafkaError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ID, OTHER_ID = Uuid(b"1" * 16), Uuid(b"2" * 16)


def partition(leader: int, epoch: int = -1, *, number: int = 0, error: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=error, partition_index=number, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2]
    )


def topic(
    *partitions: MetadataResponsePartition, name: str = "t", topic_id: Uuid = ID, error: int = 0
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        partitions=list(partitions),
        is_internal=name[0] == "_",
    )


class Reader:
    """Answers read one after the other, each over the picture of those before."""

    def __init__(self) -> None:
        self.memory = EpochMemory()
        self.snapshot = MetadataSnapshot.bootstrap([("host", 9092)])

    def read(self, *topics: MetadataResponseTopic) -> Picture:
        brokers = [MetadataResponseBroker(node_id=n, host=f"host-{n}", port=9092) for n in (1, 2)]
        response = MetadataResponse(cluster_id="c", controller_id=2, brokers=brokers, topics=list(topics))
        picture = read_response(response, self.snapshot, self.memory)
        self.snapshot = picture.snapshot
        return picture

    def leader(self, tp: TopicPartition = T0) -> int | None:
        found = self.snapshot.partitions.get(tp)
        return None if found is None else found.leader_id


@pytest.fixture
def reader() -> Reader:
    return Reader()


def test_brokers_controller_and_topics_are_taken_over(reader: Reader) -> None:
    picture = reader.read(topic(partition(1, 5), partition(2, 6, number=1)), topic(partition(1), name="__x"))
    assert {node.id: node.host for node in picture.snapshot.nodes.values()} == {1: "host-1", 2: "host-2"}
    assert (picture.snapshot.cluster_id, picture.snapshot.controller_id) == ("c", 2)
    assert (reader.leader(T0), reader.leader(T1)) == (1, 2)
    assert picture.snapshot.topic_ids["t"] == ID
    assert picture.snapshot.internal_topics == {"__x"}
    assert picture.answered == {"t", "__x"}
    assert picture.stale_topics == {}


def test_a_leader_of_an_older_epoch_is_not_believed(reader: Reader) -> None:
    reader.read(topic(partition(1, 5)))
    reader.read(topic(partition(2, 4)))
    assert reader.leader() == 1
    reader.read(topic(partition(2, 6)))
    assert reader.leader() == 2


def test_another_leader_of_the_same_epoch_is_believed(reader: Reader) -> None:
    reader.read(topic(partition(-1, 5)))
    reader.read(topic(partition(1, 5)))
    assert reader.leader() == 1


def test_a_topic_that_was_missing_does_not_come_back_with_an_older_leader(reader: Reader) -> None:
    reader.read(topic(partition(1, 5)))
    reader.read()
    assert reader.leader() is None
    reader.read(topic(partition(2, 4)))
    assert reader.leader() is None, "an older broker must not say who leads"
    reader.read(topic(partition(2, 5)))
    assert reader.leader() == 2


def test_a_topic_with_another_id_begins_with_new_epochs(reader: Reader) -> None:
    reader.read(topic(partition(1, 5)))
    reader.read(topic(partition(2, 0), topic_id=OTHER_ID))
    assert reader.leader() == 2
    assert reader.snapshot.topic_ids["t"] == OTHER_ID


def test_an_id_that_the_broker_does_not_tell_is_no_other_id(reader: Reader) -> None:
    reader.read(topic(partition(1, 5)))
    reader.read(topic(partition(2, 4), topic_id=Uuid.ZERO))
    assert reader.leader() == 1
    reader.read(topic(partition(2, 4)))
    assert reader.leader() == 1


def test_a_broker_without_epochs_is_believed_and_the_next_one_with_them_too(reader: Reader) -> None:
    reader.read(topic(partition(1, 5)))
    reader.read(topic(partition(2)))
    assert reader.leader() == 2
    assert reader.snapshot.partitions[T0].leader_epoch is None
    reader.read(topic(partition(1, 0)))
    assert reader.leader() == 1


def test_epochs_are_those_of_each_partition(reader: Reader) -> None:
    reader.read(topic(partition(1, 9), partition(1, 2, number=1)))
    reader.read(topic(partition(2, 8), partition(2, 3, number=1)))
    assert (reader.leader(T0), reader.leader(T1)) == (1, 2)


def test_a_topic_that_cannot_be_told_of_now_stays_as_it_was_and_is_asked_for_again(reader: Reader) -> None:
    reader.read(topic(partition(1, 5)))
    picture = reader.read(topic(error=int(Errors.LEADER_NOT_AVAILABLE), topic_id=Uuid.ZERO))
    assert reader.leader() == 1
    assert picture.snapshot.topic_ids == {"t": ID}
    assert isinstance(picture.stale_topics["t"], LeaderNotAvailableError)


def test_a_topic_that_does_not_exist_is_gone_and_is_asked_for_again(reader: Reader) -> None:
    reader.read(topic(partition(1, 5)))
    picture = reader.read(topic(error=int(Errors.UNKNOWN_TOPIC_OR_PARTITION), topic_id=Uuid.ZERO))
    assert reader.leader() is None
    assert picture.snapshot.topic_ids == {}
    assert picture.snapshot.missing_topics == {"t"}
    assert isinstance(picture.stale_topics["t"], UnknownTopicOrPartitionError)


@pytest.mark.parametrize(
    ("code", "kept_in"),
    [
        (Errors.INVALID_TOPIC_EXCEPTION, "invalid_topics"),
        (Errors.TOPIC_AUTHORIZATION_FAILED, "unauthorized_topics"),
    ],
)
def test_what_will_not_pass_is_not_asked_for_again(reader: Reader, code: Errors, kept_in: str) -> None:
    picture = reader.read(topic(partition(1, 5)), topic(name="other", error=int(code)))
    assert getattr(picture.snapshot, kept_in) == {"other"}
    assert picture.stale_topics == {}
    assert picture.answered == {"t", "other"}


def test_a_partition_without_a_leader_is_told_of_and_its_topic_asked_for_again(reader: Reader) -> None:
    error = int(Errors.LEADER_NOT_AVAILABLE)
    picture = reader.read(topic(partition(1, 5), partition(-1, 7, number=1, error=error)))
    assert (reader.leader(T0), reader.leader(T1)) == (1, -1)
    assert isinstance(picture.stale_topics["t"], KafkaError)


def test_a_topic_without_a_name_is_passed_over(reader: Reader) -> None:
    nameless = MetadataResponseTopic(name=None, topic_id=OTHER_ID, error_code=int(Errors.UNKNOWN_TOPIC_ID))
    picture = reader.read(nameless, topic(partition(1, 5)))
    assert picture.answered == {"t"}
