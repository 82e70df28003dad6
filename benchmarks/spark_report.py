"""The results of the comparison with Spark's own connector: figures and targets."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks import output
from benchmarks.broker import kafka_version, real_kafka
from benchmarks.output import Sheet
from benchmarks.spark_comparison import MICRO_BATCH, Line, SparkComparison

LIMITS: Mapping[str, float] = {"batch_read": 2.0, "batch_write": 1.5, "stream": 1.5}
"""The least ratio of kclient's records/s to the connector's."""

BEHIND_MS = 100
"""The most by which a micro-batch of kclient's may take longer than one of the connector's."""

FETCH_BYTES = 4 * 1024 * 1024
FETCHES = 8
"""The fetches (under way, or Arrow's copies) that a range four times as long may add to a worker's memory."""

_WITHOUT_TARGET = ("memory", "write_parts")
_WIDTH = 110
_FIGURES = ("operation", "format", "1000/s, or ms", "lowest - highest", "CPU us", "worker MB")
_TARGETS = ("target", "wanted", "reached", "noise", "")


@attrs.frozen
class Verdict:
    """One target: what was wanted and what was reached, for people, and whether that is enough."""

    name: str
    wanted: str
    reached: str
    noise: str
    met: bool


def verdicts(lines: Sequence[Line]) -> Iterator[Verdict]:
    """Every target that these lines say something about."""
    by_name = {(line.operation, line.name): line for line in lines if line.operation not in _WITHOUT_TARGET}
    for operation, limit in LIMITS.items():
        ours, theirs = by_name.get((operation, "kclient")), by_name.get((operation, "kafka"))
        if ours is None or theirs is None:
            continue
        reached = ours.records_per_s / theirs.records_per_s
        low, high = ours.rates[0] / theirs.rates[-1], ours.rates[-1] / theirs.rates[0]
        yield Verdict(
            operation, f">= {limit:g}x", f"{reached:.2f}x", f"{low:.2f} - {high:.2f}", reached >= limit
        )
    yield from _micro_batch(by_name)
    read = sorted((line for line in lines if line.operation == "memory"), key=lambda line: line.records)
    if len(read) > 1:
        grown = read[-1].worker_rss_bytes - read[0].worker_rss_bytes
        limit_bytes = FETCHES * FETCH_BYTES
        yield Verdict(
            f"worker that reads {read[-1].records / read[0].records:g}x as much",
            f"<= +{limit_bytes / 1e6:.0f} MB",
            f"{grown / 1e6:+.0f} MB",
            "",
            grown <= limit_bytes,
        )


def _micro_batch(by_name: Mapping[tuple[str, str], Line]) -> Iterator[Verdict]:
    both = [by_name.get(("micro_batch", name)) for name in ("kclient", "kafka")]
    if None in both:
        return
    ours, theirs = ([1000 * each for each in sorted(line.seconds)] for line in both if line is not None)
    behind_ms = statistics.median(ours) - statistics.median(theirs)
    yield Verdict(
        "micro_batch",
        f"<= +{BEHIND_MS} ms",
        f"{behind_ms:+.0f} ms",
        f"{ours[0] - theirs[-1]:+.0f} - {ours[-1] - theirs[0]:+.0f}",
        behind_ms <= BEHIND_MS,
    )


def figures(lines: Sequence[Line]) -> Sheet:
    """A row for each format on each operation."""
    return Sheet("kclient beside Spark's own connector", _FIGURES, _figures_rows(lines), left=2)


def held_to(found: Sequence[Verdict]) -> Sheet:
    """A row for each target, met or not."""
    return Sheet("what kclient is held to", _TARGETS, _targets_rows(found), left=1)


def show(comparison: SparkComparison) -> None:
    """Print the tables and say where the JSON is."""
    found = list(verdicts(comparison.lines))
    output.show([figures(comparison.lines), held_to(found)], _WIDTH)
    if found:
        print(f"{sum(verdict.met for verdict in found)} of {len(found)} met")
    if is_busy(comparison):
        print(
            f"The machine was busy before (load {comparison.load_before:.1f} on {os.cpu_count()} processors): "
            "these ratios are not to be relied on."
        )
    print(f"written to {write(comparison)}")


def is_busy(comparison: SparkComparison) -> bool:
    """Return True if other work took so much of the machine that it decides more than what is compared."""
    return comparison.load_before > (os.cpu_count() or 1) / 2


def write(comparison: SparkComparison) -> Path:
    """Everything that was measured, with both tables; the path of the JSON."""
    found = list(verdicts(comparison.lines))
    content = {
        "pyspark": output.version("pyspark"),
        "pyarrow": output.version("pyarrow"),
        "kafka": kafka_version(real_kafka().classpath()),
        "connector": [Path(jar).name for jar in comparison.jars],
        "load_before": comparison.load_before,
        "busy": is_busy(comparison),
        "records": comparison.records,
        "sessions": comparison.sessions,
        "runs": comparison.runs,
        "failed": comparison.failed,
        "lines": [attrs.asdict(line) for line in comparison.lines],
        "targets": [attrs.asdict(verdict) for verdict in found],
    }
    return output.write([figures(comparison.lines), held_to(found)], content, "-spark")


def _figures_rows(lines: Sequence[Line]) -> list[list[str]]:
    return [
        [
            f"{line.operation}, {line.records:,}",
            line.name,
            # What a session does first says nothing about speed.
            *(_speed(line) if line.operation != "memory" else ("", "", "")),
            f"{line.worker_rss_bytes / 1e6:.0f}" if line.worker_rss_bytes else "",
        ]
        for line in lines
    ]


def _speed(line: Line) -> tuple[str, str, str]:
    if line.records <= MICRO_BATCH:
        times_ms = [1000 * each for each in sorted(line.seconds)]
        # CPU is mostly that of a query that waits, or of Spark's own planning.
        return f"{statistics.median(times_ms):,.0f} ms", f"{times_ms[0]:,.0f} - {times_ms[-1]:,.0f}", ""
    return (
        f"{line.records_per_s / 1000:,.0f}",
        f"{line.rates[0] / 1000:,.0f} - {line.rates[-1] / 1000:,.0f}",
        f"{line.cpu_us_per_record:.2f}",
    )


def _targets_rows(found: Sequence[Verdict]) -> list[list[str]]:
    return [[each.name, each.wanted, each.reached, each.noise, output.verdict(each.met)] for each in found]
