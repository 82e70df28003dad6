"""The report of the measurement with many partitions: ratios, halves, targets. No Spark here."""

from __future__ import annotations

import pytest

from benchmarks.spark_scale import Halves, Scale, driver, reads, targets


def scale() -> Scale:
    return Scale("nowhere:1", 1_000_005, 10, 3, 40, lambda _: None)


def read(*cpu_seconds: float) -> dict[str, list[float]]:
    return {"seconds": [2.0] * len(cpu_seconds), "cpu_seconds": list(cpu_seconds)}


@pytest.mark.parametrize(("cpu_s", "verdict"), [(1.19, "met"), (1.21, "NOT met")])
def test_the_cpu_of_a_record_with_two_workers_is_held_to_that_with_one(cpu_s: float, verdict: str) -> None:
    made = scale()
    made.reads = {1: read(9.0, 1.0, 0.5), 2: read(9.0, cpu_s, 0.5)}
    assert targets(made).rows == [
        ["CPU of a record, two workers", "<= 1.2x", f"{cpu_s:.2f}x", verdict],
    ]
    assert reads(made).rows[0] == ["1,000,000 records", "1 x 1", "2.0", "1.0", "1.00"]


def test_a_task_is_told_by_the_topic_that_has_next_to_nothing_to_read() -> None:
    made = scale()
    made.small = read(0.05)
    assert reads(made).rows[-1] == ["a task of those", "1 x 1", "", "5.0 ms", ""]


@pytest.mark.parametrize(("slow_s", "verdict"), [(1.99, "met"), (2.01, "NOT met")])
def test_the_slowest_planning_counts_the_first_or_a_later_one(slow_s: float, verdict: str) -> None:
    made = scale()
    made.planning = {"batch": [slow_s, 0.1, 0.2, 0.3], "stream": [0.1, 0.1, slow_s]}
    assert [row[-1] for row in targets(made).rows] == [verdict, verdict]
    assert driver(made).rows[0][1:] == [f"{slow_s:.2f} s", "0.20 s"]


def test_memory_is_flat_if_the_second_half_needs_hardly_more_than_the_first() -> None:
    assert Halves.of([100, 90, 104, 80]).growth == pytest.approx(1.04)
    made = scale()
    made.stream = {"planning": [0.1, 0.1], "source": [100, 105], "python": [100, 106], "jvm": [300, 200]}
    assert [row[-1] for row in targets(made).rows[1:]] == ["met", "NOT met", "met"]


def test_what_was_not_measured_has_no_rows() -> None:
    made = scale()
    made.reads = {1: read(1.0), 2: {}}
    assert len(reads(made).rows) == 1
    assert targets(made).rows == driver(made).rows == []
