"""Figures of the embedded broker alone, each taken in a process of its own.

`python -m benchmarks.embedded_figures NAME [ARGUMENT]` prints them as JSON: a list of names, values and what is wanted.
"""

from __future__ import annotations

import json
import os
import random
import resource
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import psutil  # type: ignore[import-untyped]

from benchmarks.broker import embedded_process
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.broker.timer.system_timer import SystemTimer
from kclient.broker.timer.timing_wheel import TimerTask
from kclient.producer import KafkaProducer

_ROOT = Path(__file__).resolve().parent.parent
_STARTS = 10
_CONNECTIONS = 5000
_PARTITIONS = 2000
_ENTRIES = 1_000_000
_MB = 1_000_000
_ASK_FOR_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
_ANSWER_BYTES = 4096


class _Task(TimerTask):
    """Does nothing when it is due."""

    def run(self) -> None:
        """Do nothing."""


@attrs.frozen
class Figure:
    """A figure of which less is better; `wanted` is the most that it may be, None where it only informs."""

    name: str
    value: float
    unit: str
    wanted: float | None = None


def of(name: str, *arguments: str) -> list[Figure]:
    """Take the figures `name` in a new process. Raises RuntimeError with its output if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.embedded_figures", name, *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{name}:\n{done.stdout}{done.stderr}")
    return [Figure(**fields) for fields in json.loads(done.stdout.splitlines()[-1])]


def start() -> list[Figure]:
    """From exec to `listening on`, the median of ten starts in an empty directory; one before them caches bytecode."""
    took_ms = []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(_STARTS + 1):
        with tempfile.TemporaryDirectory(prefix="kclient-bench-") as folder:
            command = [sys.executable, "-m", "kclient", "broker", "--port", "0", "--data-dir", folder]
            began_s = time.perf_counter()
            with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as broker:
                assert broker.stdout is not None
                broker.stdout.readline()
                took_ms.append((time.perf_counter() - began_s) * 1000)
                broker.terminate()
    return [Figure("exec to 'listening on'", statistics.median(took_ms[1:]), "ms", 300)]


def connections() -> list[Figure]:
    """The memory that connections add to the broker which have asked one thing, and then nothing."""
    _allow_files(2 * _CONNECTIONS)
    with (
        tempfile.TemporaryDirectory(prefix="kclient-bench-") as folder,
        embedded_process()(Path(folder)) as broker,
    ):
        process = psutil.Process(broker.pid)
        before = process.memory_info().rss
        idle = []
        try:
            for _ in range(_CONNECTIONS):
                idle.append(socket.create_connection(("127.0.0.1", broker.port)))
                idle[-1].sendall(_ASK_FOR_VERSIONS)
            for one in idle:
                assert one.recv(_ANSWER_BYTES), "a connection was closed"
            added = process.memory_info().rss - before
        finally:
            for one in idle:
                one.close()
    return [Figure(f"memory of {_CONNECTIONS:,} idle connections", added / _MB, "MB", 60)]


def partitions(files: str) -> list[Figure]:
    """Creating, closing and opening many partitions, with at most so many `files` open."""
    limit = int(files)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with (
        tempfile.TemporaryDirectory(prefix="kclient-bench-") as folder,
        EmbeddedKafka(data_dir=folder) as kafka,
    ):
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            created_s = _seconds(lambda: admin.create_topics([NewTopic("many", _PARTITIONS, 1)]))
        closed_s = _seconds(kafka.stop)
        opened_s = _seconds(kafka.start)
    about = f"{_PARTITIONS:,} partitions, ulimit {limit}"
    return [
        Figure(f"{about}: created", created_s, "s", 3),
        Figure(f"{about}: closed", closed_s, "s", 2),
        Figure(f"{about}: opened", opened_s, "s", 1),
    ]


def timer() -> list[Figure]:
    """Adding and cancelling timers, when a million of them wait, with delays by chance up to ten minutes."""
    delays = random.Random(7)
    tasks = [_Task(delays.randrange(1, 600_000)) for _ in range(_ENTRIES)]
    waiting = SystemTimer("bench")

    def add() -> None:
        for task in tasks:
            waiting.add(task)

    def cancel() -> None:
        for task in tasks:
            task.cancel()

    figures = [
        Figure(f"timer of {_ENTRIES:,}: add", _seconds(add) / _ENTRIES * 1e6, "us", 2),
        Figure(f"timer of {_ENTRIES:,}: cancel", _seconds(cancel) / _ENTRIES * 1e6, "us", 2),
    ]
    waiting.close()
    return figures


def large_log(gigabytes: str) -> list[Figure]:
    """Opening a directory of so many gigabytes after a clean shutdown, and the bytes that it reads for that."""
    values = [random.Random(7).randbytes(1_000_000)] * int(float(gigabytes) * 1000)
    with (
        tempfile.TemporaryDirectory(prefix="kclient-bench-") as folder,
        EmbeddedKafka(data_dir=folder) as kafka,
    ):
        with KafkaProducer(
            bootstrap_servers=kafka.bootstrap_servers, max_request_size=2 * _MB, batch_size=2 * _MB
        ) as producer:
            for value in values:
                producer.send("large", value)
        kafka.stop()
        before = _bytes_read()
        opened_s = _seconds(kafka.start)
        read = _bytes_read() - before
    return [
        Figure(f"{gigabytes} GB after a clean shutdown: opened", opened_s, "s"),
        Figure(f"{gigabytes} GB after a clean shutdown: read", read / _MB, "MB", 1),
    ]


def _allow_files(count: int) -> None:
    """Let this process, and those that it starts, open so many files, as far as the system allows it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (count if most == resource.RLIM_INFINITY else min(count, most), most)
    )


def _bytes_read() -> int:
    return int(psutil.Process().io_counters().read_chars)


def _seconds(step: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    step()
    return time.perf_counter() - began_s


FIGURES: Mapping[str, Callable[..., list[Figure]]] = {
    each.__name__: each for each in (start, connections, partitions, timer, large_log)
}


def main(arguments: Sequence[str]) -> None:
    """Entry of the process that takes figures."""
    name, *more = arguments
    print(json.dumps([attrs.asdict(figure) for figure in FIGURES[name](*more)]))


if __name__ == "__main__":
    main(sys.argv[1:])
