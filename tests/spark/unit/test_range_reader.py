"""A task reads its range, all of it and nothing else, whatever happened to the log meanwhile."""

from __future__ import annotations

import logging
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from harness.broker.wire import Wire
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaTimeoutError
from kclient.producer import KafkaProducer
from kclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kclient.spark import clients
from kclient.spark.arrow import TYPES
from kclient.spark.data_loss import DataLossError
from kclient.spark.option_names import Use
from kclient.spark.options import SourceOptions, parse_source
from kclient.spark.output import OutputColumn
from kclient.spark.range_reader import read_range
from kclient.spark.ranges import OffsetRange, split

ALL = [OutputColumn(name, name, True) for name in TYPES]
T = TopicPartition("t", 0)
COUNT = 2000


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for number in range(COUNT):
                headers = [("n", b"%d" % number)] if number % 7 == 0 else ()
                producer.send("t", b"value %d" % number, key=b"%d" % number, headers=headers)
                if number % 100 == 0:
                    producer.flush()
        yield kafka.bootstrap_servers
        clients.close_all()


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    """A topic of ten records that is the test's own."""
    name = request.node.name.translate(str.maketrans("[]", "__"))
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name)])
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(10):
            producer.send(name, b"%d" % number)
    return name


def options(servers: str, **more: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": servers, "subscribe": "t"}
    return parse_source({**given, **{name.lower(): value for name, value in more.items()}}, Use.BATCH_READ)


def rows(options: SourceOptions, wanted: OffsetRange) -> list[dict[str, Any]]:
    return [row for batch in read_range(options, ALL, wanted) for row in batch.to_pylist()]


def trim(servers: str, topic: str, offset: int) -> None:
    """Delete all records before `offset`."""
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
            )
        ],
        timeout_ms=10_000,
    )
    with Wire(servers) as wire:
        assert wire.ask(request, 2).topics[0].partitions[0].error_code == 0


def test_a_range_is_read_from_its_start_up_to_its_end(servers: str) -> None:
    found = rows(options(servers), OffsetRange(T, 5, 1995))
    assert [row["offset"] for row in found] == list(range(5, 1995))
    assert [row["value"] for row in found] == [b"value %d" % number for number in range(5, 1995)]
    assert found[2]["headers"] == [{"key": "n", "value": b"7"}]
    assert found[3]["headers"] is None


def test_small_fetches_give_the_same_records(servers: str) -> None:
    small = options(servers, **{"kafka.max.partition.fetch.bytes": "3000"})
    batches = list(read_range(small, ALL, OffsetRange(T, 0, COUNT)))
    assert len(batches) > 10
    assert [row for batch in batches for row in batch.to_pylist()] == rows(
        options(servers), OffsetRange(T, 0, COUNT)
    )


def test_ranges_that_were_cut_give_every_record_once(servers: str) -> None:
    pieces = split([OffsetRange(T, 0, COUNT)], min_partitions=7)
    found = [row["offset"] for piece in pieces for row in rows(options(servers), piece)]
    assert found == list(range(COUNT))


def test_a_consumer_is_kept_for_the_next_range_and_one_with_other_settings_is_another(servers: str) -> None:
    clients.close_all()
    rows(options(servers), OffsetRange(T, 0, 5))
    kept = clients._clients.idle[0].consumer
    rows(options(servers), OffsetRange(T, 900, 905))
    assert [each.consumer for each in clients._clients.idle] == [kept]
    assert kept.assignment() == frozenset()
    rows(options(servers, **{"kafka.client.id": "another"}), OffsetRange(T, 0, 5))
    assert len(clients._clients.idle) == 2


def test_a_reader_that_is_left_early_keeps_no_consumer(servers: str) -> None:
    clients.close_all()
    small = options(servers, **{"kafka.max.partition.fetch.bytes": "3000"})
    batches: Any = read_range(small, ALL, OffsetRange(T, 0, COUNT))
    next(batches)
    batches.close()
    assert clients._clients.idle == []


def test_records_that_were_deleted_before_they_were_read_are_data_loss(servers: str, topic: str) -> None:
    trim(servers, topic, 4)
    wanted = OffsetRange(TopicPartition(topic, 0), 1, 9)
    with pytest.raises(DataLossError, match=r"offsets 1 to 3 are not there any more"):
        rows(options(servers), wanted)


