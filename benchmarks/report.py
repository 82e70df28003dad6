"""The results of the comparison with the peers: figures and targets."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from benchmarks import output
from benchmarks.case import IN_FLIGHT, LINGER_MS
from benchmarks.comparison import Line
from benchmarks.output import Sheet
from benchmarks.shapes import shown
from benchmarks.targets import Verdict, peer_line, verdicts
from kclient import __version__

_WIDTH = 165
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


def figures(lines: Sequence[Line]) -> Sheet:
    """A row for each line: its figures, their noise, and how many times its throughput kclient's is."""
    title = f"kclient {__version__} beside its peers"
    return Sheet(title, _FIGURES, _figures_rows(lines), left=2, grouped=True)


def held_to(found: Sequence[Verdict]) -> Sheet:
    """A row for each target, met or not, with what the runs furthest apart would give."""
    return Sheet("what kclient is held to", _TARGETS, _targets_rows(found), left=4)


def _figures_rows(lines: Sequence[Line]) -> list[list[str]]:
    rows = []
    before: Line | None = None
    for line in lines:
        first = before is None or (before.case, before.operation) != (line.case, line.operation)
        rows.append(
            [
                f"{shown(line.operation)} {line.case.name}" if first else "",
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
            f"{shown(verdict.target.operation)} {verdict.case.name}",
            verdict.target.figure,
            verdict.target.against,
            verdict.target.wanted,
            f"{verdict.reached:.2f}" + ("x" if verdict.target.peer else " ms"),
            f"{verdict.noise[0]:.2f} - {verdict.noise[1]:.2f}",
            _number(statistics.median(verdict.ours)),
            _number(statistics.median(verdict.theirs)) if verdict.theirs else "",
            output.verdict(verdict.met),
        ]
        for verdict in found
    ]


def write(lines: Sequence[Line], about: Mapping[str, object]) -> Path:
    """Everything that was measured, with both tables; the path of the JSON."""
    found = list(verdicts(lines))
    content = {
        "peers": {name: output.version(name) for name in _PACKAGES},
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
            for verdict in found
        ],
    }
    return output.write([figures(lines), held_to(found)], content)


def show(lines: Sequence[Line], about: Mapping[str, object]) -> None:
    """Print the tables and say where the JSON is."""
    found = list(verdicts(lines))
    output.show([figures(lines), held_to(found)], _WIDTH)
    if found:
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
