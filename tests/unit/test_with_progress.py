"""`.ci/with_progress.py` says that a silent command goes on, and ends with its code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "with_progress.py"
RUN = f"import runpy, sys; main = runpy.run_path({str(SCRIPT)!r})['main']; main.__globals__['_SILENCE_S'] = 0.05; "
SILENT = (
    "import sys, time; print('Building wheel', sys.stdout.isatty(), flush=True); time.sleep(0.5); "
    "print('done'); sys.exit(3)"
)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_silent_command_is_told_of_until_it_ends(terminal: bool) -> None:
    ours, its = os.openpty() if terminal else os.pipe()
    command = [sys.executable, "-c", f"{RUN} sys.exit(main([sys.executable, '-c', {SILENT!r}]))"]
    with subprocess.Popen(command, stdout=its) as process:
        os.close(its)
        said = b""
        try:
            while data := os.read(ours, 65536):
                said += data
        except OSError:
            pass  # the other end of the terminal is gone
        os.close(ours)
    assert process.returncode == 3
    lines = said.decode().splitlines()
    assert f"Building wheel {terminal}" in lines
    assert f" s, still at: Building wheel {terminal}" in said.decode()
    assert lines[-1] == "done"
