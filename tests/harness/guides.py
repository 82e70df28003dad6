"""Programs in the documentation, and running them as they stand."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def python_blocks(name: str) -> list[str]:
    """Return the Python programs of a document, which is named from the root of the project."""
    return _blocks(name, "python")


def kclient_commands(name: str) -> list[list[str]]:
    """Return the words behind `kclient` of each line of a document's shell blocks that is such a command."""
    lines = "".join(_blocks(name, "bash")).splitlines()
    commands = [shlex.split(line, comments=True) for line in lines]
    return [words[1:] for words in commands if words[:1] == ["kclient"]]


def _blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run_block(block: str, directory: Path) -> None:
    """Run a program in `directory`, which has its temporary files as well; it must end well, without a warning."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", block],
        cwd=directory,
        env={**os.environ, "TMPDIR": str(directory)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
