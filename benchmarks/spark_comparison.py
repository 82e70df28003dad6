"""Runs both formats on every operation, in turns, and keeps what each run gave."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from benchmarks.broker import real_kafka
from benchmarks.spark_process import run_job
from benchmarks.topics import create_topic
from kclient.admin import KafkaAdminClient, OffsetSpec
from kclient.common.topic_partition import TopicPartition

FORMATS = ("kclient", "kafka")
SIZE = 100
PARTS = ("noop", "drain", "kclient")
"""Sinks that do ever more of a write: making the rows, taking them to Python, and sending them."""

RANGES = (4, 1)
"""Divisors of the records on which memory is measured: a fourth of them, and all."""

FEW = 2
"""Records of a write that is nothing but its fixed cost."""

MICRO_BATCH = 1000
"""Records that a query gets at once, again and again."""

_JOB = Path(__file__).with_name("spark_job.py")
_POM = Path(__file__).resolve().parent.parent / "tests" / "spark" / "connector" / "pom.xml"
_TASKS = 2
_MICRO_BATCHES = 20
_MICRO_BATCH_WARM_UPS = 10
_TIMEOUT_S = 1800


@attrs.define
class Line:
    """The runs of one format on one operation, in their order. `records` are those of one run."""

    operation: str
    name: str
    records: int
    seconds: list[float] = attrs.Factory(list)
    cpu_seconds: list[float] = attrs.Factory(list)
    worker_rss_bytes: int = 0

    @property
    def rates(self) -> list[float]:
        """Records/s, lowest first."""
        return sorted(self.records / each for each in self.seconds)

    @property
    def records_per_s(self) -> float:
        """The median."""
        return statistics.median(self.rates)

    @property
    def cpu_us_per_record(self) -> float:
        """The median: Spark's JVM and its Python processes, without the broker."""
        return statistics.median(self.cpu_seconds) / self.records * 1e6


def connector_jars() -> list[str]:
    """Spark's own connector, fetched by Maven, so that Spark needs no network."""
    jars: str = real_kafka().classpath(_POM)
    return jars.split(os.pathsep)


@attrs.define
class SparkComparison:
    """Measures on a broker at `servers`: `sessions` sessions of `runs` runs of each kind, with `records` records.

    `tell` is called with a line about each session as it ends. `lines` and `failed` collect what came of it.
    `load_before` is how many processes wanted a processor before.
    """

    servers: str
    jars: Sequence[str]
    records: int
    sessions: int
    runs: int
    tell: Callable[[str], None]
    load_before: float = attrs.Factory(lambda: os.getloadavg()[0])
    lines: list[Line] = attrs.Factory(list)
    failed: list[str] = attrs.Factory(list)

    def measure(self, operations: Sequence[str]) -> None:
        """Every operation with both formats, which take turns; another one begins each time."""
        source = self._create()
        # By the Java producer that is in the connector, and not by what is measured here.
        self.tell(f"filling a topic with {self.records:,} records")
        try:
            self._session("fill", "kafka", source, self.records, runs=1, warm_ups=0)
        except RuntimeError as error:
            self._fail(f"filling a topic: {error}")
            return
        for number in range(self.sessions):
            for operation in operations:
                names = {"memory": (), "write_parts": PARTS}.get(operation, FORMATS)
                for name in names[:: 1 if number % 2 == 0 else -1]:
                    self._compare(operation, name, source, number)
                if operation == "write_parts":
                    self._compare(operation, "kclient", source, number, FEW)
        if "memory" in operations:
            for part in RANGES:
                self._memory(source, self.records // part)

    def _compare(
        self, operation: str, name: str, source: str, number: int, records: int | None = None
    ) -> None:
        topic = source if operation in ("batch_read", "stream") else self._create()
        try:
            if operation == "micro_batch":
                found = self._session(
                    operation, name, topic, MICRO_BATCH, runs=_MICRO_BATCHES, warm_ups=_MICRO_BATCH_WARM_UPS
                )
            else:
                found = self._session(operation, name, topic, records or self.records)
            if operation == "batch_write":
                self._check_written(topic)
        except (RuntimeError, ValueError) as error:
            self._fail(f"{operation} {name}: {error}")
            return
        finally:
            if topic != source:
                self._delete(topic)
        line = self._line(operation, name, found.records)
        line.seconds += found.seconds
        line.cpu_seconds += found.cpu_seconds
        line.worker_rss_bytes = max(line.worker_rss_bytes, found.worker_rss_bytes)
        self.tell(
            f"session {number + 1}: {operation} {name} {found.records_per_s:,.0f}/s, "
            f"{found.cpu_us_per_record:.2f} us CPU"
        )

    def _memory(self, source: str, records: int) -> None:
        """One task reads `records` records in a session whose workers have read nothing else."""
        try:
            found = self._session("memory", "kclient", source, records, runs=1, warm_ups=0, tasks=1)
        except (RuntimeError, ValueError) as error:
            self._fail(f"memory: {error}")
            return
        self.lines.append(found)
        self.tell(f"a worker that read {records:,} records has had {found.worker_rss_bytes / 1e6:.0f} MB")

    def _session(
        self,
        operation: str,
        name: str,
        topic: str,
        records: int,
        *,
        runs: int | None = None,
        warm_ups: int = 1,
        tasks: int = _TASKS,
    ) -> Line:
        """Raises RuntimeError with the output if it fails."""
        job = {
            "operation": operation,
            "format": name,
            "servers": self.servers,
            "topic": topic,
            "records": records,
            "size": SIZE,
            "runs": runs or self.runs,
            "warm_ups": warm_ups,
            "min_partitions": tasks,
            "jars": list(self.jars),
        }
        return Line(operation, name, records, **run_job(_JOB, job, _TIMEOUT_S))

    def _line(self, operation: str, name: str, records: int) -> Line:
        for line in self.lines:
            if (line.operation, line.name, line.records) == (operation, name, records):
                return line
        self.lines.append(Line(operation, name, records))
        return self.lines[-1]

    def _check_written(self, topic: str) -> None:
        """Raises ValueError unless each run, and the one that warmed up, wrote every record once."""
        tp = TopicPartition(topic, 0)
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            end = admin.list_offsets({tp: OffsetSpec.LATEST})[tp].offset
        wanted = self.records * (1 + self.runs)
        if end != wanted:
            raise ValueError(f"{end} records were written instead of {wanted}")

    def _create(self) -> str:
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            return create_topic(admin)

    def _delete(self, topic: str) -> None:
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            admin.delete_topics([topic])

    def _fail(self, text: str) -> None:
        self.failed.append(text)
        self.tell(f"FAILED: {text}")
