"""The result as a table of ratios and as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.comparison import Line
from kclient import __version__
from kclient._accel import IMPL

RESULTS = Path(__file__).parent / "results"
_WIDTH = 130  # also where nobody says how wide the terminal is
# What kclient is held to: (operation, peer) -> the least ratio.
_TARGETS = {("produce", "kafka_python"): 4.0, ("consume", "kafka_python"): 3.0}


def table(lines: Sequence[Line]) -> Table:
    """A row for each line, with kclient's records/s over those of its row's client."""
    out = Table(title=f"kclient {__version__} ({IMPL}) beside its peers", title_justify="left")
    for column in ("case", "operation", "client"):
        out.add_column(column, no_wrap=True)
    for column in ("records/s", "lowest - highest", "CPU us/record", "kclient is"):
        out.add_column(column, justify="right", no_wrap=True)
    own = {(line.case, line.operation): line for line in lines if line.client == "kclient"}
    for line in lines:
        mine = own.get((line.case, line.operation))
        out.add_row(
            line.case.name,
            line.operation,
            line.client,
            f"{line.records_per_s:,.0f}",
            f"{line.lowest:,.0f} - {line.highest:,.0f}",
            f"{line.cpu_us_per_record:.2f}",
            "" if mine is None or mine is line else _ratio(mine, line),
            end_section=line is lines[-1] or _group(line) != _group(lines[lines.index(line) + 1]),
        )
    return out


def write(lines: Sequence[Line]) -> Path:
    """The lines as JSON, in a file of their own; its path."""
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    content = {
        "at": now.isoformat(timespec="seconds"),
        "kclient": __version__,
        "implementation": IMPL,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "lines": [attrs.asdict(line) for line in lines],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def show(lines: Sequence[Line]) -> None:
    """Print the table and say where the JSON is."""
    console = Console()
    console.width = max(console.width, _WIDTH)
    console.print(table(lines))
    print(f"written to {write(lines)}")


def _group(line: Line) -> tuple[object, str]:
    return line.case, line.operation


def _ratio(mine: Line, other: Line) -> str:
    ratio = mine.records_per_s / other.records_per_s
    target = _TARGETS.get((other.operation, other.client))
    if target is None:
        return f"{ratio:.2f}x"
    colour = "green" if ratio >= target else "red"
    return f"[{colour}]{ratio:.2f}x[/] (of {target:.0f}x)"
