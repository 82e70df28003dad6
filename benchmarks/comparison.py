"""Runs every client on every case, interleaved, and keeps the medians."""

from __future__ import annotations

import statistics
import uuid
from collections.abc import Callable, Sequence

import attrs

from benchmarks.case import Case, Job, Measured
from benchmarks.child import measure
from kclient.admin import KafkaAdminClient, NewTopic

CLIENTS = ("kclient", "kafka_python", "aiokafka", "confluent")
OPERATIONS = ("produce", "consume")


@attrs.frozen
class Line:
    """The median of the runs of one client on one case, as (lowest, median, highest) records/s."""

    case: Case
    operation: str
    client: str
    records: int
    lowest: float
    records_per_s: float
    highest: float
    cpu_us_per_record: float

    @classmethod
    def of(cls, case: Case, operation: str, client: str, records: int, runs: Sequence[Measured]) -> Line:
        """The summary of `runs`."""
        rates = [run.records_per_s for run in runs]
        cpu = statistics.median(run.cpu_us_per_record for run in runs)
        return cls(case, operation, client, records, min(rates), statistics.median(rates), max(rates), cpu)


@attrs.define
class Comparison:
    """Measures on a broker at `servers`. `tell` is called with a line about each run as it ends."""

    servers: str
    clients: Sequence[str]
    operations: Sequence[str]
    records: int
    runs: int
    tell: Callable[[str], None]

    def of(self, case: Case) -> list[Line]:
        """All clients on one case.

        The clients take turns, so that what else the machine does, and the broker's own warming up, meet all of them.
        What is read is one topic for all, filled once; filling it also warms the broker up.
        """
        measured: dict[tuple[str, str], list[Measured]] = {}
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            source = self._create(admin, case)
            measure("kclient", Job("produce", self.servers, source, self.records, case))
            for run in range(self.runs):
                for client in self.clients:
                    target = self._create(admin, case)
                    for operation in self.operations:
                        topic = target if operation == "produce" else source
                        result = measure(client, Job(operation, self.servers, topic, self.records, case))
                        measured.setdefault((operation, client), []).append(result)
                        self.tell(
                            f"{case.name}, run {run + 1}: {client} {operation} {result.records_per_s:,.0f}/s"
                        )
                    admin.delete_topics([target])
            admin.delete_topics([source])
        return [
            Line.of(case, operation, client, self.records, measured[operation, client])
            for operation in self.operations
            for client in self.clients
        ]

    def _create(self, admin: KafkaAdminClient, case: Case) -> str:
        name = f"bench-{uuid.uuid4().hex[:12]}"
        admin.create_topics([NewTopic(name, case.partitions, 1)])
        return name
