"""A Spark program on executors of its own, parts of which can be killed: its driver, its executors, their Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil  # type: ignore[import-untyped]

from harness.spark import sessions

_EXECUTORS = 2
_DRIVER_ALONE = {
    "spark.master": f"local-cluster[{_EXECUTORS},1,700]",
    "spark.executor.memory": "700m",
    "spark.driver.memory": "700m",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.driver.extraJavaOptions": sessions.JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": sessions.JAVA_OPTIONS,
    # Executors and tasks are lost more often here than by themselves.
    "spark.task.maxFailures": "1000",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.excludeOnFailure.enabled": "false",
}


class ClusterJob:
    """A program of the harness on a cluster of two executors, each of them a process. Ends with SIGKILL."""

    def __init__(self, program: Path, directory: Path, *arguments: str) -> None:
        self._command = [sys.executable, str(program), *arguments]
        self._log_file = directory / "job.log"
        lines = "".join(f"{name} {value}\n" for name, value in _DRIVER_ALONE.items())
        (directory / "spark-defaults.conf").write_text(lines)
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the driver, which starts all others."""
        home = writable_home(self._directory)
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_CONF_DIR": str(self._directory),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self._directory,
                start_new_session=True,
            )

    @property
    def ended(self) -> bool:
        """True once the driver has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def kill(self) -> None:
        """kill -9 of the driver and of all that it has started."""
        if self._process is None:
            return
        below = self._below()
        self._process.kill()
        for process in below:
            _kill(process)
        self._process.wait(30)
        self._process = None

    def executors(self) -> list[psutil.Process]:
        """Return the executors' JVMs."""
        return self._named("CoarseGrainedExecutorBackend")

    def workers(self) -> list[psutil.Process]:
        """Return the Python processes that run tasks, and those that start them."""
        return self._named("pyspark.daemon")

    def said(self) -> str:
        """The end of what the program has written."""
        return self._log_file.read_text(errors="replace")[-6000:]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def _named(self, word: str) -> list[psutil.Process]:
        found = []
        for process in self._below():
            try:
                if word in " ".join(process.cmdline()):
                    found.append(process)
            except psutil.NoSuchProcess:
                continue  # it has ended meanwhile
        return found

    def _below(self) -> list[psutil.Process]:
        try:
            return [] if self._process is None else psutil.Process(self._process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []


def writable_home(directory: Path) -> Path:
    """Return a home of Spark's that is the installed one, but for what executors leave in it."""
    import pyspark

    home = directory / "home"
    if not home.exists():
        home.mkdir()
        for part in Path(pyspark.__file__).parent.iterdir():
            (home / part.name).symlink_to(part)
    return home


def kill_one(processes: Sequence[psutil.Process], index: int) -> bool:
    """kill -9 of one of these; False if there is none, or it has ended."""
    return bool(processes) and _kill(processes[index % len(processes)])


def _kill(process: psutil.Process) -> bool:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return True
