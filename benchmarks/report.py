"""The result as tables and as JSON."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.case import IN_FLIGHT, LINGER_MS
from benchmarks.comparison import Line
from benchmarks.targets import Verdict, peer_line, verdicts
from kclient import __version__

RESULTS = Path(__file__).parent / "results"
_WIDTH = 165  # also where nobody says how wide the terminal is
_PACKAGES = ("confluent-kafka", "aiokafka", "kafka-python", "pyarrow")


_FIGURES = (
    "operation",
    "client",
    "1000/s",
    "lowest - highest",
    "CPU us",
    "p50 ms",
    "p99 ms",
    "RSS MB",
    "kclient is",
    "pure is",
)
_TARGETS = (
    "client",
    "operation",
    "figure",
    "against",
    "wanted",
    "reached",
    "noise",
    "ours",
    "theirs",
    "",
)


def figures_table(lines: Sequence[Line]) -> Table:
    """A row for each line: its figures, their noise, and how many times its throughput kclient's is."""
    out = _table(f"kclient {__version__} beside its peers", _FIGURES, left=2)
    for number, row in enumerate(_figures_rows(lines)):
        if number and row[0]:
            out.add_section()
        out.add_row(*row)
    return out


def targets_table(found: Sequence[Verdict]) -> Table:
    """A row for each target, met or not, with what the runs furthest apart would give."""
    out = _table("what kclient is held to", _TARGETS, left=4)
    for verdict, row in zip(found, _targets_rows(found), strict=True):
        out.add_row(*row[:-1], f"[{'green' if verdict.met else 'red'}]{row[-1]}[/]")
    return out


def markdown(lines: Sequence[Line]) -> str:
    """Both tables for a page of documentation."""
    tables = [(_FIGURES, _figures_rows(lines)), (_TARGETS, _targets_rows(list(verdicts(lines))))]
    return "\n".join(
        "".join(f"| {' | '.join(row)} |\n" for row in (names, ["---"] * len(names), *rows))
        for names, rows in tables
        if rows
    )


def _table(title: str, names: Sequence[str], left: int) -> Table:
    out = Table(title=title, title_justify="left")
    for number, name in enumerate(names):
        out.add_column(name, justify="left" if number < left else "right", no_wrap=True)
    return out


def _figures_rows(lines: Sequence[Line]) -> list[list[str]]:
    rows = []
    before: Line | None = None
    for line in lines:
        first = before is None or (before.case, before.operation) != (line.case, line.operation)
        rows.append(
            [
                f"{line.operation} {line.case.name}" if first else "",
                line.client,
                _thousands(line.records_per_s),
                f"{_thousands(line.rates[0])} - {_thousands(line.rates[-1])}",
                f"{line.cpu_us_per_record:.2f}",
                _number(line.p50_ms),
                _number(line.p99_ms),
                f"{line.rss_bytes / 1e6:.0f}",
                _ratio(lines, line, "kclient"),
                _ratio(lines, line, "kclient_pure"),
            ]
        )
        before = line
    return rows


def _targets_rows(found: Sequence[Verdict]) -> list[list[str]]:
    return [
        [
            verdict.target.ours,
            f"{verdict.target.operation} {verdict.case.name}",
            verdict.target.figure,
            verdict.target.peer or "",
            verdict.target.wanted,
            f"{verdict.reached:.2f}" + ("x" if verdict.target.peer else " ms"),
            f"{verdict.noise[0]:.2f} - {verdict.noise[1]:.2f}",
            _number(statistics.median(verdict.ours)),
            _number(statistics.median(verdict.theirs)) if verdict.theirs else "",
            "met" if verdict.met else "NOT met",
        ]
        for verdict in found
    ]


def write(lines: Sequence[Line], about: Mapping[str, object]) -> Path:
    """Everything that was measured as JSON, in a file of its own, with the tables in Markdown beside it; its path."""
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    content = {
        "at": now.isoformat(timespec="seconds"),
        "kclient": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "peers": {name: _version(name) for name in _PACKAGES},
        "linger_ms": LINGER_MS,
        "in_flight": IN_FLIGHT,
        **about,
        "lines": [_line(line) for line in lines],
        "targets": [
            {
                **attrs.asdict(verdict.target),
                "case": verdict.case.name,
                "reached": verdict.reached,
                "noise": verdict.noise,
                "met": verdict.met,
            }
            for verdict in verdicts(lines)
        ],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(lines), encoding="utf-8")
    return path


def show(lines: Sequence[Line], about: Mapping[str, object]) -> None:
    """Print the tables and say where the JSON is."""
    console = Console()
    console.width = max(console.width, _WIDTH)
    console.print(figures_table(lines))
    found = list(verdicts(lines))
    if found:
        console.print(targets_table(found))
        print(f"{sum(verdict.met for verdict in found)} of {len(found)} met")
    print(f"written to {write(lines, about)}")


def _line(line: Line) -> dict[str, object]:
    return {
        **attrs.asdict(line),
        "records_per_s": line.records_per_s,
        "cpu_us_per_record": line.cpu_us_per_record,
        "rss_bytes": line.rss_bytes,
        "p50_ms": line.p50_ms,
        "p99_ms": line.p99_ms,
    }


def _ratio(lines: Sequence[Line], line: Line, ours: str) -> str:
    if line.client == ours or line.p50_ms is not None:
        return ""
    mine = peer_line(lines, line, ours)
    return "" if mine is None else f"{mine.records_per_s / line.records_per_s:.2f}x"


def _thousands(rate: float) -> str:
    return f"{rate / 1000:,.0f}" if rate >= 100_000 else f"{rate / 1000:.1f}"


def _number(figure: float | None) -> str:
    if figure is None:
        return ""
    return f"{figure:,.0f}" if figure >= 1000 else f"{figure:.2f}"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    """What the system calls its processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
