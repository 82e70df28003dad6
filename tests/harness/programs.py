"""Python programs in processes of their own, for what a test's own process must not do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

_TESTS = Path(__file__).parent.parent


def environment() -> dict[str, str]:
    """The environment of this process, with the package harness on the path."""
    path = [str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def end_with_parent() -> None:
    """End this process and those that it began when the one at the other end of standard input is gone."""

    def wait() -> None:
        while os.read(0, 1):  # not through sys.stdin, whose lock the interpreter wants when it ends
            pass
        os.killpg(os.getpgrp(), signal.SIGKILL)

    threading.Thread(target=wait, daemon=True).start()


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
