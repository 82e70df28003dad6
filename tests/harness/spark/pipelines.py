"""Pipelines as programs that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.spark import sessions

SPARK = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": sessions.JAVA_OPTIONS,
}


class PipelineProcess:
    """`kclient pipeline`, with its JVM in a process group of its own. What it says is in `log_file`."""

    def __init__(self, log_file: Path, *arguments: str, settings: Mapping[str, str] = SPARK) -> None:
        self._log_file = log_file
        self._arguments = arguments
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "kclient", "pipeline", *self._arguments]
        for key, value in self._settings.items():
            command += ["--conf", f"{key}={value}"]
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        # Python would find the work tree first, and Spark's search no package in it.
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self._log_file.parent,
                start_new_session=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.returncode is None:
            self.kill()

    @property
    def ended(self) -> bool:
        """True once it has ended by itself."""
        assert self._process is not None
        return self._process.poll() is not None

    def kill(self) -> None:
        """kill -9 of the driver, Python and JVM both."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)

    def signal(self, number: int) -> None:
        """Send a signal to the driver's Python alone."""
        assert self._process is not None
        self._process.send_signal(number)

    def finish(self, timeout_s: float) -> None:
        """Wait until it ends; raises AssertionError with what it said if it does not end well."""
        assert self._process is not None
        code = self._process.wait(timeout_s)
        assert code == 0, self.said()

    def said(self) -> str:
        """All that it has written."""
        return self._log_file.read_text(errors="replace")[-8000:]
