"""kclient's data source for PySpark with many partitions, on a standalone cluster of one and of two workers.

`python -m benchmarks.spark_scale`, with an interpreter that has PySpark and kclient (make bench-spark-scale). A topic
of 1,000 partitions is filled with 20 million records of 100 bytes and read whole, by one worker of one core and by two;
the CPU is that of the executors, their JVMs and Python processes, so that driver and broker do not count. Then planning
is timed, and the driver's memory looked at over many micro-batches. About fifteen minutes; every figure is a median.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import attrs

from benchmarks import output
from benchmarks.broker import spark_cluster
from benchmarks.command import new_broker, positive, run
from benchmarks.output import Sheet
from benchmarks.spark import missing
from benchmarks.spark_process import run_job
from benchmarks.topics import create_topic
from kclient.admin import KafkaAdminClient
from kclient.producer import KafkaProducer

SIZE = 100
SMALL = 20
"""Records of a partition where a task has next to nothing to read: what it costs then is the cost of a task."""

MOST_CPU = 1.2
MOST_PLANNING_S = 2.0
MOST_GROWTH = 1.05
"""The most memory in the second half of the micro-batches, as a multiple of the most in the first."""

_JOB = Path(__file__).with_name("spark_scale_job.py")
_WORKERS = (1, 2)
_TIMEOUT_S = 3600

Found: TypeAlias = dict[str, list[float]]


@attrs.define
class Scale:
    """Measures on a broker at `servers`."""

    servers: str
    records: int
    partitions: int
    runs: int
    micro_batches: int
    tell: Callable[[str], None]
    load_before: float = attrs.Factory(lambda: os.getloadavg()[0])
    failed: list[str] = attrs.Factory(list)
    reads: dict[int, Found] = attrs.Factory(dict)
    """The runs that read all, by the number of workers."""
    small: Found = attrs.Factory(dict)
    planning: Found = attrs.Factory(dict)
    stream: Found = attrs.Factory(dict)

    @property
    def all_records(self) -> int:
        """The records of all partitions, as many in each."""
        return self.records // self.partitions * self.partitions

    def measure(self) -> None:
        """Fill the topics, and do one job after the other."""
        large, small = (
            self._filled(count // self.partitions) for count in (self.records, self._small_records)
        )
        for workers in _WORKERS:
            self.reads[workers] = self._job("read", large, workers, records=self.all_records)
        self.small = self._job("read", small, 1, records=self._small_records)
        self.planning = self._job("plan", large, 2)
        self.stream = self._job("stream", large, 2)

    @property
    def _small_records(self) -> int:
        return SMALL * self.partitions

    def _filled(self, each: int) -> str:
        self.tell(f"filling {self.partitions:,} partitions with {each:,} records each")
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            topic = create_topic(admin, self.partitions)
        logging.disable(logging.WARNING)  # a new topic has leaders a moment later
        try:
            with KafkaProducer(bootstrap_servers=self.servers, linger_ms=5, batch_size=65536) as producer:
                keys, values = [b"%08d" % number for number in range(each)], [b"x" * SIZE] * each
                sent = [
                    producer.send_many(topic, values, keys=keys, partition=partition)
                    for partition in range(self.partitions)
                ]
                producer.flush()
                for future in sent:
                    future.result()
        finally:
            logging.disable(logging.NOTSET)
        return topic

    def _job(self, operation: str, topic: str, workers: int, records: int = 0) -> Found:
        """Do it in a cluster of its own; nothing if it fails, which is told."""
        job: dict[str, object] = {
            "operation": operation,
            "servers": self.servers,
            "topic": topic,
            "partitions": self.partitions,
            "records": records,
            "size": SIZE,
            "runs": self.runs,
            "warm_ups": 1,
            "micro_batches": self.micro_batches,
            "touched": max(self.partitions // 10, 1),
            "cluster_pid": os.getpid(),
        }
        title = f"{operation} with {workers} {'worker' if workers == 1 else 'workers'}"
        with tempfile.TemporaryDirectory() as folder, spark_cluster(Path(folder), workers) as master:
            try:
                found: Found = run_job(_JOB, {**job, "master": master}, _TIMEOUT_S)
            except RuntimeError as error:
                self.failed.append(f"{title}: {error}")
                self.tell(f"FAILED: {title}")
                return {}
        cpu_s = found.get("cpu_seconds")
        self.tell(f"{title} is done" + (f", {statistics.median(cpu_s):.1f} s of CPU" if cpu_s else ""))
        return found

    def cpu_us(self, workers: int) -> float | None:
        """CPU of one record; None if it was not measured."""
        found = self.reads.get(workers)
        return statistics.median(found["cpu_seconds"]) / self.all_records * 1e6 if found else None

    def about(self) -> dict[str, object]:
        """Everything that was measured."""
        return {
            "pyspark": output.version("pyspark"),
            "load_before": self.load_before,
            "records": self.all_records,
            "partitions": self.partitions,
            "reads": self.reads,
            "small": self.small,
            "planning": self.planning,
            "stream": self.stream,
            "failed": self.failed,
        }


@attrs.frozen
class Halves:
    """The most memory in either half of the micro-batches, in bytes."""

    first: float
    second: float

    @classmethod
    def of(cls, sizes: Sequence[float]) -> Halves:
        """Those of memory that was looked at after each micro-batch."""
        middle = len(sizes) // 2
        return cls(max(sizes[:middle]), max(sizes[middle:]))

    @property
    def growth(self) -> float:
        """The second as a multiple of the first."""
        return self.second / self.first


def reads(scale: Scale) -> Sheet:
    """A row for each number of workers, and one for tasks that have nothing to do."""
    rows = []
    for workers, found in sorted(scale.reads.items()):
        if found:
            rows.append(
                [f"{scale.all_records:,} records", f"{workers} x 1", *_speed(found, scale.all_records)]
            )
    if scale.small:
        count = SMALL * scale.partitions
        rows.append([f"{count:,} records", "1 x 1", *_speed(scale.small, count)])
        cpu_ms = statistics.median(scale.small["cpu_seconds"]) / scale.partitions * 1000
        rows.append(["a task of those", "1 x 1", "", f"{cpu_ms:.1f} ms", ""])
    title = f"a topic of {scale.partitions:,} partitions, read by workers of one core"
    return Sheet(title, ("read", "workers", "seconds", "CPU s", "CPU us/record"), rows, left=2)


def _speed(found: Found, records: int) -> tuple[str, str, str]:
    seconds, cpu_s = (statistics.median(found[name]) for name in ("seconds", "cpu_seconds"))
    return f"{seconds:.1f}", f"{cpu_s:.1f}", f"{cpu_s / records * 1e6:.2f}"


def driver(scale: Scale) -> Sheet:
    """Planning, first and later, and the driver's memory."""
    rows = [
        [what, f"{found[0]:.2f} s", f"{statistics.median(found[1:]):.2f} s"]
        for what, found in _planning(scale)
    ]
    for what, name in (("source's process", "source"), ("all Python", "python"), ("JVM", "jvm")):
        if scale.stream:
            halves = Halves.of(scale.stream[name])
            rows.append([f"memory, {what}", f"{halves.first / 1e6:.0f} MB", f"{halves.second / 1e6:.0f} MB"])
    return Sheet(
        "the driver: first and later, or first and second half", ("", "first", "later"), rows, left=1
    )


