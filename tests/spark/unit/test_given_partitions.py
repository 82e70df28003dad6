"""Rows that name a partition: one that does not exist is told of before the producer waits for it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from harness.broker.wire import Wire
from harness.mock_time import MockTime
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.errors import UnknownTopicOrPartitionError
from kclient.producer import KafkaProducer
from kclient.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kclient.spark import clients
from kclient.spark.delivery import deliver
from kclient.spark.given_partitions import GivenPartitions
from kclient.spark.output import SinkColumns


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers
        clients.close_all()


@pytest.fixture(scope="module")
def producer(servers: str) -> Iterator[KafkaProducer[bytes, bytes]]:
    with KafkaProducer({"bootstrap.servers": servers}) as made:
        yield made


def new_topic(servers: str, partitions: int) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, num_partitions=partitions)])
    return name


def add_partitions(servers: str, topic: str, count: int) -> None:
    grown = CreatePartitionsTopic(name=topic, count=count, assignments=None)
    with Wire(servers) as wire:
        request = CreatePartitionsRequest(topics=[grown], timeout_ms=10_000, validate_only=False)
        assert wire.ask(request, 2).results[0].error_code == 0


def rows(*partitions: int | None, topics: list[str] | None = None) -> Any:
    columns: dict[str, Any] = {
        "value": [b"v"] * len(partitions),
        "partition": pa.array(partitions, pa.int32()),
    }
    return pa.record_batch(columns if topics is None else {**columns, "topic": topics})


class AddedLate(MockTime):
    """A clock on which partitions are added to a topic while somebody waits."""

    def __init__(self, servers: str, topic: str, count: int) -> None:
        super().__init__()
        self._added = (servers, topic, count)

    def sleep_ms(self, duration_ms: int) -> None:
        super().sleep_ms(duration_ms)
        add_partitions(*self._added)


def given(servers: str, topic: str | None, time: MockTime) -> GivenPartitions:
    names = ("value", "partition") if topic is not None else ("value", "partition", "topic")
    return GivenPartitions({"bootstrap.servers": servers}, SinkColumns(names, topic), time)


def test_a_partition_that_does_not_exist_is_named_with_its_topic_and_how_many_there_are(
    servers: str, producer: KafkaProducer[bytes, bytes]
) -> None:
    topic, time = new_topic(servers, 3), MockTime()
    began_ms = time.monotonic_ms()
    with pytest.raises(
        UnknownTopicOrPartitionError, match=f"^Partition 7 of topic {topic}, which has 3 partitions, does not"
    ):
        given(servers, topic, time).check(producer, rows(0, 7, None, 2))
    assert time.monotonic_ms() - began_ms <= 3000


def test_rows_that_choose_their_topics_are_held_to_the_partitions_of_each(
    servers: str, producer: KafkaProducer[bytes, bytes]
) -> None:
    one, three = new_topic(servers, 1), new_topic(servers, 3)
    check = given(servers, None, MockTime()).check
    check(producer, rows(0, 2, None, topics=[one, three, one]))
    with pytest.raises(UnknownTopicOrPartitionError, match=f"^Partition 1 of topic {one}, which has 1 part"):
        check(producer, rows(1, 2, topics=[one, three]))


def test_partitions_that_were_added_since_the_producer_looked_are_there(
    servers: str, producer: KafkaProducer[bytes, bytes]
) -> None:
    topic = new_topic(servers, 1)
    assert len(producer.partitions_for(topic)) == 1
    add_partitions(servers, topic, 2)
    time = MockTime()
    began_ms = time.monotonic_ms()
    given(servers, topic, time).check(producer, rows(1))
    assert time.monotonic_ms() == began_ms


def test_partitions_that_the_brokers_are_about_to_hear_of_are_waited_for(
    servers: str, producer: KafkaProducer[bytes, bytes]
) -> None:
    topic = new_topic(servers, 1)
    given(servers, topic, AddedLate(servers, topic, 2)).check(producer, rows(1))


def test_rows_that_name_no_partition_ask_nothing() -> None:
    untouched: Any = None
    GivenPartitions({}, SinkColumns(("value",), "t")).check(untouched, rows(7))
    given("nobody:1", "t", MockTime()).check(untouched, rows(None, None))


def test_a_task_that_writes_at_least_once_refuses_such_a_row_as_well(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kclient.spark.given_partitions.PROPAGATION_MS", 0)
    topic = new_topic(servers, 2)
    columns = SinkColumns(("value", "partition"), topic)
    with pytest.raises(UnknownTopicOrPartitionError, match=f"Partition 2 of topic {topic}, which has 2 part"):
        deliver({"bootstrap.servers": servers}, columns, [rows(1), rows(2)])
