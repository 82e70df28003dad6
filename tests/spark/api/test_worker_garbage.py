"""Tasks that read and that write spare Spark the look at what stays in their process."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, StructType

from kclient.broker import EmbeddedKafka
from kclient.producer import KafkaProducer
from kclient.spark import clients, worker_garbage
from kclient.spark.data_source import KafkaDataSource
from kclient.spark.schema import source_schema


class Context:
    """Stands for that of a task, which Spark makes."""

    def getLocalProperty(self, name: str) -> str | None:
        return None

    def partitionId(self) -> int:
        return 0

    def attemptNumber(self) -> int:
        return 0

    def stageId(self) -> int:
        return 0


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaDataSource]:
    monkeypatch.setattr(worker_garbage, "_begun", 0)
    with EmbeddedKafka() as kafka:
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            producer.send("t", b"v")
        options = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": "t", "topic": "t"}
        yield KafkaDataSource(options)
        clients.close_all()
    gc.unfreeze()


def read(source: KafkaDataSource) -> None:
    reader = source.reader(source_schema(False))
    for task in reader.partitions():
        assert [batch.num_rows for batch in reader.read(task)]


def write(source: KafkaDataSource) -> None:
    writer = source.writer(StructType().add("value", BinaryType()), False)
    writer.write(iter([pa.RecordBatch.from_pydict({"value": [b"v"]})]))  # type: ignore[arg-type]


@pytest.mark.parametrize("work", [read, write])
def test_tasks_of_sparks_alone_are_counted(
    source: KafkaDataSource, monkeypatch: pytest.MonkeyPatch, work: Callable[[KafkaDataSource], None]
) -> None:
    work(source)
    assert worker_garbage._begun == 0
    monkeypatch.setattr(TaskContext, "get", Context)
    for number in (1, 2):
        work(source)
        assert worker_garbage._begun == number
    assert gc.get_freeze_count() > 0
