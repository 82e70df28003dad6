"""Imports of kclient in the processes of Spark that run tasks, looked at from inside of them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipimport import zipimporter

import pytest

from harness.spark import sessions
from harness.topics import new_topic, produce, read_all
from kclient.broker import EmbeddedKafka

pytestmark = [pytest.mark.spark, pytest.mark.heavy, pytest.mark.timeout(300)]

_RECORDS = 20
# One task at a time in a session of its own, so that each process has done nothing else before.
_ALONE = {"spark.master": "local[1,3]"}
_UNUSED = (
    "kclient.admin",
    "kclient.broker",
    "kclient.cli",
    "kclient.security",
    "kclient.spark.resolver",
    "cryptography",
)
_UNUSED_READING = (*_UNUSED, "kclient.producer", "kclient.consumer.assignor")
_UNUSED_WRITING = (*_UNUSED, "kclient.consumer", "kclient.spark.range_reader")


def noting(folder: Path) -> Any:
    """The data source, as "noting": its tasks write into `folder` what their process has imported when they end."""
    from pyspark.sql.datasource import InputPartition, WriterCommitMessage

    from kclient.spark.batch_reader import KafkaBatchReader
    from kclient.spark.data_source import KafkaDataSource
    from kclient.spark.sink import KafkaBatchWriter

    # Classes of a function travel with their code; Spark's processes cannot import this file.
    def note(task: str) -> None:
        finders = [path for path, each in sys.path_importer_cache.items() if isinstance(each, zipimporter)]
        found = {"pid": os.getpid(), "modules": sorted(sys.modules), "zips": finders}
        (folder / f"{task}.json").write_text(json.dumps(found))

    class Reader(KafkaBatchReader):
        def read(self, partition: InputPartition | None) -> Iterator[Any]:
            from kclient.spark import range_reader

            # A task that gets nothing for so long asks by an admin client, which a busy machine is no reason for.
            range_reader._STALL_MS = 100_000
            yield from KafkaBatchReader.read(self, partition)
            note("reading")

    class Writer(KafkaBatchWriter):
        def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
            written = KafkaBatchWriter.write(self, iterator)
            note("writing")
            return written

    class Noting(KafkaDataSource):
        @classmethod
        def name(cls) -> str:
            return "noting"

        def reader(self, schema: Any) -> Any:
            made = KafkaDataSource.reader(self, schema)
            made.__class__ = Reader
            return made

        def writer(self, schema: Any, overwrite: bool) -> Any:
            made = KafkaDataSource.writer(self, schema, overwrite)
            made.__class__ = Writer
            return made

    return Noting


def noted(folder: Path, task: str) -> Any:
    """Notes that a task has left."""
    return json.loads((folder / f"{task}.json").read_text())


def test_a_task_has_imported_its_own_client_alone_and_leaves_no_zip_to_be_read_again(tmp_path: Path) -> None:
    with EmbeddedKafka() as kafka, sessions.session(_ALONE) as spark:
        servers = kafka.bootstrap_servers
        source, sink = new_topic(servers, partitions=1), new_topic(servers)
        produce(servers, source, _RECORDS)
        spark.dataSource.register(noting(tmp_path))
        options = {"kafka.bootstrap.servers": servers}
        frame = spark.read.format("noting").options(**options, subscribe=source).load()
        frame.select("value").write.format("noting").mode("append").options(**options, topic=sink).save()
        assert len(read_all(servers, sink)) == _RECORDS
    reading, writing = (noted(tmp_path, task) for task in ("reading", "writing"))
    assert reading["pid"] != writing["pid"]
    # Spark's own zip is on the path of its workers, and it has them read again before each task.
    assert [*reading["zips"], *writing["zips"]] == []
    read, wrote = (set(each["modules"]) for each in (reading, writing))
    assert "kclient.consumer.kafka_consumer" in read
    assert "kclient.producer.kafka_producer" in wrote
    assert below(read, _UNUSED_READING) == []
    assert below(wrote, _UNUSED_WRITING) == []


def below(modules: set[str], packages: tuple[str, ...]) -> list[str]:
    return sorted(name for name in modules if any(f"{name}.".startswith(f"{each}.") for each in packages))
