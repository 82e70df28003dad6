"""The stats one by one: windows, batches of events, and what there is to tell of nothing."""

from __future__ import annotations

import math

import pytest

from kclient.metrics import Avg, Max, Rate, Total
from kclient.metrics.stats import Stat

WINDOW_MS = 1000


def record(stat: Stat, value: float, now_ms: int, events: int = 1) -> None:
    stat.record(value, now_ms, events, value)


@pytest.mark.parametrize(("kind", "nothing"), [(Avg, math.nan), (Max, math.nan), (Rate, 0.0), (Total, 0.0)])
def test_of_nothing_there_is_no_mean_and_no_largest(kind: type[Stat], nothing: float) -> None:
    assert kind(WINDOW_MS, 2).measure(5000) == pytest.approx(nothing, nan_ok=True)


def test_a_window_lasts_from_its_first_value_on_and_the_next_begins_at_its_end() -> None:
    stat = Max(WINDOW_MS, 1)
    record(stat, 5, 700)
    record(stat, 3, 1699)
    assert stat.measure(1699) == 5
    record(stat, 1, 1700)
    assert stat.measure(2698) == 5
    assert stat.measure(2699) == 1


def test_a_window_is_kept_as_long_as_its_last_event_is_young_enough() -> None:
    stat = Max(WINDOW_MS, 2)
    record(stat, 9, 0)
    record(stat, 5, 900)
    record(stat, 1, 2000)
    assert stat.measure(2899) == 9
    assert stat.measure(2900) == 1


def test_as_many_windows_are_kept_as_asked_for() -> None:
    stat = Avg(WINDOW_MS, 3)
    for i in range(6):
        record(stat, i, i * WINDOW_MS)
    assert stat.measure(5 * WINDOW_MS) == 4
    assert stat.measure(6 * WINDOW_MS) == 4.5
    assert stat.measure(7 * WINDOW_MS) == 5
    assert math.isnan(stat.measure(8 * WINDOW_MS))


def test_the_mean_is_over_events_and_the_largest_is_of_one_event() -> None:
    mean, largest = Avg(WINDOW_MS, 2), Max(WINDOW_MS, 2)
    for stat in (mean, largest):
        stat.record(30, 0, 3, 25)
        stat.record(10, 0, 1, 10)
    assert mean.measure(0) == 10
    assert largest.measure(0) == 25


def test_the_largest_of_negative_values_is_negative() -> None:
    stat = Max(WINDOW_MS, 2)
    record(stat, -7, 0)
    record(stat, -9, 0)
    assert stat.measure(0) == -7


def test_a_rate_counts_from_all_windows_but_one_on() -> None:
    stat = Rate(WINDOW_MS, 3)
    record(stat, 100, 0)
    assert stat.measure(0) == 50
    assert stat.measure(999) == pytest.approx(100 / 2.999)
    assert stat.measure(1000) == 50
    assert stat.measure(2000) == 50
    assert stat.measure(2500) == 40


def test_a_rate_over_one_window_in_its_first_instant_divides_by_no_zero() -> None:
    stat = Rate(WINDOW_MS, 1)
    record(stat, 2, 0)
    assert stat.measure(0) == 2000


def test_a_rate_after_a_silence_is_only_of_what_came_since() -> None:
    stat = Rate(WINDOW_MS, 2)
    record(stat, 1000, 0)
    record(stat, 5, 10_000)
    assert stat.measure(10_000) == 5


@pytest.mark.parametrize("kind", [Avg, Max, Rate])
def test_windows_of_no_length_remember_nothing(kind: type[Stat]) -> None:
    stat = kind(0, 2)
    record(stat, 5, 100)
    assert stat.measure(100) == pytest.approx(kind(0, 2).measure(100), nan_ok=True)


def test_a_total_never_forgets() -> None:
    stat = Total(WINDOW_MS, 1)
    for now_ms in (0, 10**9):
        stat.record(1.5, now_ms, 10, 1)
    assert stat.measure(10**12) == 3