def test_without_failing_the_records_that_are_left_are_read(
    servers: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    trim(servers, topic, 4)
    lenient = options(servers, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        found = rows(lenient, OffsetRange(TopicPartition(topic, 0), 1, 9))
    assert [row["offset"] for row in found] == [4, 5, 6, 7, 8]
    assert "offsets 1 to 3 are not there any more" in caplog.text
    assert rows(lenient, OffsetRange(TopicPartition(topic, 0), 0, 3)) == []


def test_a_range_beyond_the_end_of_the_log_is_data_loss(servers: str, topic: str) -> None:
    wanted = OffsetRange(TopicPartition(topic, 0), 50, 60)
    with pytest.raises(DataLossError, match=r"offsets 50 to 59 were there"):
        rows(options(servers), wanted)
    assert rows(options(servers, failOnDataLoss="false"), wanted) == []


def test_a_log_that_ends_within_the_range_is_read_to_its_end(servers: str, topic: str) -> None:
    wanted = OffsetRange(TopicPartition(topic, 0), 7, 60)
    with pytest.raises(DataLossError, match=r"offsets 10 to 59 were there"):
        rows(options(servers), wanted)
    found = rows(options(servers, failOnDataLoss="false"), wanted)
    assert [row["offset"] for row in found] == [7, 8, 9]


def test_a_topic_that_was_deleted_is_data_loss(servers: str, topic: str) -> None:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.delete_topics([topic])
    wanted = OffsetRange(TopicPartition(topic, 0), 0, 10)
    with pytest.raises(DataLossError, match=f"{topic}-0 was deleted while offset 0"):
        rows(options(servers), wanted)
    assert rows(options(servers, failOnDataLoss="false"), wanted) == []


def test_no_progress_ends_in_an_error_that_names_the_option() -> None:
    kafka = EmbeddedKafka().start()
    away = options(kafka.bootstrap_servers, **{"kafkaConsumer.pollTimeoutMs": "300"})
    kafka.close()
    with pytest.raises(
        KafkaTimeoutError, match=r"t-0: no record came within 300 ms \(kafkaConsumer.pollTimeoutMs\)"
    ):
        rows(away, OffsetRange(T, 0, 1))


def test_memory_is_that_of_a_few_fetches_however_long_the_range(servers: str) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for _ in range(400):
            producer.send_many("long", [b"x" * 1000] * 100)
    fetch_bytes = 1_000_000
    small = options(servers, **{"kafka.max.partition.fetch.bytes": str(fetch_bytes)})
    value = [OutputColumn("value", "value", True)]
    tracemalloc.start()
    try:
        count = sum(
            batch.num_rows
            for batch in read_range(small, value, OffsetRange(TopicPartition("long", 0), 0, 40_000))
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 40_000
    assert peak < 12 * fetch_bytes, "a range of 40 fetches"


class TestCreatedAgain:
    """A range of a topic that was deleted since it was planned, and another topic with its name."""

    @pytest.fixture
    def wanted(self, servers: str, topic: str) -> OffsetRange:
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            topic_id = admin.describe_topics([topic])[topic].topic_id
        return OffsetRange(TopicPartition(topic, 0), 2, 8, topic_id)

    def create_again(self, servers: str, topic: str, count: int) -> Uuid:
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.delete_topics([topic])
            admin.create_topics([NewTopic(topic)])
            now = admin.describe_topics([topic])[topic].topic_id
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for number in range(count):
                producer.send(topic, b"new %d" % number)
        return now

    def test_the_range_of_the_topic_that_it_was_planned_of_is_read(
        self, servers: str, wanted: OffsetRange
    ) -> None:
        for piece in wanted.cut(2):
            assert [row["offset"] for row in rows(options(servers), piece)] == [
                *range(piece.start, piece.end)
            ]

    @pytest.mark.parametrize("count", [1, 30])
    @pytest.mark.parametrize("warm", [False, True])
    def test_nothing_is_read_of_the_other_one(
        self, servers: str, wanted: OffsetRange, count: int, warm: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        if warm:  # a consumer is there that knows the old one
            assert len(rows(options(servers), wanted)) == 6
        else:
            clients.close_all()
        now = self.create_again(servers, wanted.tp.topic, count)
        with pytest.raises(DataLossError, match=f"its id was {wanted.topic_id} and is {now}"):
            rows(options(servers), wanted)
        assert rows(options(servers, failOnDataLoss="false"), wanted) == []
        assert f"Offsets 2 to 7 of {wanted.tp} were to be read of the old one" in caplog.text
        anew = OffsetRange(wanted.tp, 0, count, now)
        assert len(rows(options(servers), anew)) == count
