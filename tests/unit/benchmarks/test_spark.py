"""The bookkeeping of the comparison with Spark's own connector: turns, checks, targets. No Spark here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import output, spark, spark_comparison, spark_report
from benchmarks.spark_comparison import Line, SparkComparison


def line(operation: str, name: str, *seconds: float, rss: int = 0, records: int = 1_000_000) -> Line:
    """Runs that took so many seconds, and as much CPU."""
    return Line(operation, name, records, list(seconds), list(seconds), rss)


class NoSpark(SparkComparison):
    """Every session gives the same figures and writes down what it was asked for."""

    asked: list[tuple[Any, ...]]
    topics = 0
    written = 0
    broken = ""

    def _session(
        self, operation: str, name: str, topic: str, records: int, *, tasks: int = 2, **_: Any
    ) -> Line:
        self.asked.append((operation, name, records, tasks))
        if operation == self.broken:
            raise RuntimeError("Spark ended with 1")
        return line(operation, name, 1.0, 2.0, rss=100, records=records)

    def _create(self) -> str:
        self.topics += 1
        return f"topic-{self.topics}"

    def _delete(self, topic: str) -> None:
        self.asked.append(("delete", topic))

    def _check_written(self, topic: str) -> None:
        if self.written:
            raise ValueError(f"{self.written} records were written")


def comparison() -> NoSpark:
    made = NoSpark("nowhere:1", ["a.jar"], 1000, 2, 2, lambda _: None)
    made.asked = []
    return made


def test_formats_take_turns_and_another_one_begins_each_time() -> None:
    made = comparison()
    made.measure(["stream"])
    assert [each[:2] for each in made.asked] == [
        ("fill", "kafka"),
        ("stream", "kclient"),
        ("stream", "kafka"),
        ("stream", "kafka"),
        ("stream", "kclient"),
    ]
    assert [(each.name, each.seconds) for each in made.lines] == [
        ("kclient", [1.0, 2.0, 1.0, 2.0]),
        ("kafka", [1.0, 2.0, 1.0, 2.0]),
    ]


def test_what_is_written_goes_to_a_topic_that_is_deleted() -> None:
    made = comparison()
    made.measure(["batch_write"])
    assert [each[1] for each in made.asked if each[0] == "delete"] == [f"topic-{n}" for n in (2, 3, 4, 5)]


def test_records_that_were_not_written_make_the_measurement_fail() -> None:
    made = comparison()
    made.written = 5
    made.measure(["batch_write", "stream"])
    assert {each.operation for each in made.lines} == {"stream"}
    assert made.failed == [
        f"batch_write {name}: 5 records were written" for name in ("kclient", "kafka", "kafka", "kclient")
    ]


def test_without_anything_to_read_nothing_is_measured() -> None:
    made = comparison()
    made.broken = "fill"
    made.measure(["batch_read"])
    assert made.failed == ["filling a topic: Spark ended with 1"]
    assert made.lines == []


def test_memory_is_that_of_one_task_for_a_fourth_and_for_all() -> None:
    made = comparison()
    made.measure(["memory"])
    assert made.asked[1:] == [("memory", "kclient", 250, 1), ("memory", "kclient", 1000, 1)]


@pytest.mark.parametrize(("seconds", "met"), [(1.5, True), (1.6, False)])
def test_a_target_is_met_by_the_ratio_of_the_medians(seconds: float, met: bool) -> None:
    lines = [line("batch_read", "kclient", 0.5, seconds, 9.0), line("batch_read", "kafka", 3.0, 2.0, 4.0)]
    (found,) = spark_report.verdicts(lines)
    assert found.met is met
    assert found.noise == "0.22 - 8.00"


@pytest.mark.parametrize(("seconds", "met"), [(0.3, True), (0.301, False)])
def test_a_micro_batch_may_be_behind_by_a_time(seconds: float, met: bool) -> None:
    lines = [
        line("micro_batch", "kclient", 0.1, seconds, 9.0, records=1000),
        line("micro_batch", "kafka", 0.15, 0.2, 0.4, records=1000),
    ]
    (found,) = spark_report.verdicts(lines)
    assert (found.reached, found.met) == (f"{1000 * (seconds - 0.2):+.0f} ms", met)
    assert spark_report.figures(lines).rows[0][2] == f"{1000 * seconds:.0f} ms"


def test_the_parts_of_a_write_are_measured_by_sinks_that_do_ever_more_of_it() -> None:
    made = comparison()
    made.measure(["write_parts"])
    asked = [each[1:3] for each in made.asked if each[0] == "write_parts"]
    assert asked[:4] == [("noop", 1000), ("drain", 1000), ("kclient", 1000), ("kclient", 2)]
    assert sorted(asked[4:]) == sorted(asked[:4])
    assert [(each.name, each.records) for each in made.lines] == asked[:4]
    assert list(spark_report.verdicts(made.lines)) == []


def test_a_target_without_both_formats_is_left_out() -> None:
    assert list(spark_report.verdicts([line("stream", "kclient", 1.0)])) == []


@pytest.mark.parametrize(("more_mb", "met"), [(33, True), (34, False)])
def test_memory_may_grow_by_a_few_fetches(more_mb: int, met: bool) -> None:
    read = [
        line("memory", "kclient", 1.0, rss=(100 + more_mb) * 1_000_000, records=4000),
        line("memory", "kclient", 1.0, rss=100_000_000, records=1000),
    ]
    (found,) = spark_report.verdicts(read)
    assert (found.name, found.met) == ("worker that reads 4x as much", met)


def test_every_run_is_written_beside_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "RESULTS", tmp_path)
    monkeypatch.setattr(output.metadata, "version", lambda _: "1")
    monkeypatch.setattr(spark_report.real_kafka(), "classpath", lambda: "kafka-clients-4.3.1.jar")
    made = comparison()
    made.lines = [line("stream", "kclient", 1.0, 2.0), line("stream", "kafka", 2.0, 4.0)]
    path = spark_report.write(made)
    content = json.loads(path.read_text())
    assert content["kafka"] == "4.3.1"
    assert [each["seconds"] for each in content["lines"]] == [[1.0, 2.0], [2.0, 4.0]]
    assert [each["met"] for each in content["targets"]] == [True]
    assert "| stream | >= 1.5x | 2.00x | 1.00 - 4.00 | met |" in path.with_suffix(".md").read_text()


@pytest.mark.parametrize(("load", "busy"), [(1.0, False), (1.1, True)])
def test_a_machine_that_does_other_work_is_called_busy(
    load: float, busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_report.os, "cpu_count", lambda: 2)
    made = comparison()
    made.load_before = load
    assert spark_report.is_busy(made) is busy


def test_what_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        spark.importlib.util, "find_spec", lambda name: None if name == "pyspark" else object()
    )
    assert str(spark.missing()).startswith("pyspark not installed (pip install")
    monkeypatch.setattr(spark.importlib.util, "find_spec", lambda _: object())
    monkeypatch.setattr(spark.importlib.metadata, "version", lambda _: "4.3.0")
    assert str(spark.missing()).startswith("PySpark is 4.3.0")


def test_the_jars_are_those_of_the_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    def classpath(pom: Path) -> str:
        assert "<artifactId>spark-connector</artifactId>" in pom.read_text()
        return "/r/spark-sql-kafka.jar:/r/kafka-clients.jar"

    monkeypatch.setattr(spark_comparison.real_kafka(), "classpath", classpath)
    assert spark_comparison.connector_jars() == ["/r/spark-sql-kafka.jar", "/r/kafka-clients.jar"]
