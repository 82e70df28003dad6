"""Run of every check of the project, in order; the end of what it prints says which tests failed, in all parts.

`make test` is the way to call it. The parts: ruff (lint and format), mypy --strict, pytest.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

CONNECTOR = "4.0.0"
BESIDE = [
    f"tests/spark/test_{name}.py" for name in ("side_by_side", "secured", "sink", "stream", "exactly_once")
]
# Folders of tests/unit about what imports nothing of kclient._accel but its hooks for forks and interrupts.
ALIKE = (
    "admin",
    "benchmarks",
    "cli",
    "common",
    "compress",
    "config",
    "errors",
    "metrics",
    "protocol",
    "security",
    "serialization",
)
MAKE_SPARK = ["make", "--no-print-directory", "spark-env"]
_MINUTE_S = 60.0


class Step(NamedTuple):
    """A command with its name; `impl` is the body of kclient that it runs with, None for the one that there is.

    One that is `early` begins beside the first steps, as it waits for the network more than for a processor.
    """

    name: str
    command: list[str]
    impl: str | None = None
    early: bool = False


CHECKS = [
    Step("ruff: lint", [str(BIN / "ruff"), "check", "."]),
    Step("ruff: format", [str(BIN / "ruff"), "format", "--check", "--quiet", "."]),
    Step("mypy --strict", [str(BIN / "mypy")]),
]


def pytest_command(jobs: int, *more: str, python: str = sys.executable) -> list[str]:
    """Command that runs tests; the heavy ones share xdist groups, so that one real broker serves the whole run."""
    command = [python, "-m", "pytest", "-q", "-rs", "--durations=10", "--durations-min=10", *more]
    if jobs > 1:
        command += ["-n", str(jobs), "--dist", "loadgroup"]
    return command


def has_native() -> bool:
    """Return True if the native body was built: with it all tests run twice, but for those that no body can change."""
    found = subprocess.run(
        [sys.executable, "-c", "import kclient"],
        cwd=ROOT,
        env={**os.environ, "KCLIENT_IMPL": "c"},
        capture_output=True,
        check=False,
    )
    return found.returncode == 0


def run(step: Step) -> list[str]:
    """Run a step to its end, saying every minute that it goes on; a line for each thing that failed in it."""
    print(f"==> {step.name}", flush=True)
    started = time.monotonic()
    environment = {**os.environ} if step.impl is None else {**os.environ, "KCLIENT_IMPL": step.impl}
    # Test processes, and what they start, import the same files hundreds of times.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command, report = step.command, None
    with tempfile.TemporaryDirectory(prefix="kclient-tests-") as folder:
        if "pytest" in command:
            report = Path(folder) / "report.xml"
            # The older form names the files.
            command = [*command, f"--junit-xml={report}", "-o", "junit_family=xunit1"]
        with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
            while True:
                try:
                    code = process.wait(_MINUTE_S)
                    break
                except subprocess.TimeoutExpired:
                    minutes = (time.monotonic() - started) / 60
                    print(f"\n    {step.name}: {minutes:.0f} min", flush=True)
        print(f"    {'FAILED' if code else 'passed'} in {time.monotonic() - started:.0f} s", flush=True)
        if not code:
            return []
        failures = list(failed_tests(report)) if report is not None and report.exists() else []
    return [f"{step.name}: {each}" for each in failures or [f"ended with {code}"]]


def run_early(step: Step) -> tuple[int, str]:
    """Run a step without a word; the code that it ended with and what it has to say."""
    started = time.monotonic()
    done = subprocess.run(
        step.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    verdict = f"    {'FAILED' if done.returncode else 'passed'} in {time.monotonic() - started:.0f} s"
    return done.returncode, f"{done.stdout}{verdict}"


def run_all(steps: list[Step]) -> Iterator[str]:
    """Run all steps, in order but for the early ones; a line for each thing that failed."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        early = {step.name: beside.submit(run_early, step) for step in steps if step.early}
        for step in steps:
            if not step.early:
                yield from run(step)
                continue
            print(f"==> {step.name}, begun beside the steps before", flush=True)
            code, said = early[step.name].result()
            print(said, flush=True)
            if code:
                yield f"{step.name}: ended with {code}"


