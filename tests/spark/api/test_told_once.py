"""Options without effect: told by one of the processes that Spark plans a query in, and by no other."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import datasource
from pyspark.sql.types import BinaryType, StructField, StructType

from kclient.spark import remarks
from kclient.spark.data_source import KafkaDataSource

WRITTEN = StructType([StructField("value", BinaryType())])
TOLD = "Option subscribee is not known and is ignored, as by Spark's own connector. Did you mean 'subscribe'?"


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    monkeypatch.setattr(remarks, "_said", set())
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        yield


def source(**options: str) -> Any:
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribee": "x", **options}
    return KafkaDataSource(datasource.CaseInsensitiveDict(given))


def in_another_process(made: Any) -> Any:
    return pickle.loads(pickle.dumps(made))


def test_a_batch_read_tells_it_where_it_is_planned(caplog: pytest.LogCaptureFixture) -> None:
    made = source(subscribe="t")
    schema = made.schema()
    assert caplog.messages == []
    in_another_process(made).reader(schema)
    assert caplog.messages == [TOLD]


def test_a_streaming_read_tells_it_where_it_is_planned(caplog: pytest.LogCaptureFixture) -> None:
    made = source(subscribe="t")
    planning = in_another_process(made).streamReader(made.schema())
    of_the_tasks = in_another_process(made).streamReader(made.schema())
    in_another_process(of_the_tasks)
    assert caplog.messages == []
    for _ in range(2):
        assert planning._planner
    assert caplog.messages == [TOLD]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_streaming_write_tells_it_once_and_not_where_micro_batches_are_committed(
    caplog: pytest.LogCaptureFixture, overwrite: bool
) -> None:
    options = {"topic": "t", "checkpointLocation": "c"}
    in_another_process(source(**options)).streamWriter(WRITTEN, overwrite)
    assert caplog.messages == []
    for _ in range(3):
        source(**options).streamWriter(WRITTEN, overwrite)
    assert caplog.messages == [TOLD]


def test_a_batch_write_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    source(topic="t").writer(WRITTEN, False)
    assert caplog.messages == [TOLD]
