"""The run of queries as it goes on: bars on a terminal, lines elsewhere, and never long without a word."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

if TYPE_CHECKING:
    from kclient.spark.pipelines.report import Progress

_SILENCE_S = 5.0


class Live:
    """Shows how far each of the queries has come, of so many rows as `totals` says. Thread-safe.

    On a terminal each has a bar. Elsewhere there is a line for each micro-batch, and one whenever nothing was said for
    five seconds.
    """

    def __init__(self, console: Console, totals: Mapping[str, int], silence_s: float = _SILENCE_S) -> None:
        self._console = console
        self._totals = totals
        self._silence_s = silence_s
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}
        self._doing = ""
        self._waits: TaskID | None = None
        self._begun_s = self._said_s = time.monotonic()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            self._bars = Bars(*columns, TextColumn("{task.fields[more]}"), console=self._console)
            self._bars.start()
        else:
            threading.Thread(target=self._break_silence, name="silence", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._bars is not None:
            self._bars.stop()

    def doing(self, what: str) -> None:
        """Say what goes on until the first rows have come."""
        self._doing = what
        if self._bars is None:
            self._say(what)
            return
        self._end_waiting()
        self._waits = self._bars.add_task(what, total=None, more="")

    def told(self, progress: Progress) -> None:
        """Show a micro-batch."""
        self._doing = "at the next micro-batch"
        if self._bars is None:
            self._say(str(progress))
            return
        self._end_waiting()
        query = progress.query
        if query not in self._tasks:
            self._tasks[query] = self._bars.add_task(query, total=self._totals.get(query), more="")
        late = f", {progress.late_rows:,} late" if progress.late_rows else ""
        more = f"{progress.behind:,} behind{late}"
        self._bars.update(self._tasks[query], advance=progress.rows, more=more)

    def _end_waiting(self) -> None:
        if self._bars is not None and self._waits is not None:
            self._bars.remove_task(self._waits)
        self._waits = None

    def _say(self, text: str) -> None:
        self._said_s = time.monotonic()
        self._console.print(text, highlight=False, markup=False)

    def _break_silence(self) -> None:
        while not self._over.wait(max(self._said_s + self._silence_s - time.monotonic(), 0.01)):
            now = time.monotonic()
            if now - self._said_s >= self._silence_s:
                self._say(f"    {now - self._begun_s:.0f} s: {self._doing}")
