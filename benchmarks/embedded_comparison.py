"""The embedded broker beside Apache Kafka, with the same foreign client, in turns."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping

import attrs
import psutil  # type: ignore[import-untyped]

from benchmarks import output
from benchmarks.case import Case, Job, Measured
from benchmarks.child import measure
from benchmarks.clients import CLIENTS
from benchmarks.memory import make_present
from benchmarks.topics import create_topic
from kclient.admin import KafkaAdminClient

OURS = "embedded"
KAFKA = "kafka"
_OPERATIONS = ("produce", "consume")
_RATES = {"produce": 1.2, "consume": 1.0}  # of Kafka's
_CPU = 0.5  # of Kafka's
_SPARE_RECORDS = 20_000
_CLIENT = CLIENTS["confluent"]

NAMES = ("operation", "broker", "1000/s", "lowest - highest", "broker's CPU us", "client's CPU us")
TARGET_NAMES = ("operation", "figure", "wanted", "reached", "")


@attrs.frozen
class Server:
    """A broker that runs as a process of its own."""

    bootstrap_servers: str
    pid: int

    def cpu_seconds(self) -> float:
        """The processor time of all its threads so far."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)


@attrs.frozen
class Served:
    """One run of the client, and the CPU that the broker spent meanwhile."""

    client: Measured
    broker_cpu_seconds: float

    @property
    def broker_us_per_record(self) -> float:
        """CPU of the broker's process for one record."""
        return self.broker_cpu_seconds / self.client.records * 1e6


@attrs.define
class ServerComparison:
    """Lets confluent-kafka write to each of `servers`, and read from it, in turns.

    Records of 100 bytes in batches of 16 KiB, one partition. The broker's CPU is that of its process while the client's
    runs, with what it does when idle.
    """

    servers: Mapping[str, Server]
    records: int
    runs: int
    tell: Callable[[str], None]
    failed: list[str] = attrs.Factory(list)
    measured: dict[tuple[str, str], list[Served]] = attrs.Factory(dict)
    """The runs by operation and broker."""

    def measure(self) -> None:
        """Measure everything, after a run that does not count: a JVM compiles what runs often."""
        sources = {name: self._filled(server) for name, server in self.servers.items()}
        names = list(self.servers)
        for number in range(-1, self.runs):
            for operation in _OPERATIONS:
                for name in names if number % 2 else names[::-1]:
                    self._run(operation, name, sources[name], counts=number >= 0)

    def _run(self, operation: str, name: str, source: str, *, counts: bool) -> None:
        server = self.servers[name]
        topic = source if operation == "consume" else self._create(server)
        make_present()
        before_s = server.cpu_seconds()
        try:
            job = Job(operation, server.bootstrap_servers, topic, self.records, Case())
            served = Served(measure(_CLIENT, job), server.cpu_seconds() - before_s)
        except (RuntimeError, ValueError) as error:
            self.failed.append(f"{name} {operation}: {error}")
            return
        finally:
            if topic != source:
                with KafkaAdminClient(bootstrap_servers=server.bootstrap_servers) as admin:
                    admin.delete_topics([topic])
        if counts:
            self.measured.setdefault((operation, name), []).append(served)
        self.tell(
            f"{name} {operation} {served.client.records_per_s:,.0f}/s, {served.broker_us_per_record:.2f} us of the "
            f"broker's CPU{'' if counts else ' (warming up)'}"
        )

    def _filled(self, server: Server) -> str:
        topic = self._create(server)
        measure(
            _CLIENT, Job("produce", server.bootstrap_servers, topic, self.records + _SPARE_RECORDS, Case())
        )
        return topic

    @staticmethod
    def _create(server: Server) -> str:
        with KafkaAdminClient(bootstrap_servers=server.bootstrap_servers) as admin:
            return create_topic(admin)

    def rows(self) -> Iterator[list[str]]:
        """A row for each operation and broker."""
        for (operation, name), runs in sorted(self.measured.items(), reverse=True):
            rates = sorted(run.client.records_per_s / 1000 for run in runs)
            yield [
                operation,
                name,
                f"{statistics.median(rates):,.0f}",
                f"{rates[0]:,.0f} - {rates[-1]:,.0f}",
                f"{self._broker_us(operation, name):.2f}",
                f"{statistics.median(run.client.cpu_us_per_record for run in runs):.2f}",
            ]

    def targets(self) -> Iterator[list[str]]:
        """A row for each figure that the broker is held to."""
        for operation, rate in _RATES.items():
            if not all((operation, name) in self.measured for name in (OURS, KAFKA)):
                continue
            reached = self._rate(operation, OURS) / self._rate(operation, KAFKA)
            yield [operation, "records/s", f">= {rate}x", f"{reached:.2f}x", output.verdict(reached >= rate)]
            cpu = self._broker_us(operation, OURS) / self._broker_us(operation, KAFKA)
            yield [
                operation,
                "broker's CPU/record",
                f"<= {_CPU}x",
                f"{cpu:.2f}x",
                output.verdict(cpu <= _CPU),
            ]

    def _rate(self, operation: str, name: str) -> float:
        return statistics.median(run.client.records_per_s for run in self.measured[operation, name])

    def _broker_us(self, operation: str, name: str) -> float:
        return statistics.median(run.broker_us_per_record for run in self.measured[operation, name])
