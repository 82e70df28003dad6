"""The table of faults (faults.md) has every row, and the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
ROWS = {*range(1, 28), *range(33, 47), *range(49, 57)}
_NOT_JUDGED = {13, 39, 41, 46, 53, 54, 55, 56}
"""Rows in which nothing is delivered, or nothing else than without the fault; faults.md says so as well."""
_BY_NUMBER = "kafka/test_judged_"
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


def test_every_row_with_something_at_stake_is_judged_not_by_the_soak_alone() -> None:
    judged = {
        number
        for number, line in rows().items()
        if any(not soak for _, _, soak in _TEST.findall(line.split("|")[2]))
    }
    # F38's transactions are judged where there is time for all kinds of them.
    assert judged == ROWS - _NOT_JUDGED - {38}


def test_those_who_are_not_judged_are_said_to_be() -> None:
    text = (HERE / "faults.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"^Not judged are (.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    assert {int(number) for number in re.findall(r"F(\d+)", said.partition("In F20")[0])} == _NOT_JUDGED


def test_a_row_that_is_judged_by_its_number_is_among_the_rows_of_that_test() -> None:
    for number, line in rows().items():
        for file, _, _ in _TEST.findall(line.split("|")[2]):
            if file.startswith(_BY_NUMBER):
                text = (HERE / file).read_text(encoding="utf-8")
                table = text.partition("\nROWS: ")[2].partition("\n}")[0]
                ids = re.findall(r'^    "(F[F\d ]+)": ', table, re.MULTILINE)
                assert f"F{number}" in " ".join(ids).split(), f"{file} has no F{number}"
