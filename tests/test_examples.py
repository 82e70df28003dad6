"""Every example runs as its first lines say, on an embedded broker, and prints something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Those for Spark are run in tests/spark/pipelines, where there is a session for all of them.
ALONE = [example for example in EXAMPLES if not example.stem.startswith("spark_")]
PATIENCE_S = 100
"""Each takes a second or two, and more where other tests run beside it."""


@pytest.mark.parametrize("example", ALONE, ids=lambda path: path.stem)
def test_the_example_runs(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "Traceback" not in done.stderr


def test_every_example_is_short_and_says_what_it_shows() -> None:
    for example in EXAMPLES:
        text = example.read_text()
        assert len(text.splitlines()) < 80, example.name
        assert text.startswith('"""'), example.name
