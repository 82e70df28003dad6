"""The table of faults (faults.md) has every row, and the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
ROWS = {*range(1, 28), *range(33, 47), *range(49, 57)}
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`( \(soak\))?")


def rows() -> dict[int, str]:
    """The lines of the table by their number."""
    text = (HERE / "faults.md").read_text(encoding="utf-8")
    return {int(number): line for number, line in re.findall(r"^\| F(\d+) (\|.*)$", text, re.MULTILINE)}


def test_every_fault_has_a_row_with_a_test_that_is_not_for_the_soak_alone() -> None:
    assert rows().keys() == ROWS
    without = [number for number, line in rows().items() if all(soak for _, _, soak in _TEST.findall(line))]
    assert without == []


def test_every_test_of_the_table_exists() -> None:
    for line in rows().values():
        for file, name, _ in _TEST.findall(line):
            text = (HERE / file).read_text(encoding="utf-8")
            assert re.search(rf"^ *def {name}\(", text, re.MULTILINE), f"{file} has no {name}"


def test_what_is_for_the_soak_alone_is_said_to_be() -> None:
    for line in rows().values():
        for file, name, soak in _TEST.findall(line):
            assert bool(soak) == file.startswith("soak/"), f"{file}::{name}"


def test_what_is_said_to_be_judged_uses_the_checker() -> None:
    for line in rows().values():
        for file, _, _ in _TEST.findall(line.split("|")[2]):
            text = (HERE / file).read_text(encoding="utf-8")
            assert "harness.checker" in text or "harness.scenarios.faults" in text, file
