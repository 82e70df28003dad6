"""The run of queries as it is shown: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import io

from rich.console import Console

from harness.waiting import wait_until
from kclient.spark.pipelines.live import Live
from kclient.spark.pipelines.report import Progress


def batch(number: int, rows: int, late: int = 0) -> Progress:
    return Progress("events", number, rows, late, 5, 0)


def test_without_a_terminal_there_are_lines_and_silence_is_broken() -> None:
    said = io.StringIO()
    with Live(Console(file=said, soft_wrap=True), {"events": 10}, silence_s=0.05) as live:
        live.doing("starting Spark")
        wait_until(lambda: " 0 s: starting Spark" in said.getvalue(), 10, "a word")
        live.told(batch(0, 4, 1))
    lines = said.getvalue().splitlines()
    assert lines[0] == "starting Spark"
    assert "events: micro-batch 0, 4 rows, 1 too late for their window, 5 behind" in lines


def test_on_a_terminal_every_query_has_a_bar() -> None:
    said = io.StringIO()
    console = Console(file=said, force_terminal=True, width=120, _environ={"TERM": "xterm"})
    with Live(console, {"events": 10}) as live:
        live.doing("starting Spark")
        live.told(batch(0, 4, 1))
        live.told(batch(1, 6))
    last = said.getvalue().split("events")[-1]
    assert "10/10" in last
    assert "5 behind" in last
    assert "starting Spark" not in last
