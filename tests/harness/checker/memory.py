"""History in memory, on a clock that ticks with every line: for histories that tests make up."""

from __future__ import annotations

import itertools

from harness.checker.history import History
from harness.checker.loader import load_lines
from harness.checker.log import HistoryLog
from harness.checker.report import check


class MemoryLog(HistoryLog):
    """Log whose events take place one after another, a second apart."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        ticks = itertools.count(1)
        super().__init__(self.lines.append, lambda: float(next(ticks)))

    def history(self) -> History:
        """Read the lines."""
        return load_lines(self.lines)

    def kinds(self) -> list[str]:
        """Kinds of the anomalies, sorted."""
        return sorted(anomaly.kind for anomaly in check(self.history()))
