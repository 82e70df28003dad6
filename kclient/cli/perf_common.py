"""Functions that the parts of `kclient perf` share."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence

import attrs
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from kclient.cli.common import error_console, print_table
from kclient.metrics import MetricName

MIB = 1 << 20
PROGRESS_EVERY_S = 0.5


def add_reporting_arguments(parser: argparse.ArgumentParser) -> None:
    """`--print-metrics` and `--no-progress`."""
    parser.add_argument("--print-metrics", action="store_true", help="print the client's metrics at the end")
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar on the terminal")


def progress_bar(silent: bool) -> Progress:
    """A bar on standard error, if that is a terminal; drawn seldom, as drawing takes time from what is measured."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=error_console(),
        refresh_per_second=2,
        transient=True,
        disable=silent or not sys.stderr.isatty(),
    )


def warn_if_embedded(settings: Mapping[str, object]) -> None:
    """Say that the broker takes its share of this process, if it does."""
    if str(settings["bootstrap.servers"]).startswith("embedded:"):
        error_console().print(
            "the embedded broker runs in this process: these figures are of both together", highlight=False
        )


def print_metrics(metrics: Mapping[MetricName, float]) -> None:
    """All metrics, sorted by name."""
    print_table(
        ["METRIC", ("VALUE", "right")],
        sorted((str(name), "-" if math.isnan(value) else f"{value:.3f}") for name, value in metrics.items()),
    )


@attrs.frozen
class Latencies:
    """Latencies in milliseconds, lowest first."""

    ordered: Sequence[float]

    @classmethod
    def of_seconds(cls, taken_s: Sequence[float]) -> Latencies:
        """Of what a clock measured."""
        return cls(sorted(one * 1000 for one in taken_s))

    @property
    def average(self) -> float:
        """0 if there are none."""
        return math.fsum(self.ordered) / len(self.ordered) if self.ordered else 0.0

    @property
    def highest(self) -> float:
        """0 if there are none."""
        return self.ordered[-1] if self.ordered else 0.0

    def percentile(self, part: float) -> float:
        """The one that `part` of them (0 to 1) are below, as Kafka's tools count; 0 if there are none."""
        if not self.ordered:
            return 0.0
        return self.ordered[min(int(len(self.ordered) * part), len(self.ordered) - 1)]
