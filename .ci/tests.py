"""Runs every check of the project in order and says at the end what passed, what failed and what was skipped.

`make test` is the way to call it. The parts: ruff (lint and format), mypy --strict, pytest.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CHECKS = [
    ("ruff: lint", [str(BIN / "ruff"), "check", "."]),
    ("ruff: format", [str(BIN / "ruff"), "format", "--check", "--quiet", "."]),
    ("mypy --strict", [str(BIN / "mypy")]),
]


def pytest_command(jobs: int, *more: str) -> list[str]:
    """Heavy tests share xdist groups, so that one real broker serves the whole run."""
    command = [sys.executable, "-m", "pytest", "-q", "-rs", *more]
    if jobs > 1:
        command += ["-n", str(jobs), "--dist", "loadgroup"]
    return command


def run(name: str, command: list[str]) -> bool:
    print(f"==> {name}", flush=True)
    started = time.monotonic()
    ok = subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    print(f"    {'passed' if ok else 'FAILED'} in {time.monotonic() - started:.0f} s", flush=True)
    return ok


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="test processes (default 2)")
    parser.add_argument("--only", choices=["checks", "unit"], help="run one part alone")
    arguments = parser.parse_args()

    steps = list(CHECKS)
    if arguments.only == "unit":
        steps = [
            ("pytest: unit", pytest_command(arguments.jobs, "tests/unit", "tests/parity", "-m", "not heavy"))
        ]
    elif arguments.only is None:
        if shutil.which("java") is None or shutil.which("mvn") is None:
            print(
                "note: no java or mvn on this machine, so the tests on a real Apache Kafka will be skipped",
                flush=True,
            )
        steps.append(("pytest", pytest_command(arguments.jobs, "-m", "not soak")))

    failed = [name for name, command in steps if not run(name, command)]
    print(f"==> {'all of it passed' if not failed else 'failed: ' + ', '.join(failed)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
