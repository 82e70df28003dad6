"""The batch reader, without Spark's JVM: tasks on the driver, records on the executor."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import datasource

from kclient.broker import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.producer import KafkaProducer
from kclient.spark import clients
from kclient.spark.batch_reader import KafkaBatchReader
from kclient.spark.condition import Condition
from kclient.spark.option_names import Use
from kclient.spark.options import parse_source
from kclient.spark.ranges import OffsetRange
from kclient.spark.schema import output_columns, source_schema

T0 = TopicPartition("t", 0)


def make(servers: str = "127.0.0.1:1", **options: str) -> KafkaBatchReader:
    given = {"kafka.bootstrap.servers": servers, "subscribe": "t", **options}
    parsed = parse_source({name.lower(): value for name, value in given.items()}, Use.BATCH_READ)
    return KafkaBatchReader(parsed, output_columns(source_schema(False)))


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with ten records of `t`."""
    with EmbeddedKafka() as kafka:
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for number in range(10):
                producer.send("t", b"%d" % number, partition=0)
        yield kafka.bootstrap_servers
        clients.close_all()


def ranges(reader: KafkaBatchReader) -> list[Any]:
    found = [each.value for each in reader.partitions()]
    assert all(each.topic_id is not None for each in found)
    return [OffsetRange(each.tp, each.start, each.end) for each in found]


def values(reader: KafkaBatchReader, task: Any) -> list[Any]:
    return [value for batch in reader.read(task) for value in batch.column("value").to_pylist()]


def test_a_task_without_a_range_reads_nothing() -> None:
    reader = make()
    assert list(reader.read(datasource.InputPartition(None))) == []
    assert list(reader.read(None)) == []


def test_each_range_is_a_task(servers: str) -> None:
    assert ranges(make(servers)) == [OffsetRange(T0, 0, 10)]
    cut = ranges(make(servers, maxRecordsPerPartition="5"))
    assert cut == [OffsetRange(T0, 0, 5), OffsetRange(T0, 5, 10)]


def test_what_the_query_asks_of_records_makes_the_tasks_smaller(servers: str) -> None:
    reader = make(servers)
    reader.condition = Condition(least_offset=7)
    assert ranges(reader) == [OffsetRange(T0, 7, 10)]
    reader.condition = Condition(partitions=frozenset({1}))
    assert ranges(reader) == []


def test_a_task_reads_its_range_with_a_reader_that_came_from_the_driver(servers: str) -> None:
    reader = make(servers, maxRecordsPerPartition="5")
    [_, task] = reader.partitions()
    travelled, its = pickle.loads(pickle.dumps((reader, task)))
    assert values(travelled, its) == [b"5", b"6", b"7", b"8", b"9"]