def _planning(scale: Scale) -> Iterator[tuple[str, list[float]]]:
    """The times of each kind of planning, in their order."""
    for what, found in (
        ("batch, the source alone", scale.planning.get("batch")),
        ("batch, all of Spark's planning", scale.planning.get("query")),
        ("micro-batch, the source alone", scale.planning.get("stream")),
        ("micro-batch, all of Spark's planning", scale.stream.get("planning")),
    ):
        if found:
            yield what, found


def targets(scale: Scale) -> Sheet:
    """A row for each target, met or not."""
    rows = []
    one, two = scale.cpu_us(1), scale.cpu_us(2)
    if one is not None and two is not None:
        ratio = two / one
        rows.append(
            [
                "CPU of a record, two workers",
                f"<= {MOST_CPU}x",
                f"{ratio:.2f}x",
                output.verdict(ratio <= MOST_CPU),
            ]
        )
    for what, found in _planning(scale):
        slowest = max(found)
        rows.append(
            [
                f"planning: {what}",
                f"< {MOST_PLANNING_S:g} s",
                f"{slowest:.2f} s",
                output.verdict(slowest < MOST_PLANNING_S),
            ]
        )
    for what, name in (("driver's source", "source"), ("driver's Python", "python"), ("driver's JVM", "jvm")):
        if scale.stream:
            growth = Halves.of(scale.stream[name]).growth
            rows.append(
                [
                    f"memory: {what}",
                    f"<= {MOST_GROWTH}x",
                    f"{growth:.2f}x",
                    output.verdict(growth <= MOST_GROWTH),
                ]
            )
    return Sheet("what it is held to", ("target", "wanted", "reached", ""), rows, left=1)


def show(scale: Scale) -> None:
    """Print the tables and say where the JSON is."""
    sheets = [reads(scale), driver(scale), targets(scale)]
    output.show(sheets, 100)
    print(f"load before: {scale.load_before:.1f} on {os.cpu_count()} processors")
    print(f"written to {output.write(sheets, scale.about(), '-spark-scale')}")


def main() -> int:
    """Measure and report; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark_scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--records", type=positive, default=20_000_000, help="of all (default 20000000)")
    parser.add_argument("--partitions", type=positive, default=1000, help="default 1000")
    parser.add_argument("--runs", type=positive, default=2, help="after one that warms up (default 2)")
    parser.add_argument("--micro-batches", type=positive, default=40, help="default 40")
    options = parser.parse_args()
    reason = missing(connector=False)
    if reason is not None:
        print(f"no benchmark: {reason}", file=sys.stderr)
        return 1
    return run(
        lambda servers, tell: Scale(
            servers, options.records, options.partitions, options.runs, options.micro_batches, tell
        ),
        Scale.measure,
        show,
        broker=new_broker("2g"),
    )


if __name__ == "__main__":
    sys.exit(main())
