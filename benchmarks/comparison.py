"""Runs every client on every case, in turns, and keeps what each run gave."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable, Iterator, Sequence

import attrs

from benchmarks.case import POLL_RECORDS, Case, Job, Measured, UnavailableError
from benchmarks.child import measure
from benchmarks.clients import CLIENTS, COLUMNAR, LATENCY, READING
from benchmarks.memory import make_present
from benchmarks.plan import Stage, records_for
from benchmarks.topics import create_topic
from kclient.admin import KafkaAdminClient

_SPARE_RECORDS = (
    20_000  # what is read ends before the topic does, so that nobody waits for a fetch that is not full
)


@attrs.frozen
class Line:
    """The runs of one client on one case, in their order."""

    case: Case
    operation: str
    client: str
    runs: tuple[Measured, ...]

    @property
    def rates(self) -> list[float]:
        """Records/s, lowest first."""
        return sorted(run.records_per_s for run in self.runs)

    @property
    def records_per_s(self) -> float:
        """The median."""
        return statistics.median(self.rates)

    @property
    def cpu_us_per_record(self) -> float:
        """The median."""
        return statistics.median(run.cpu_us_per_record for run in self.runs)

    @property
    def rss_bytes(self) -> int:
        """The most that any run took."""
        return max(run.rss_bytes for run in self.runs)

    @property
    def p50_ms(self) -> float | None:
        """The median of the runs' medians."""
        return _median([run.p50_ms for run in self.runs])

    @property
    def p99_ms(self) -> float | None:
        """The median of the runs' 99th percentiles."""
        return _median([run.p99_ms for run in self.runs])


@attrs.define
class Comparison:
    """Measures on a broker at `servers`.

    `tell` is called with a line about each run as it ends. `absent` and `failed` collect what could not be measured,
    with the reason; the others go on.
    """

    servers: str
    clients: Sequence[str]
    runs: int
    tell: Callable[[str], None]
    records: int | None = None
    part: float = 1.0
    poll_records: int = POLL_RECORDS
    absent: dict[tuple[str, str], str] = attrs.Factory(dict)
    failed: list[str] = attrs.Factory(list)

    def warm_up(self) -> None:
        """Let the broker compile what it runs often, before the first that is measured."""
        self.tell("warming the broker up")
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            admin.delete_topics([self._filled(admin, Case())])

    def of(self, stage: Stage) -> Iterator[Line]:
        """All clients on one stage.

        The clients take turns, and a different one begins each time, so that what else the machine does, the broker's
        own warming up and what the one before left behind meet all of them. What is read is one topic for all.
        """
        reads = stage.operations[0] in READING
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            source = self._filled(admin, stage.case) if reads else ""
            try:
                yield from self._measured(admin, stage, source)
            finally:
                if source:
                    admin.delete_topics([source])

    def _measured(self, admin: KafkaAdminClient, stage: Stage, source: str) -> Iterator[Line]:
        runs: dict[tuple[str, str], list[Measured]] = {}
        for number in range(self.runs):
            for operation in stage.operations:
                able = [name for name in self.clients if operation in CLIENTS[name].operations]
                turn = number % len(able) if able else 0
                for name in able[turn:] + able[:turn]:
                    measured = self._run(admin, stage.case, operation, name, source)
                    if measured is not None:
                        runs.setdefault((operation, name), []).append(measured)
                        self.tell(
                            f"{stage.case.name}, run {number + 1}: {name} {operation} {_brief(measured)}"
                        )
        for operation in stage.operations:
            for name in self.clients:
                if (operation, name) in runs:
                    yield Line(stage.case, operation, name, tuple(runs[operation, name]))

    def _run(
        self, admin: KafkaAdminClient, case: Case, operation: str, name: str, source: str
    ) -> Measured | None:
        if (operation, name) in self.absent:
            return None
        client = CLIENTS[name]
        # Columns come so fast that a run takes all there is in the topic.
        times = 1 + self._warm_up if operation in COLUMNAR else client.share
        records = records_for(operation, case, self.records, self.part * times)
        topic = source or create_topic(admin, case.partitions)
        try:
            warm_up = int(records * client.warm_up)
            if operation not in LATENCY:
                make_present()
            job = Job(operation, self.servers, topic, records, case, self.poll_records, warm_up)
            return measure(client, job)
        except UnavailableError as error:
            self.absent[operation, name] = str(error)
            self.tell(f"{name} {operation} is left out: {error}")
        except (RuntimeError, ValueError) as error:
            self.failed.append(f"{name} {operation}, {case.name}: {error}")
            self.tell(f"FAILED: {self.failed[-1]}")
        finally:
            if not source:
                admin.delete_topics([topic])
        return None

    def _filled(self, admin: KafkaAdminClient, case: Case) -> str:
        """A new topic with all that the most thorough reader takes.

        Filled by confluent-kafka where it is installed, with batches of the same size whatever kclient makes of them.
        """
        source = create_topic(admin, case.partitions)
        records = records_for("consume", case, self.records, self.part * (1 + self._warm_up)) + _SPARE_RECORDS
        writer = "confluent" if importlib.util.find_spec("confluent_kafka") else "kclient_pure"
        self.tell(f"{case.name}: filling a topic with {records:,} records")
        measure(CLIENTS[writer], Job("produce", self.servers, source, records, case))
        return source

    @property
    def _warm_up(self) -> float:
        """The longest warm-up of a client: records read before those that count, for each that counts."""
        return max((CLIENTS[name].warm_up for name in self.clients), default=0.0)


def _median(figures: Sequence[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return statistics.median(known) if known else None


def _brief(measured: Measured) -> str:
    if measured.p50_ms is None:
        return f"{measured.records_per_s:,.0f}/s, {measured.cpu_us_per_record:.2f} us CPU"
    return f"p50 {measured.p50_ms:.2f} ms, p99 {measured.p99_ms:.2f} ms"
