"""One measurement in a process of its own: `python -m benchmarks.child CLIENT JOB`, JSON in and JSON out."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import attrs

from benchmarks.case import Case, Job, Measured

_ROOT = Path(__file__).resolve().parent.parent
_TIMEOUT_S = 600.0


def measure(client: str, job: Job) -> Measured:
    """Let `client` do `job` in a new process; raises RuntimeError with its output if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", client, json.dumps(attrs.asdict(job))],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{client} could not {job.operation}:\n{done.stdout}{done.stderr}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Entry of the child process."""
    client, text = sys.argv[1:]
    fields = json.loads(text)
    job = Job(**{**fields, "case": Case(**fields["case"])})
    peer = importlib.import_module(f"benchmarks.peers.{client}")
    measured: Measured = {"produce": peer.produce, "consume": peer.consume}[job.operation](job)
    print(json.dumps(attrs.asdict(measured)))


if __name__ == "__main__":
    main()
