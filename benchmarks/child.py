"""One measurement in a process of its own: `python -m benchmarks.child MODULE JOB`, JSON in and JSON out."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import attrs

from benchmarks.case import Case, Job, Measured, UnavailableError
from benchmarks.clients import Client
from benchmarks.shapes import SHAPES
from benchmarks.watch import peak_rss_bytes

_ROOT = Path(__file__).resolve().parent.parent
_TIMEOUT_S = 900.0


def measure(client: Client, job: Job) -> Measured:
    """Let `client` do `job` in a new process.

    Raises UnavailableError if it cannot be done here, RuntimeError with its output if it fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", client.module, json.dumps(attrs.asdict(job))],
        cwd=_ROOT,
        env={**os.environ, **client.environment},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{client.module} could not {job.operation}:\n{done.stdout}{done.stderr}")
    answer = json.loads(done.stdout.splitlines()[-1])
    if "unavailable" in answer:
        raise UnavailableError(answer["unavailable"])
    return Measured(**answer)


def main() -> None:
    """Entry of the child process."""
    module, text = sys.argv[1:]
    fields = json.loads(text)
    job = Job(**{**fields, "case": Case(**fields["case"])})
    try:
        if job.operation in SHAPES:
            peer = importlib.import_module(f"benchmarks.peers.{module}_shapes")
            measured: Measured = peer.shape(job)
        else:
            peer = importlib.import_module(f"benchmarks.peers.{module}")
            measured = getattr(peer, job.operation)(job)
    except (ImportError, UnavailableError) as error:
        print(json.dumps({"unavailable": str(error)}))
        return
    if not measured.rss_bytes:
        measured = attrs.evolve(measured, rss_bytes=peak_rss_bytes())
    print(json.dumps(attrs.asdict(measured)))


if __name__ == "__main__":
    main()
