"""Answers of mypy and Pyright to programs of users: nothing to right ones, and a word to every wrong line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from harness.guides import python_blocks

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
PROGRAMS = Path(__file__).parent / "typing_programs"
# What is in README.md and in the examples is right; those for Spark are written against PySpark's types.
README = python_blocks("README.md")
EXAMPLES = [path for path in (ROOT / "examples").glob("*.py") if not path.stem.startswith("spark_")]

Found = dict[str, dict[int, str]]
"""For each program, by its file's name, the errors by their lines."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("programs")
    for path in [*EXAMPLES, *PROGRAMS.glob("*.py")]:
        (directory / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    for number, text in enumerate(README):
        (directory / f"readme_{number}.py").write_text(text, encoding="utf-8")
    return directory


def said_by_mypy(programs: Path) -> Found:
    # In the project's directory and with its settings, so that what was found out about kclient is used again.
    paths = sorted(map(str, programs.glob("*.py")))
    command = [str(BIN / "mypy"), "--strict", "--no-pretty", "--no-error-summary", *paths]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    found: Found = defaultdict(dict)
    for path, line, text in re.findall(r"(?m)^(.*?):(\d+): error: (.*)$", done.stdout):
        found[Path(path).name][int(line)] = text
    assert done.returncode == bool(found), done.stdout
    return found


def said_by_pyright(programs: Path) -> Found:
    config = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT), str(ROOT / "typings")],
    }
    (programs / "pyrightconfig.json").write_text(json.dumps(config))
    command = [str(BIN / "basedpyright"), "--project", ".", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    assert answer["summary"]["filesAnalyzed"] == len(list(programs.glob("*.py")))
    found: Found = defaultdict(dict)
    for each in answer["generalDiagnostics"]:
        if each["severity"] == "error":
            found[Path(each["file"]).name][each["range"]["start"]["line"] + 1] = each["message"]
    return found


@pytest.fixture(scope="module", params=[said_by_mypy, said_by_pyright], ids=["mypy", "pyright"])
def found(request: pytest.FixtureRequest, programs: Path) -> Found:
    answer: Found = request.param(programs)
    return answer


def test_right_programs_are_left_alone(found: Found) -> None:
    assert {name: errors for name, errors in found.items() if name != "wrong.py"} == {}


def test_every_wrong_line_is_named_with_what_is_wrong(found: Found) -> None:
    lines = (PROGRAMS / "wrong.py").read_text(encoding="utf-8").splitlines()
    wrong = {
        number: line.split("# wrong: ")[1] for number, line in enumerate(lines, 1) if "# wrong: " in line
    }
    assert len(wrong) > 10
    assert found["wrong.py"].keys() == wrong.keys()
    for number, words in wrong.items():
        assert words in found["wrong.py"][number], f"line {number}"
