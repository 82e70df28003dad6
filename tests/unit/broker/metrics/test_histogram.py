"""Histogram: counts and sums are exact, percentiles are off by a fifth at most, and old times are forgotten."""

from __future__ import annotations

import math
import random

import pytest

from kclient.broker.metrics.histogram import Histogram, Recent


def filled(times: list[int]) -> Histogram:
    histogram = Histogram()
    for time_us in times:
        histogram.record(time_us)
    return histogram


def test_all_times_are_counted_and_summed() -> None:
    histogram = filled([1, 2, 3])
    histogram.rotate()
    histogram.rotate()
    histogram.record(4)
    assert (histogram.count, histogram.total) == (4, 10)


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99, 0.999])
def test_a_percentile_is_off_by_a_fifth_at_most(share: float) -> None:
    chance = random.Random(7)
    times = [int(chance.lognormvariate(8, 2)) for _ in range(20_000)]
    exact = sorted(times)[int(share * len(times))]
    assert filled(times).recent().percentile(share) == pytest.approx(exact, rel=0.2)


@pytest.mark.parametrize("time_us", [0, 1, 2, 1000, 2**62])
def test_a_time_alone_is_its_own_maximum_and_no_percentile_is_beyond_it(time_us: int) -> None:
    recent = filled([time_us]).recent()
    assert recent.maximum == time_us
    assert recent.percentile(0.999) == pytest.approx(time_us, rel=0.01)


def test_there_is_no_percentile_of_nothing() -> None:
    assert math.isnan(Histogram().recent().percentile(0.5))


def test_times_are_of_this_window_and_the_one_before() -> None:
    histogram = filled([1_000_000])
    histogram.rotate()
    histogram.record(10)
    assert histogram.recent().maximum == 1_000_000
    histogram.rotate()
    assert histogram.recent().maximum == 10
    assert histogram.recent().percentile(0.999) == pytest.approx(10, rel=0.2)


def test_times_of_several_histograms_are_looked_at_together() -> None:
    together = Recent()
    for histogram in (filled([10] * 9), filled([100_000])):
        together.add(histogram.recent())
    assert together.maximum == 100_000
    assert together.percentile(0.5) == pytest.approx(10, rel=0.2)
    assert together.percentile(0.99) == pytest.approx(100_000, rel=0.2)
