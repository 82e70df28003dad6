"""Latencies and metrics as the parts of `kclient perf` print them."""

from __future__ import annotations

import pytest

from kclient.cli.perf_common import Latencies, print_metrics, warn_if_embedded
from kclient.metrics import MetricName


def test_percentiles_are_counted_as_kafkas_tools_count_them() -> None:
    latencies = Latencies.of_seconds([number / 1000 for number in range(1000, 0, -1)])
    assert [latencies.percentile(part) for part in (0.5, 0.99, 0.999, 1.0)] == [501, 991, 1000, 1000]
    assert (latencies.average, latencies.highest) == (500.5, 1000)
    nothing = Latencies.of_seconds([])
    assert (nothing.average, nothing.highest, nothing.percentile(0.5)) == (0, 0, 0)


def test_one_latency_is_every_percentile() -> None:
    one = Latencies.of_seconds([0.002])
    assert [one.percentile(part) for part in (0.0, 0.5, 1.0)] == [2, 2, 2]


def test_metrics_are_sorted_and_one_without_a_value_has_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    print_metrics({MetricName("b", "g"): 1.23456, MetricName("a", "g"): float("nan")})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[1] for line in lines] == ["VALUE", "-", "1.235"]


def test_only_a_broker_of_this_process_takes_its_share(capsys: pytest.CaptureFixture[str]) -> None:
    warn_if_embedded({"bootstrap.servers": "b:1"})
    assert capsys.readouterr().err == ""
    warn_if_embedded({"bootstrap.servers": "embedded://x"})
    assert "in this process" in capsys.readouterr().err
