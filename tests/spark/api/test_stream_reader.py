"""The stream reader, without Spark's JVM: what it plans with, and what it tells Spark of its limits."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from pyspark.sql import datasource

from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError
from kclient.spark import stream_reader
from kclient.spark.limits import TriggerLimits
from kclient.spark.option_names import Use
from kclient.spark.options import parse_source
from kclient.spark.ranges import OffsetRange
from kclient.spark.schema import output_columns, source_schema
from kclient.spark.stream_reader import KafkaStreamReader

T0 = TopicPartition("t", 0)


def make(**options: str) -> KafkaStreamReader:
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", **options}
    parsed = parse_source({name.lower(): value for name, value in given.items()}, Use.STREAM_READ)
    return KafkaStreamReader(parsed, output_columns(source_schema(False)))


class NotedPlanner:
    """Stands for the planner, which needs a cluster: writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.latest: dict[str, Any] | None = {"t": {"0": 9}}

    def latest_offset(self, start: Any, *, all_available: bool) -> dict[str, Any]:
        self.asked.append((start, all_available))
        return {"t": {"0": 5}}

    def report_latest(self) -> dict[str, Any] | None:
        return self.latest

    def prepare_for_available_now(self) -> None:
        self.asked.append("available now")

    def plan(self, start: Any, end: Any) -> list[OffsetRange]:
        return [OffsetRange(T0, start["t"]["0"], end["t"]["0"]), OffsetRange(T0, 0, 1)]

    def commit(self, end: Any) -> None:
        self.asked.append(("commit", end))


@pytest.fixture
def planner() -> NotedPlanner:
    return NotedPlanner()


@pytest.fixture
def reader(planner: NotedPlanner) -> KafkaStreamReader:
    made = make()
    made._made = planner  # type: ignore[assignment]
    return made


def test_a_stream_reader_leaves_its_plans_behind_when_it_is_pickled() -> None:
    reader = make()
    assert reader.initialOffset() == {"kclient": "initial"}
    assert reader._made is not None
    assert pickle.loads(pickle.dumps(reader))._made is None


def test_the_default_limit_lets_trigger_once_be_told_apart() -> None:
    limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="PySpark 4.2 and newer")

    def default(**options: str) -> Any:
        return make(**options).getDefaultReadLimit()

    assert default() == limits.ReadAllAvailable()
    assert default(maxOffsetsPerTrigger="7") == limits.ReadMaxRows(7)
    assert default(minOffsetsPerTrigger="7") == limits.ReadMaxRows(2**63 - 1)
    assert default(maxBytesPerTrigger="7") == limits.ReadMaxRows(2**63 - 1)
    assert issubclass(KafkaStreamReader, limits.SupportsTriggerAvailableNow)


@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger"])
def test_a_spark_that_does_not_tell_its_trigger_needs_to_be_told_it_where_there_are_limits(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def limits(**options: str) -> TriggerLimits:
        return make(**options)._options.limits

    monkeypatch.setattr(stream_reader, "SPARK_HAS_LIMITS", False)
    assert not limits().any
    with pytest.raises(ConfigError, match=r"needs the option kclient\.trigger"):
        limits(**{name: "7"})
    assert limits(**{name: "7", "kclient.trigger": "processing"}).any
    assert not limits(**{name: "7", "kclient.trigger": "availableNow"}).any
    monkeypatch.setattr(stream_reader, "SPARK_HAS_LIMITS", True)
    assert limits(**{name: "7"}).any
    assert limits(**{name: "7", "kclient.trigger": "availableNow"}).any  # which Spark itself says


def test_a_trigger_without_limits_needs_not_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_reader, "SPARK_HAS_LIMITS", False)
    assert make(**{"kclient.trigger": "availableNow"})._options.limits == TriggerLimits()


def test_a_reader_plans_with_one_planner_for_all_batches() -> None:
    reader = make()
    assert reader._planner is reader._planner


@pytest.mark.parametrize(("name", "everything"), [("ReadAllAvailable", True), ("ReadMaxRows", False)])
def test_spark_says_by_its_limit_whether_everything_is_wanted(
    reader: KafkaStreamReader, planner: NotedPlanner, name: str, everything: bool
) -> None:
    start = {"t": {"0": 1}}
    limit: Any = type(name, (), {})()
    assert reader.latestOffset(start, limit) == {"t": {"0": 5}}
    assert planner.asked == [(start, everything)]


def test_a_spark_without_limits_asks_for_a_batch_with_no_arguments(
    reader: KafkaStreamReader, planner: NotedPlanner
) -> None:
    assert reader.latestOffset() == {"t": {"0": 5}}
    assert planner.asked == [(None, False)]


def test_ends_that_are_not_known_are_not_reported(reader: KafkaStreamReader, planner: NotedPlanner) -> None:
    assert reader.reportLatestOffset() == {"t": {"0": 9}}
    planner.latest = None
    assert reader.reportLatestOffset() is None


def test_each_range_is_a_task_and_travels_to_it(reader: KafkaStreamReader) -> None:
    tasks = reader.partitions({"t": {"0": 2}}, {"t": {"0": 4}})
    assert all(type(each) is datasource.InputPartition for each in tasks)
    assert [pickle.loads(pickle.dumps(each)).value for each in tasks] == [
        OffsetRange(T0, 2, 4),
        OffsetRange(T0, 0, 1),
    ]


def test_the_end_of_a_batch_and_the_end_for_available_now_are_the_planners(
    reader: KafkaStreamReader, planner: NotedPlanner
) -> None:
    reader.prepareForTriggerAvailableNow()
    reader.commit({"t": {"0": 4}})
    assert planner.asked == ["available now", ("commit", {"t": {"0": 4}})]