def failed_tests(report: Path) -> Iterator[str]:
    """Tests that failed or could not run, by a report of pytest's, each with the first line of why."""
    for case in ET.parse(report).iter("testcase"):
        for kind in ("failure", "error"):
            for found in case.iter(kind):
                why = (found.get("message") or "").strip().partition("\n")[0]
                yield f"{case.get('file') or case.get('classname')}::{case.get('name')}: {why}"


def spark_steps(jobs: int, environment: str) -> tuple[list[Step], list[Step]]:
    """Environment that has kclient as users have it, and the tests of kclient.spark in it."""
    if shutil.which("java") is None:
        print("note: no java on this machine, so the tests on Spark will be skipped", flush=True)
        return [], []
    made = Step("environment with PySpark", [*MAKE_SPARK, f"SPARK_VENV={environment}"], early=True)
    command = pytest_command(jobs, "-m", "not soak", "tests/spark", python=_python(environment))
    return [made], [Step("pytest: Spark", command)]


def connector_steps(jobs: int, environment: str) -> list[Step]:
    """Environment with an older PySpark, whose own connector there is, and what is compared with that."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        print(
            "note: no java or mvn on this machine, so Spark's own connector is not there to compare with",
            flush=True,
        )
        return []
    # Spark's own connector comes from Maven, complete up to this version.
    older = f"{environment}-{CONNECTOR}"
    # Made after the first environment, whose wheel fits as well.
    wanted = [f"SPARK_VENV={older}", f"PYSPARK=pyspark=={CONNECTOR}", f"WHEEL={environment}/wheel/*.whl"]
    beside = pytest_command(
        jobs, "-m", "old_spark", "-W", "ignore::ResourceWarning", *BESIDE, python=_python(older)
    )
    return [
        Step(f"environment with PySpark {CONNECTOR}", [*MAKE_SPARK, *wanted]),
        Step("pytest: beside Spark's own connector", beside),
    ]


def _python(environment: str) -> str:
    return str(ROOT / environment / "bin" / "python")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="test processes (default 2)")
    parser.add_argument("--spark-environment", default=".venv-spark", help="where PySpark is, or will be")
    parser.add_argument("--only", choices=["checks", "unit", "connector"], help="run one part alone")
    arguments = parser.parse_args()

    if arguments.only == "connector":
        return report(connector_steps(arguments.jobs, arguments.spark_environment))
    steps = list(CHECKS)
    native = arguments.only != "checks" and has_native()
    if arguments.only != "checks" and not native:
        if os.environ.get("CI"):
            print("==> failed: the native body of kclient was not built", flush=True)
            return 1
        print(
            "note: the native body was not built here, so the tests run with the pure one alone", flush=True
        )
    # Parity tests hold the two bodies against each other and need no second run. The real broker and whole processes
    # are there for what unit and integration tests cannot show of either body; once is enough, as it is for what no
    # body is part of.
    both = ["tests/unit", "tests/golden", "tests/integration"]
    if arguments.only == "unit":
        command = pytest_command(arguments.jobs, "tests/unit", "tests/parity", "-m", "not heavy")
        steps.append(Step("pytest: unit", command, "c" if native else "python"))
    elif arguments.only is None:
        if shutil.which("java") is None or shutil.which("mvn") is None:
            print(
                "note: no java or mvn on this machine, so the tests on a real Apache Kafka will be skipped",
                flush=True,
            )
        if native:
            alike = [f"--ignore=tests/unit/{folder}" for folder in ALIKE]
            command = pytest_command(
                arguments.jobs, "-m", "not soak and not heavy and not kafka", *both, *alike
            )
            steps.append(Step("pytest: pure body", command, "python"))
        name = "native body, and all that runs once" if native else "all, pure body"
        command = pytest_command(arguments.jobs, "-m", "not soak and not spark")
        environments, spark = spark_steps(arguments.jobs, arguments.spark_environment)
        # The tests of packaging need the work tree for themselves, in which the environments build their wheel.
        steps += [*environments, Step(f"pytest: {name}", command, "c" if native else "python"), *spark]

    return report(steps)


def report(steps: list[Step]) -> int:
    """Run all steps and say what failed; the code to end with."""
    failed = list(run_all(steps))
    verdict = f"failed: {len(failed)}" if failed else "all of it passed"
    print(f"==> {verdict}", *failed, sep="\n    ", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
