"""The embedded broker as a process of its own, to be stopped, frozen and killed."""

from __future__ import annotations

import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from harness.network.ports import free_port
from harness.programs import environment

_READY = b"listening on "


class BrokerProcess:
    """`kclient broker` on one port and one directory, both kept over restarts.

    `settings` are broker settings. What it logs is in `log_file`. Use as a context manager, or call start and close.
    """

    def __init__(self, directory: Path, **settings: str) -> None:
        self.port = free_port()
        self.data_dir = directory / "broker-data"
        self.log_file = directory / "broker.log"
        self._settings = {
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "offsets.topic.num.partitions": "5",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        self.program = [sys.executable, "-m", "kclient"]
        """The program that is started, without its arguments."""
        self.exit_code: int | None = None
        """The code with which the last process ended, None before that."""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """host:port of the broker."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process id; raises AssertionError if it does not run."""
        assert self._process is not None, "the broker does not run"
        return self._process.pid

    def start(self, timeout_s: float = 60.0) -> Self:
        """Start, and wait until it says that it listens; raises RuntimeError with its log if it does not."""
        assert self._process is None, "the broker runs already"
        self.data_dir.mkdir(parents=True, exist_ok=True)
        command = [
            *(*self.program, "broker"),
            *("--port", str(self.port), "--data-dir", str(self.data_dir)),
        ]
        for key, value in self._settings.items():
            command += ["-X", f"{key}={value}"]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=environment())
        stdout = self._process.stdout
        assert stdout is not None
        if not _first_line(stdout, timeout_s).startswith(_READY):
            self.kill()
            raise RuntimeError(
                f"the broker did not start:\n{self.log_file.read_text(errors='replace')[-8000:]}"
            )
        return self

    def stop(self, timeout_s: float = 60.0) -> None:
        """SIGTERM, and wait; raises AssertionError if it does not end well."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        finally:
            _close(process)
        assert process.returncode == 0, f"the broker ended with {process.returncode}; see {self.log_file}"

    def kill(self) -> None:
        """kill -9."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self.exit_code = process.wait(10)
            _close(process)

    def pause(self) -> None:
        """SIGSTOP: connections stay, nobody answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.stop()
        else:
            self.kill()


def _first_line(stream: IO[bytes], timeout_s: float) -> bytes:
    """The first line of a pipe; what came of it when the time was over or the pipe ended."""
    line = b""
    deadline = time.monotonic() + timeout_s
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not line.endswith(b"\n") and selector.select(max(0.0, deadline - time.monotonic())):
            part = stream.read1(4096)  # type: ignore[attr-defined]
            if not part:
                break
            line += part
    return line


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdout is not None:
        process.stdout.close()
