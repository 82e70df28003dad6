"""What came of the comparison with Spark's own connector: figures, targets, JSON."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.broker import kafka_version, real_kafka
from benchmarks.report import RESULTS
from benchmarks.spark_comparison import Line, SparkComparison

LIMITS: Mapping[str, float] = {"batch_read": 1.5, "batch_write": 1.0, "stream": 1.0}
"""The least ratio of kclient's records/s to the connector's."""

FETCH_BYTES = 4 * 1024 * 1024
FETCHES = 8
"""What a range four times as long may add to a worker's memory: the fetches that are under way, and Arrow's copies."""

_WIDTH = 110  # also where nobody says how wide the terminal is
_FIGURES = ("operation", "format", "1000/s", "lowest - highest", "CPU us", "worker MB")
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
    by_name = {(line.operation, line.name): line for line in lines if line.operation != "memory"}
    for operation, limit in LIMITS.items():
        ours, theirs = by_name.get((operation, "kclient")), by_name.get((operation, "kafka"))
        if ours is None or theirs is None:
            continue
        reached = ours.records_per_s / theirs.records_per_s
        low, high = ours.rates[0] / theirs.rates[-1], ours.rates[-1] / theirs.rates[0]
        yield Verdict(
            operation, f">= {limit:g}x", f"{reached:.2f}x", f"{low:.2f} - {high:.2f}", reached >= limit
        )
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


def markdown(lines: Sequence[Line]) -> str:
    """Both tables for a page of documentation."""
    tables = [(_FIGURES, _figures(lines)), (_TARGETS, _targets(list(verdicts(lines))))]
    return "\n".join(
        "".join(f"| {' | '.join(row)} |\n" for row in (names, ["---"] * len(names), *rows))
        for names, rows in tables
        if rows
    )


def show(comparison: SparkComparison) -> None:
    """Print the tables and say where the JSON is."""
    console = Console()
    console.width = max(console.width, _WIDTH)
    lines, found = comparison.lines, list(verdicts(comparison.lines))
    console.print(_table("kclient beside Spark's own connector", _FIGURES, _figures(lines), left=2))
    if found:
        console.print(_table("what kclient is held to", _TARGETS, _targets(found), left=1))
        print(f"{sum(verdict.met for verdict in found)} of {len(found)} met")
    if is_busy(comparison):
        print(
            f"The machine was busy before (load {comparison.load_before:.1f} on {os.cpu_count()} processors): "
            "these ratios are not to be relied on."
        )
    print(f"written to {write(comparison)}")


def is_busy(comparison: SparkComparison) -> bool:
    """Whether other work took so much of the machine that it decides more than what is compared."""
    return comparison.load_before > (os.cpu_count() or 1) / 2


def write(comparison: SparkComparison) -> Path:
    """Everything that was measured as JSON, in a file of its own, with the tables in Markdown beside it; its path."""
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}-spark.json"
    content = {
        "at": now.isoformat(timespec="seconds"),
        "kclient": importlib.metadata.version("kclient-kafka"),
        "pyspark": importlib.metadata.version("pyspark"),
        "pyarrow": importlib.metadata.version("pyarrow"),
        "kafka": kafka_version(real_kafka().classpath()),
        "connector": [Path(jar).name for jar in comparison.jars],
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "load_before": comparison.load_before,
        "busy": is_busy(comparison),
        "records": comparison.records,
        "sessions": comparison.sessions,
        "runs": comparison.runs,
        "failed": comparison.failed,
        "lines": [attrs.asdict(line) for line in comparison.lines],
        "targets": [attrs.asdict(verdict) for verdict in verdicts(comparison.lines)],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(comparison.lines), encoding="utf-8")
    return path


def _figures(lines: Sequence[Line]) -> list[list[str]]:
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
    return (
        f"{line.records_per_s / 1000:,.0f}",
        f"{line.rates[0] / 1000:,.0f} - {line.rates[-1] / 1000:,.0f}",
        f"{line.cpu_us_per_record:.2f}",
    )


def _targets(found: Sequence[Verdict]) -> list[list[str]]:
    return [
        [each.name, each.wanted, each.reached, each.noise, "met" if each.met else "NOT met"] for each in found
    ]


def _table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> Table:
    out = Table(title=title, title_justify="left")
    for number, name in enumerate(names):
        out.add_column(name, justify="left" if number < left else "right", no_wrap=True)
    for row in rows:
        out.add_row(*row)
    return out
