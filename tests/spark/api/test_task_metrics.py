"""Numbers of tasks, added up as Spark does it, without its JVM."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.accumulators import Accumulator, _accumulatorRegistry
from pyspark.errors import AnalysisException

from kclient.broker import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.errors import IllegalStateError
from kclient.producer import KafkaProducer
from kclient.spark import KafkaTaskMetrics, clients, register
from kclient.spark.option_names import Use
from kclient.spark.options import parse_source
from kclient.spark.ranges import OffsetRange
from kclient.spark.read_task import read_task
from kclient.spark.schema import output_columns, source_schema
from kclient.spark.task_metrics import Counted, TaskNumbers

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def spark() -> Iterator[Any]:
    """Stands for a session, which needs Java: makes accumulators, and notes what is registered."""
    registered: list[type] = []

    def accumulator(value: Any, param: Any) -> Any:
        return Accumulator(7, value, param)

    yield SimpleNamespace(
        sparkContext=SimpleNamespace(accumulator=accumulator),
        dataSource=SimpleNamespace(register=registered.append),
        conf=SimpleNamespace(get=lambda _name: "", getAll={}),
        registered=registered,
    )
    _accumulatorRegistry.clear()


def test_numbers_are_added_by_query_direction_and_partition(spark: Any) -> None:
    metrics = KafkaTaskMetrics(spark)
    add = metrics.counter.add
    add({Counted("q", True, T0): TaskNumbers(1, 10, 10, 100, 5, 7), Counted("q", True, T1): TaskNumbers(1)})
    add({Counted("q", True, T0): TaskNumbers(1, 30, 30, 300, 1, 2)})
    add({Counted("q", False, T0): TaskNumbers(1, 8, 8)})
    add({Counted(None, True, T0): TaskNumbers(1, 9, 9)})
    assert metrics.read("q") == {T0: TaskNumbers(2, 40, 30, 400, 6, 9), T1: TaskNumbers(1)}
    assert metrics.written("q") == {T0: TaskNumbers(1, 8, 8)}
    assert metrics.read() == {T0: TaskNumbers(1, 9, 9)}
    assert metrics.read("another") == {}


def test_the_registered_class_travels_with_the_accumulator(spark: Any) -> None:
    register(spark, KafkaTaskMetrics(spark))
    [made] = spark.registered
    _accumulatorRegistry.clear()
    travelled = pickle.loads(cloudpickle.dumps(made))
    assert travelled.name() == "kclient"
    assert travelled.counter.aid == 7
    # By which a worker sends what was added.
    assert _accumulatorRegistry == {7: travelled.counter}


def test_a_spark_that_has_found_the_format_by_itself_cannot_count(spark: Any) -> None:
    def refuse(source: type) -> None:
        raise AnalysisException("[DATA_SOURCE_ALREADY_EXISTS] Data source 'kclient' already exists.")

    spark.dataSource.register = refuse
    register(spark)
    with pytest.raises(IllegalStateError, match=r"KafkaTaskMetrics needs PySpark 4\.1"):
        register(spark, KafkaTaskMetrics(spark))


def test_a_task_that_reads_counts_and_logs_what_it_has_read(
    spark: Any, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = KafkaTaskMetrics(spark)
    with EmbeddedKafka() as kafka:
        servers = kafka.bootstrap_servers
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for number in range(10):
                producer.send("t", b"%d" % number, key=b"kk", partition=0)
        options = parse_source({"kafka.bootstrap.servers": servers, "subscribe": "t"}, Use.BATCH_READ)
        output = output_columns(source_schema(False))
        with caplog.at_level(logging.INFO, "kclient.spark.report"):
            batches = list(read_task(options, output, OffsetRange(T0, 0, 10), metrics.counter))
        clients.close_all()
    assert sum(each.num_rows for each in batches) == 10
    numbers = metrics.read()[T0]
    assert (numbers.tasks, numbers.records, numbers.most_records, numbers.bytes) == (1, 10, 10, 30)
    assert 0 <= numbers.fetch_ms <= numbers.task_ms
    [line] = [json.loads(each.getMessage()) for each in caplog.records if each.name == "kclient.spark.report"]
    assert (line["topic"], line["partition"], line["from"], line["to"]) == ("t", 0, 0, 10)
    assert (line["records"], line["bytes"]) == (10, 30)
