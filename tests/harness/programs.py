"""Python programs in processes of their own, for what a test's own process must not do."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

_TESTS = Path(__file__).parent.parent


def environment() -> dict[str, str]:
    """The environment of this process, with the package harness on the path."""
    path = [str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def start_script(source: str, *arguments: str) -> subprocess.Popen[str]:
    """A Python program in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(source), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )


def run_script(source: str, *arguments: str) -> tuple[str, str]:
    """Output and error output of a program that ends well."""
    with start_script(source, *arguments) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out, err
