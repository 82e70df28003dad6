"""Runs every check of the project in order and says at the end what passed, what failed and what was skipped.

`make test` is the way to call it. The parts: ruff (lint and format), mypy --strict, pytest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CONNECTOR = "4.0.0"
BESIDE = ["tests/spark/test_side_by_side.py", "tests/spark/test_sink.py", "tests/spark/test_stream.py"]

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


def has_native() -> bool:
    """Whether the native body was built: with it all tests run twice, but for those that no body can change."""
    found = subprocess.run(
        [sys.executable, "-c", "import kclient"],
        cwd=ROOT,
        env={**os.environ, "KCLIENT_IMPL": "c"},
        capture_output=True,
        check=False,
    )
    return found.returncode == 0


def run(name: str, command: list[str], impl: str | None = None) -> bool:
    print(f"==> {name}", flush=True)
    started = time.monotonic()
    environment = os.environ if impl is None else {**os.environ, "KCLIENT_IMPL": impl}
    ok = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0
    print(f"    {'passed' if ok else 'FAILED'} in {time.monotonic() - started:.0f} s", flush=True)
    return ok


def spark_steps(environment: str) -> list[tuple[str, list[str], str | None]]:
    """The tests of kclient.spark, in an environment that has kclient as users have it."""
    if shutil.which("java") is None:
        print("note: no java on this machine, so the tests on Spark will be skipped", flush=True)
        return []
    make = ["make", "--no-print-directory", "spark-env"]
    steps: list[tuple[str, list[str], str | None]] = [
        ("environment with PySpark", [*make, f"SPARK_VENV={environment}"], None),
        ("pytest: Spark", [_python(environment), "-m", "pytest", "-q", "-rs", "tests/spark"], None),
    ]
    if shutil.which("mvn") is None:
        print(
            "note: no mvn on this machine, so Spark's own connector is not there to compare with", flush=True
        )
        return steps
    # Spark's own connector comes from Maven, complete up to this version.
    older = f"{environment}-{CONNECTOR}"
    wanted = [f"SPARK_VENV={older}", f"PYSPARK=pyspark=={CONNECTOR}"]
    beside = [_python(older), "-m", "pytest", "-q", "-rs", "-W", "ignore::ResourceWarning", *BESIDE]
    return [
        *steps,
        (f"environment with PySpark {CONNECTOR}", [*make, *wanted], None),
        ("pytest: beside Spark's own connector", beside, None),
    ]


def _python(environment: str) -> str:
    return str(ROOT / environment / "bin" / "python")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="test processes (default 2)")
    parser.add_argument("--spark-environment", default=".venv-spark", help="where PySpark is, or will be")
    parser.add_argument("--only", choices=["checks", "unit"], help="run one part alone")
    arguments = parser.parse_args()

    steps: list[tuple[str, list[str], str | None]] = [(*check, None) for check in CHECKS]
    native = arguments.only != "checks" and has_native()
    if arguments.only != "checks" and not native:
        if os.environ.get("CI"):
            print("==> failed: the native body of kclient was not built", flush=True)
            return 1
        print(
            "note: the native body was not built here, so the tests run with the pure one alone", flush=True
        )
    # Parity tests hold the two bodies against each other and need no second run. The real broker and whole processes
    # are there for what unit and integration tests cannot show of either body; once is enough.
    both = ["tests/unit", "tests/golden", "tests/integration"]
    if arguments.only == "unit":
        command = pytest_command(arguments.jobs, "tests/unit", "tests/parity", "-m", "not heavy")
        steps += [("pytest: unit", command, "c" if native else "python")]
    elif arguments.only is None:
        if shutil.which("java") is None or shutil.which("mvn") is None:
            print(
                "note: no java or mvn on this machine, so the tests on a real Apache Kafka will be skipped",
                flush=True,
            )
        if native:
            command = pytest_command(arguments.jobs, "-m", "not soak and not heavy and not kafka", *both)
            steps.append(("pytest: pure body", command, "python"))
        name = "native body, and all that runs once" if native else "all, pure body"
        command = pytest_command(arguments.jobs, "-m", "not soak and not spark")
        steps.append((f"pytest: {name}", command, "c" if native else "python"))
        steps += spark_steps(arguments.spark_environment)

    failed = [name for name, command, impl in steps if not run(name, command, impl)]
    print(f"==> {'all of it passed' if not failed else 'failed: ' + ', '.join(failed)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
