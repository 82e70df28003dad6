"""Which body of the hot path runs, and what it does without anything plugged in."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import kclient._accel as accel
from kclient._accel.hooks import Hooks

# Bytes of a batch with one record, compressed or of magic 1 by one changed byte.
PROGRAM = """
from kclient._accel import *
result = BatchResult("t", 0)
builder = BatchBuilder("t", 0, 1000, result, 0)
future = builder.append(1, None, b"v", None)
builder.close(-1, -1, -1, 1)
data = b"".join(builder.views())
class Record:
    def __init__(self, *fields): self.fields = fields
for bad in (data, data[:16] + b"\\1" + data[17:]):
    try: RecordReader(bad, 0, len(bad), "t", 0, 0, False, Record).read(1)
    except ValueError as error: print(type(error).__name__, error)
try: future.result(0)
except TimeoutError as error: print(type(error).__name__)
"""


@pytest.mark.parametrize("wanted", [None, "", "python"])
def test_the_reference_body_is_there_for_the_asking(wanted: str | None) -> None:
    assert accel._choose(wanted) == "python"


@pytest.mark.parametrize("wanted", ["c", "rust"])
def test_asking_for_a_body_that_is_missing_says_so(wanted: str) -> None:
    environment = dict(os.environ, KCLIENT_IMPL=wanted)
    run = subprocess.run(
        [sys.executable, "-c", "import kclient._accel"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0
    assert "ImportError: KCLIENT_IMPL=" in run.stderr


def test_alone_it_raises_builtin_errors_and_knows_neither_codecs_nor_old_formats() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    codec, legacy, timeout = run.stdout.splitlines()
    assert codec.startswith("ValueError")
    assert "codec 1" in codec
    assert legacy.startswith("ValueError")
    assert timeout == "TimeoutError"


def test_every_hook_has_a_default() -> None:
    hooks = Hooks()
    assert all(callable(getattr(hooks, name)) for name in Hooks.__slots__)
    error = hooks.undecodable_error("t", 0, 7, "key", 1, b"", b"", ())
    assert "key" in str(error)
    assert "7" in str(error)


def test_the_exported_names_are_there() -> None:
    assert all(hasattr(accel, name) for name in accel.__all__)
