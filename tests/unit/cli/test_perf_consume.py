"""`kclient perf consume`: what a poll counts, and the figures that come of counts and times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from harness.consumer.model import ConsumerModel
from kclient.cli import perf_consume
from kclient.cli.perf_common import MIB
from kclient.cli.perf_consume import Reading
from kclient.common.topic_partition import TopicPartition
from kclient.record import MemoryRecordsBuilder

T0 = TopicPartition("t", 0)
NAMES = ("mb", "mb_s", "records", "records_s", "joining_ms", "fetching_ms", "fetched_mb_s", "fetched_s")


class Clock:
    """The seconds of `time.perf_counter`, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def perf_counter(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(perf_consume, "time", SimpleNamespace(perf_counter=made.perf_counter))
    return made


def figures(line: str) -> dict[str, float]:
    return dict(zip(NAMES, map(float, line.split(", ")[2:]), strict=True))


def after(clock: Clock, seconds: float, do: Callable[[], object]) -> None:
    clock.now_s += seconds
    do()


def test_joining_is_left_out_of_the_time_of_fetching(clock: Clock) -> None:
    reading = Reading()
    after(clock, 1, lambda: reading.on_partitions_assigned([T0]))
    after(clock, 4, lambda: reading.count(1000, 8 * MIB))
    assert figures(reading.total()) == {
        "mb": 8, "mb_s": 1.6, "records": 1000, "records_s": 200,
        "joining_ms": 1000, "fetching_ms": 4000, "fetched_mb_s": 2, "fetched_s": 250,
    }  # fmt: skip


def test_every_rebalance_counts_and_one_that_goes_on_counts_until_now(clock: Clock) -> None:
    reading = Reading()
    after(clock, 1, lambda: reading.on_partitions_assigned([T0]))
    after(clock, 1, lambda: reading.on_partitions_revoked([T0]))
    after(clock, 2, lambda: reading.on_partitions_assigned([]))
    after(clock, 1, lambda: reading.on_partitions_assigned([T0]))  # more of them, without being revoked
    after(clock, 1, lambda: reading.on_partitions_lost([T0]))
    clock.now_s += 4
    found = figures(reading.total())
    assert (found["joining_ms"], found["fetching_ms"]) == (7000, 3000)


def test_without_an_assignment_all_was_joining_and_nothing_is_divided_by_zero(clock: Clock) -> None:
    reading = Reading()
    assert figures(reading.total()) == dict.fromkeys(NAMES, 0)
    clock.now_s += 2
    found = figures(reading.total())
    assert (found["joining_ms"], found["fetching_ms"], found["fetched_s"]) == (2000, 0, 0)


def test_a_window_has_rates_of_its_own_and_counts_of_all(clock: Clock) -> None:
    reading = Reading()
    reading.on_partitions_assigned([T0])
    after(clock, 2, lambda: reading.count(100, 2 * MIB))
    first = figures(reading.window())
    after(clock, 1, lambda: reading.count(300, 3 * MIB))
    second = figures(reading.window())
    clock.now_s += 1
    third = figures(reading.window())
    assert [each["records"] for each in (first, second, third)] == [100, 400, 400]
    assert [each["mb"] for each in (first, second, third)] == [2, 5, 5]
    assert [each["records_s"] for each in (first, second, third)] == [50, 300, 0]
    assert [each["mb_s"] for each in (first, second, third)] == [1, 3, 0]
    assert figures(reading.total())["records_s"] == 100, "windows take nothing from the whole"


def test_a_rebalance_over_the_end_of_a_window_counts_in_each_its_part(clock: Clock) -> None:
    reading = Reading()
    reading.on_partitions_assigned([T0])
    after(clock, 1, lambda: reading.on_partitions_revoked([T0]))
    clock.now_s += 2
    first = figures(reading.window())
    after(clock, 3, lambda: reading.on_partitions_assigned([T0]))
    clock.now_s += 1
    second = figures(reading.window())
    assert [(each["joining_ms"], each["fetching_ms"]) for each in (first, second)] == [
        (2000, 1000),
        (3000, 1000),
    ]


def test_a_poll_without_records_does_not_put_off_the_timeout(clock: Clock) -> None:
    reading = Reading()
    clock.now_s += 5
    assert reading.count(0, 0) == 105
    assert (reading.last_s, reading.records) == (100, 0)
    assert reading.count(1, 0) == reading.last_s == 105


def test_a_line_begins_with_times_as_kafkas_tool_writes_them(clock: Clock) -> None:
    reading = Reading()
    clock.now_s += 1.5
    begun, ended = reading.total().split(", ")[:2]
    moments = [datetime.strptime(f"{text}000+0000", "%Y-%m-%d %H:%M:%S:%f%z") for text in (begun, ended)]
    assert (moments[1] - moments[0]).total_seconds() == pytest.approx(1.5, abs=0.0011)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}, 0, .*", reading.window())


def test_milliseconds_are_cut_and_not_rounded_into_the_next_second() -> None:
    assert perf_consume._clock_text(datetime(2026, 1, 2, 3, 4, 5, 999_999, UTC)) == "2026-01-02 03:04:05:999"
    assert perf_consume._clock_text(datetime(2026, 1, 2, 3, 4, 5, 7_000, UTC)) == "2026-01-02 03:04:05:007"


@pytest.fixture
def rig() -> Iterator[ConsumerModel]:
    made = ConsumerModel()
    made.consumer.assign([T0])
    yield made
    made.consumer.close(0)


@pytest.mark.parametrize("take", [perf_consume._take_records, perf_consume._take_columns])
def test_records_and_the_bytes_of_their_keys_and_values_are_counted(
    rig: ConsumerModel, take: Callable[..., tuple[int, int]]
) -> None:
    usual = rig.partition_data

    def with_keys(tp: TopicPartition, offset: int) -> object:
        data = usual(tp, offset)
        if offset == 0:
            builder = MemoryRecordsBuilder(base_offset=0, partition_leader_epoch=5)
            for key, value in (
                (b"key", b"value"),
                (None, b"12345678"),
                (b"k", None),
                (None, None),
                (b"", b""),
            ):
                builder.append(1, key, value)
            data.records = builder.close()
        return data

    rig.logs[T0] = [b""] * 5
    rig.partition_data = with_keys  # type: ignore[method-assign]
    taken = [take(rig.consumer) for _ in range(3)]
    assert sum(count for count, _ in taken) == 5
    assert sum(size for _, size in taken) == 3 + 5 + 8 + 1


@pytest.mark.parametrize("take", [perf_consume._take_records, perf_consume._take_columns])
def test_a_poll_in_which_nothing_came_counts_nothing(
    rig: ConsumerModel, take: Callable[..., tuple[int, int]]
) -> None:
    assert take(rig.consumer) == (0, 0)
