"""A task's record batches are written, all or with an error, and it says where they are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, KafkaConsumer
from kclient.errors import KafkaError, RecordTooLargeError
from kclient.spark import clients
from kclient.spark.arrow import TYPES
from kclient.spark.delivery import Tally, Written, deliver
from kclient.spark.output import SinkColumns


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers
        clients.close_all()


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    name = request.node.name
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, num_partitions=2)])
    return name


def records(servers: str, topic: str, count: int) -> list[ConsumerRecord[bytes, bytes]]:
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in (0, 1)])
        consumer.seek_to_beginning()
        found: list[ConsumerRecord[bytes, bytes]] = []
        while len(found) < count:
            found += consumer.poll(10_000)
        return sorted(found, key=lambda record: (record.partition, record.offset))


def write(servers: str, topic: str | None, *batches: Any) -> dict[TopicPartition, Written]:
    names = batches[0].schema.names if batches else []
    return deliver({"bootstrap.servers": servers}, SinkColumns(tuple(names), topic), batches)


def test_every_column_reaches_the_record(servers: str, topic: str) -> None:
    batch = pa.record_batch(
        {
            "key": pa.array(["ä", None]),
            "value": pa.array([b"1", None]),
            "topic": pa.array([topic, topic]),
            "partition": pa.array([1, 1], pa.int32()),
            "headers": pa.array([[("h", b"x"), ("h", None)], None], TYPES["headers"]),
            "timestamp": pa.array([datetime(2020, 1, 2, tzinfo=UTC), None], TYPES["timestamp"]),
        }
    )
    assert write(servers, None, batch) == {TopicPartition(topic, 1): Written(2, 0, 1)}
    first, second = records(servers, topic, 2)
    assert (first.key, first.value, first.timestamp_ms) == ("ä".encode(), b"1", 1_577_923_200_000)
    assert first.headers == (("h", b"x"), ("h", None))
    assert (second.key, second.value, second.headers) == (None, None, ())
    assert second.timestamp_ms > 1_700_000_000_000


def test_the_report_counts_all_batches_of_a_task(servers: str, topic: str) -> None:
    batches = [pa.record_batch({"value": [b"%d" % n] * 100, "key": [b"%d" % n] * 100}) for n in range(20)]
    report = write(servers, topic, *batches)
    assert sum(written.count for written in report.values()) == 2000
    assert all(written.last_offset - written.first_offset + 1 == written.count for written in report.values())
    assert len(records(servers, topic, 2000)) == 2000


def test_a_task_without_records_makes_no_producer(servers: str) -> None:
    clients.close_all()
    assert write(servers, "t") == {}
    assert write(servers, "t", pa.record_batch({"value": pa.array([], pa.binary())})) == {}
    assert clients._clients.producers == {}


def test_the_producer_is_kept_for_the_next_task_and_dropped_after_an_error(servers: str, topic: str) -> None:
    batch = pa.record_batch({"value": [b"1"]})
    write(servers, topic, batch)
    kept = dict(clients._clients.producers)
    write(servers, topic, batch)
    assert clients._clients.producers == kept
    with pytest.raises(RecordTooLargeError):
        write(servers, topic, pa.record_batch({"value": [b"x" * 2_000_000]}))
    assert clients._clients.producers == {}


def test_what_an_attempt_that_fails_has_written_is_known(servers: str, topic: str) -> None:
    def fragile() -> Iterator[Any]:
        yield pa.record_batch({"value": [b"1", b"2"]})
        wait_until(lambda: sum(each.count for each in tally.acknowledged().values()) == 2, 10, "two records")
        yield pa.record_batch({"value": [b"3"]})
        raise ZeroDivisionError

    tally = Tally()
    with pytest.raises(ZeroDivisionError):
        deliver({"bootstrap.servers": servers}, SinkColumns(("value",), topic), fragile(), tally)
    assert tally.handed == 3
    assert sum(each.count for each in tally.acknowledged().values()) in {2, 3}


def test_a_null_topic_is_an_error(servers: str) -> None:
    batch = pa.record_batch({"value": [b"1", b"2"], "topic": pa.array(["t", None])})
    with pytest.raises((ValueError, TypeError), match="topic"):
        write(servers, None, batch)


def test_a_record_that_cannot_be_written_is_an_error_that_names_the_topic() -> None:
    kafka = EmbeddedKafka().start()
    servers = kafka.bootstrap_servers
    settings = {"bootstrap.servers": servers, "max.block.ms": "300"}
    kafka.close()
    with pytest.raises(KafkaError, match="away"):
        deliver(settings, SinkColumns(("value",), "away"), [pa.record_batch({"value": [b"1"]})])


def test_reports_of_tasks_are_added() -> None:
    assert Written(2, 5, 6).also(Written(1, 3, 3)) == Written(3, 3, 6)
    assert Written(2, -1, -1).also(Written(1, 3, 3)) == Written(3, 3, 3)
    assert Written(2, -1, -1).also(Written(1, -1, -1)) == Written(3, -1, -1)
