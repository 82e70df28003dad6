"""The CPU of a consumer with many partitions of which few have anything new: kclient beside confluent-kafka.

Both read a topic that a process writes 200 records a second to, one partition after the other, on a real Apache Kafka,
in turns, in about four minutes. A figure is the CPU time of the client's process, as a part of a core and of one
record; the median of the runs counts, the lowest and the highest are its noise.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator

import attrs

from benchmarks import output
from benchmarks.broker import real_kafka
from benchmarks.case import Case, Job, Measured
from benchmarks.child import measure
from benchmarks.clients import Client
from benchmarks.command import new_broker, positive, run
from benchmarks.output import Sheet
from benchmarks.topics import create_topic
from benchmarks.trickle import VALUE, trickle
from kclient.admin import KafkaAdminClient

_OPERATIONS = ("subscribe", "assign")
_PEERS = {
    "kclient": Client("kclient_partitions", _OPERATIONS, {"KCLIENT_IMPL": "c"}),
    "confluent": Client("confluent_partitions", _OPERATIONS),
}
_LIMIT = 1.0
_KEPT_UP = 0.9  # of the rate, or the run says nothing
_NAMES = ("operation", "client", "CPU %", "lowest - highest", "CPU us/record", "x")


@attrs.define
class PartitionsComparison:
    """Measures on a broker at `servers`."""

    servers: str
    partitions: int
    records_per_s: int
    seconds: int
    runs: int
    tell: Callable[[str], None]
    failed: list[str] = attrs.Factory(list)
    measured: dict[tuple[str, str], list[Measured]] = attrs.Factory(dict)
    """The runs by operation and client."""

    def measure(self) -> None:
        """Let the clients take turns."""
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            topic = create_topic(admin, self.partitions)
        case = Case(len(VALUE), partitions=self.partitions)
        with trickle(self.servers, topic, self.partitions, self.records_per_s):
            for number in range(self.runs):
                for operation in _OPERATIONS:
                    turns = list(_PEERS)
                    for name in turns[number % 2 :] + turns[: number % 2]:
                        job = Job(
                            *(operation, self.servers, topic, self.records_per_s * self.seconds, case),
                            # Once around: some of the cost of a partition is that of its first record.
                            warm_up=self.partitions + self.records_per_s,
                        )
                        self._run(name, job)

    def _run(self, name: str, job: Job) -> None:
        title = f"{name} {job.operation}"
        try:
            measured = measure(_PEERS[name], job)
        except (RuntimeError, ValueError) as error:
            self.failed.append(f"{title}: {error}")
            return
        self.tell(f"{title} {_part(measured):.1f} % of a core at {measured.records_per_s:.0f} records/s")
        if measured.records_per_s < _KEPT_UP * self.records_per_s:
            self.failed.append(f"{title}: it was given {measured.records_per_s:.0f} records/s; not counted")
            return
        self.measured.setdefault((job.operation, name), []).append(measured)

    def ratio(self, operation: str) -> float | None:
        """Return kclient's CPU as a multiple of confluent-kafka's; None without both."""
        ours, theirs = (self.measured.get((operation, name)) for name in _PEERS)
        if not ours or not theirs:
            return None
        return statistics.median(map(_part, ours)) / statistics.median(map(_part, theirs))


def _part(measured: Measured) -> float:
    return 100 * measured.cpu_seconds / measured.seconds


def _rows(comparison: PartitionsComparison) -> Iterator[list[str]]:
    for (operation, name), runs in sorted(comparison.measured.items(), reverse=True):
        parts = sorted(map(_part, runs))
        ratio = comparison.ratio(operation)
        yield [
            operation,
            name,
            f"{statistics.median(parts):.1f}",
            f"{parts[0]:.1f} - {parts[-1]:.1f}",
            f"{statistics.median(each.cpu_us_per_record for each in runs):,.0f}",
            f"{ratio:.2f}" if ratio is not None and name == "kclient" else "",
        ]


def _targets(comparison: PartitionsComparison) -> Iterator[list[str]]:
    for operation in _OPERATIONS:
        ratio = comparison.ratio(operation)
        if ratio is not None:
            yield [operation, "CPU", f"<= {_LIMIT:g}x", f"{ratio:.2f}x", output.verdict(ratio <= _LIMIT)]


def _show(comparison: PartitionsComparison) -> None:
    title = f"{comparison.partitions:,} partitions, {comparison.records_per_s} records/s"
    sheets = [
        Sheet(title, _NAMES, list(_rows(comparison)), left=2),
        Sheet(
            "what it is held to",
            ("operation", "figure", "wanted", "reached", ""),
            list(_targets(comparison)),
            left=2,
        ),
    ]
    output.show(sheets, 100)
    runs = {" ".join(key): [attrs.asdict(each) for each in runs] for key, runs in comparison.measured.items()}
    about = {"partitions": comparison.partitions, "measured": runs, "failed": comparison.failed}
    print(f"written to {output.write(sheets, about, '-partitions')}")


def main() -> int:
    """Measure and report; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.partitions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--partitions", type=positive, default=1000, help="default 1000")
    parser.add_argument("--rate", type=positive, default=200, help="records a second of all (default 200)")
    parser.add_argument("--seconds", type=positive, default=15, help="of each run (default 15)")
    parser.add_argument("--runs", type=positive, default=3, help="of which the median counts (default 3)")
    options = parser.parse_args()
    reason = real_kafka().missing()
    if reason is not None:
        print(f"no benchmark: {reason}", file=sys.stderr)
        return 1
    return run(
        lambda servers, tell: PartitionsComparison(
            servers, options.partitions, options.rate, options.seconds, options.runs, tell
        ),
        PartitionsComparison.measure,
        _show,
        broker=new_broker("1g"),
    )


if __name__ == "__main__":
    sys.exit(main())
