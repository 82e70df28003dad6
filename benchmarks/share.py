"""A share consumer that reads what is there: kclient beside Java's.

Both read the same topic on a real Apache Kafka as the only member of a new share group, in turns, once accepting with
the next poll and once acknowledging each record. The clock runs from a poll after the warm-up to the end of the last
commit. The median of the runs counts, the lowest and the highest are its noise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from benchmarks import output
from benchmarks.broker import java_programs, long_lived, real_kafka
from benchmarks.case import Case, Job, Measured
from benchmarks.child import measure
from benchmarks.clients import Client
from benchmarks.command import positive, run
from benchmarks.output import Sheet
from benchmarks.share_groups import new_share_group
from benchmarks.topics import create_topic
from kclient.admin import KafkaAdminClient
from kclient.producer import KafkaProducer

_OPERATIONS = ("explicit", "implicit")
_KCLIENT = Client("kclient_share", _OPERATIONS, {"KCLIENT_IMPL": "c"})
_PARTITIONS = 6
_SLACK = 20_000
"""Records beyond those that are waited for: polls return whole batches."""
_LIMIT = 1.0
_TIMEOUT_S = 600.0
_NAMES = ("acknowledging", "client", "records/s", "lowest - highest", "CPU us/record", "x")


@attrs.define
class ShareComparison:
    """Measures on a broker at `servers`."""

    servers: str
    records: int
    runs: int
    tell: Callable[[str], None]
    failed: list[str] = attrs.Factory(list)
    measured: dict[tuple[str, str], list[Measured]] = attrs.Factory(dict)
    """The runs by operation and client."""

    def measure(self) -> None:
        """Let the clients take turns."""
        case = Case(partitions=_PARTITIONS)
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            topic = create_topic(admin, _PARTITIONS)
        warm_up = self.records // 2
        self._fill(topic, case, warm_up + self.records + _SLACK)
        with tempfile.TemporaryDirectory() as directory:
            classes = java_programs().compiled("ShareReader", Path(directory))
            clients: dict[str, Callable[[Job], Measured]] = {
                "kclient": lambda job: measure(_KCLIENT, job),
                "java": lambda job: _java(classes, job),
            }
            for number in range(self.runs):
                for operation in _OPERATIONS:
                    names = list(clients)
                    for name in names[number % 2 :] + names[: number % 2]:
                        job = Job(operation, self.servers, topic, self.records, case, warm_up=warm_up)
                        self._run(name, clients[name], job)

    def _fill(self, topic: str, case: Case, records: int) -> None:
        values = case.values()
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for number in range(records):
                producer.send(topic, values[number % len(values)], partition=number % _PARTITIONS)

    def _run(self, name: str, client: Callable[[Job], Measured], job: Job) -> None:
        title = f"{name} {job.operation}"
        try:
            measured = client(job)
        except (RuntimeError, ValueError) as error:
            self.failed.append(f"{title}: {error}")
            return
        self.tell(
            f"{title} {measured.records_per_s:,.0f} records/s, {measured.cpu_us_per_record:.1f} us of CPU each"
        )
        self.measured.setdefault((job.operation, name), []).append(measured)

    def ratio(self, operation: str) -> float | None:
        """Return kclient's rate as a multiple of Java's; None without both."""
        ours, theirs = (self.measured.get((operation, name)) for name in ("kclient", "java"))
        if not ours or not theirs:
            return None
        return _median_rate(ours) / _median_rate(theirs)


def _java(classes: Path, job: Job) -> Measured:
    """Run ShareReader in a JVM of its own, which the warm-up warms as well."""
    jars = real_kafka().classpath()
    done = subprocess.run(
        [
            *("java", *long_lived(), "-cp", f"{classes}:{jars}", "ShareReader"),
            *(job.bootstrap_servers, job.topic, new_share_group(job.bootstrap_servers), job.operation),
            *(str(job.warm_up), str(job.records)),
        ],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"Java could not read: {done.stderr[-2000:]}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def _median_rate(runs: list[Measured]) -> float:
    return statistics.median(each.records_per_s for each in runs)


def _rows(comparison: ShareComparison) -> Iterator[list[str]]:
    for (operation, name), runs in sorted(comparison.measured.items()):
        rates = sorted(each.records_per_s for each in runs)
        ratio = comparison.ratio(operation)
        yield [
            operation,
            name,
            f"{statistics.median(rates):,.0f}",
            f"{rates[0]:,.0f} - {rates[-1]:,.0f}",
            f"{statistics.median(each.cpu_us_per_record for each in runs):.1f}",
            f"{ratio:.2f}" if ratio is not None and name == "kclient" else "",
        ]


def _targets(comparison: ShareComparison) -> Iterator[list[str]]:
    ratio = comparison.ratio("explicit")
    if ratio is not None:
        yield ["explicit", "records/s", f">= {_LIMIT:g}x", f"{ratio:.2f}x", output.verdict(ratio >= _LIMIT)]


def _show(comparison: ShareComparison) -> None:
    title = f"{comparison.records:,} records of 100 B, {_PARTITIONS} partitions"
    sheets = [
        Sheet(title, _NAMES, list(_rows(comparison)), left=2),
        Sheet(
            "what it is held to",
            ("acknowledging", "figure", "wanted", "reached", ""),
            list(_targets(comparison)),
            left=2,
        ),
    ]
    output.show(sheets, 100)
    runs = {" ".join(key): [attrs.asdict(each) for each in runs] for key, runs in comparison.measured.items()}
    about = {"records": comparison.records, "measured": runs, "failed": comparison.failed}
    print(f"written to {output.write(sheets, about, '-share')}")


def main() -> int:
    """Measure and report; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.share",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--records", type=positive, default=200_000, help="of each run (default 200,000)")
    parser.add_argument("--runs", type=positive, default=5, help="of which the median counts (default 5)")
    options = parser.parse_args()
    reason = real_kafka().missing() or java_programs().missing_compiler()
    if reason is not None:
        print(f"no benchmark: {reason}", file=sys.stderr)
        return 1
    return run(
        lambda servers, tell: ShareComparison(servers, options.records, options.runs, tell),
        ShareComparison.measure,
        _show,
    )


if __name__ == "__main__":
    sys.exit(main())
