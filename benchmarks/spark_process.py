"""A measurement on Spark in a process of its own: JSON in, JSON out."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run_job(program: Path, job: Mapping[str, object], timeout_s: float) -> Any:
    """Return what `program` answers to `job`, as its last line. Raises RuntimeError with the output if it fails."""
    # In another folder: Spark leaves things there, and its workers import what they find in it.
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-P", str(program), json.dumps(job)],
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"it took more than {timeout_s:.0f} s") from error
    if done.returncode != 0:
        raise RuntimeError(f"Spark ended with {done.returncode}:\n{done.stdout}{done.stderr[-8000:]}")
    return json.loads(done.stdout.splitlines()[-1])
