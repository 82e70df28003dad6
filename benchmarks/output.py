"""The output of a comparison: tables for the terminal and for a page, and everything measured as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import attrs
from rich.console import Console
from rich.table import Table

from kclient import __version__

RESULTS = Path(__file__).parent / "results"
MET = "met"
NOT_MET = "NOT met"
_COLOURS = {MET: "green", NOT_MET: "red"}


@attrs.frozen
class Sheet:
    """Rows under names; the first `left` columns are text, the others figures.

    In a grouped one a row without its first cell goes on with what the row above is about.
    """

    title: str
    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int
    grouped: bool = False

    def table(self) -> Table:
        """For the terminal."""
        out = Table(title=self.title, title_justify="left")
        for number, name in enumerate(self.names):
            out.add_column(name, justify="left" if number < self.left else "right", no_wrap=True)
        for number, row in enumerate(self.rows):
            if self.grouped and number and row[0]:
                out.add_section()
            out.add_row(*(f"[{_COLOURS[cell]}]{cell}[/]" if cell in _COLOURS else cell for cell in row))
        return out

    def markdown(self) -> str:
        """For a page of documentation."""
        rows = (self.names, ["---"] * len(self.names), *self.rows)
        return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def show(sheets: Sequence[Sheet], width: int) -> None:
    """Print those that have rows, on `width` columns even where the terminal is narrower or nobody says how wide."""
    console = Console()
    console.width = max(console.width, width)
    for sheet in sheets:
        if sheet.rows:
            console.print(sheet.table())


def write(sheets: Sequence[Sheet], about: Mapping[str, object], suffix: str = "") -> Path:
    """A JSON file of its own with the machine and what is said `about` the run, and the tables beside it; its path."""
    RESULTS.mkdir(exist_ok=True)
    now = datetime.now(UTC)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}{suffix}.json"
    content = {"at": now.isoformat(timespec="seconds"), **_machine(), **about}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    page = "\n".join(sheet.markdown() for sheet in sheets if sheet.rows)
    path.with_suffix(".md").write_text(page, encoding="utf-8")
    return path


def verdict(met: bool) -> str:
    """The last cell of a target's row."""
    return MET if met else NOT_MET


def version(package: str) -> str | None:
    """Of an installed package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _machine() -> dict[str, object]:
    return {
        "kclient": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "processors": os.cpu_count(),
    }


def _processor() -> str:
    """Return the system's name for its processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
