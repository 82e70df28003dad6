"""The rate that `kclient perf produce` keeps, and which records have their latency measured."""

from __future__ import annotations

import pytest

from kclient.cli.perf_common import Latencies
from kclient.cli.perf_produce import Stretch, Throttle, sample_every


def test_a_throttle_sleeps_for_what_it_is_ahead_and_leaves_short_pauses_for_later() -> None:
    now_s = [10.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now_s[0] += seconds

    throttle = Throttle(10_000, lambda: now_s[0], sleep)
    for sent in range(1, 26):
        throttle.wait(sent)
    assert slept == pytest.approx([0.001, 0.001])
    now_s[0] += 5
    throttle.wait(26)
    assert len(slept) == 2


@pytest.mark.parametrize(
    ("records", "throughput", "every"),
    [(100, -1, 1), (100_000, -1, 10), (1_000_000, -1, 50), (50_000_000, -1, 100), (100_000, 1000, 1)],
)
def test_latency_is_measured_on_every_record_where_that_costs_nothing(
    records: int, throughput: int, every: int
) -> None:
    assert sample_every(records, throughput) == every


def test_a_stretch_in_which_nothing_happened_has_a_line_as_well() -> None:
    line = Stretch(0, 0, 0.0, Latencies.of_seconds([])).line(percentiles=False)
    assert line == "0 records sent, 0.0 records/sec (0.00 MB/sec), 0.00 ms avg latency, 0.00 ms max latency."
