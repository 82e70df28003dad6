"""The price of TLS: kclient and confluent-kafka with it and without it, beside a bare loop over OpenSSL.

Produces and reads on a real Apache Kafka whose one listener is plain and whose other has TLS, in turns, in about six
minutes. A figure is the median of the runs. "Added" is the CPU of the client's process with TLS less that without it,
for each MB of values.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from benchmarks import output
from benchmarks.broker import certificates, real_kafka
from benchmarks.case import Case, Job, Measured
from benchmarks.child import measure
from benchmarks.clients import CLIENTS, Client
from benchmarks.command import new_broker, positive, run
from benchmarks.memory import make_present
from benchmarks.output import Sheet
from benchmarks.topics import create_topic
from kclient.admin import KafkaAdminClient

_PEERS = {
    "kclient": CLIENTS["kclient"],
    "confluent": CLIENTS["confluent"],
    "bare": Client("bare", ("produce", "consume")),
}
_OPERATIONS = ("produce", "consume")
_SPARE_RECORDS = 20_000
_ADDED = 1.3  # times what the bare loop adds
_KEPT = 0.8  # of the ratio without TLS
_NAMES = ("operation", "client", "plain 1000/s", "TLS 1000/s", "plain x", "TLS x", "added us/MB", "of bare")


@attrs.define
class TlsComparison:
    """Measures on a broker at `servers`, and at `tls_servers` with the certificates of `authority`."""

    servers: str
    tls_servers: str
    authority: str
    certificate: str
    records: int
    runs: int
    tell: Callable[[str], None]
    failed: list[str] = attrs.Factory(list)
    measured: dict[tuple[str, int, str, bool], list[Measured]] = attrs.Factory(dict)
    """The runs by operation, size of a record, client, and whether they had TLS."""

    def measure(self, sizes: Sequence[int]) -> None:
        """Let all clients take turns, with TLS and without."""
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            for size in sizes:
                case = Case(size)
                records = max(self.records * 100 // size, 1000)
                source = self._filled(admin, case, records)
                for number in range(self.runs):
                    for operation in _OPERATIONS:
                        turns = list(_PEERS.items())
                        for name, client in turns[number % 3 :] + turns[: number % 3]:
                            for tls in (False, True):
                                topic = source if operation == "consume" else create_topic(admin)
                                self._run(name, client, self._job(operation, topic, records, case, tls))
                                if topic != source:
                                    admin.delete_topics([topic])
                admin.delete_topics([source])

    def _run(self, name: str, client: Client, job: Job) -> None:
        tls = bool(job.authority)
        title = f"{job.case.size} B: {name} {job.operation}{' TLS' if tls else ''}"
        make_present()
        try:
            measured = measure(client, job)
        except (RuntimeError, ValueError) as error:
            self.failed.append(f"{title}: {error}")
            return
        self.tell(f"{title} {measured.records_per_s:,.0f}/s, {measured.cpu_us_per_record:.2f} us CPU")
        self.measured.setdefault((job.operation, job.case.size, name, tls), []).append(measured)

    def _job(self, operation: str, topic: str, records: int, case: Case, tls: bool) -> Job:
        if not tls:
            return Job(operation, self.servers, topic, records, case)
        return Job(
            *(operation, self.tls_servers, topic, records, case),
            authority=self.authority,
            certificate=self.certificate,
        )

    def _filled(self, admin: KafkaAdminClient, case: Case, records: int) -> str:
        source = create_topic(admin)
        self.tell(f"{case.name}: filling a topic")
        job = Job("produce", self.servers, source, records + _SPARE_RECORDS, case)
        measure(CLIENTS["confluent"], job)
        return source

    def rate(self, operation: str, size: int, name: str, tls: bool) -> float:
        """Return records/s, the median."""
        return statistics.median(run.records_per_s for run in self.measured[operation, size, name, tls])

    def added_us(self, operation: str, size: int, name: str) -> float:
        """Return the CPU that TLS adds, in us for each MB."""
        plain, tls = (
            statistics.median(run.cpu_us_per_record for run in self.measured[operation, size, name, tls])
            for tls in (False, True)
        )
        return (tls - plain) * 1e6 / size


def _rows(comparison: TlsComparison) -> Iterator[list[str]]:
    for operation, size in sorted({key[:2] for key in comparison.measured}):
        bare_us = comparison.added_us(operation, size, "bare")
        for name in _PEERS:
            plain, tls = (comparison.rate(operation, size, name, each) for each in (False, True))
            ratios = ["", ""]
            if name == "kclient":
                ratios = [
                    f"{rate / comparison.rate(operation, size, 'confluent', each):.2f}"
                    for rate, each in ((plain, False), (tls, True))
                ]
            added_us = comparison.added_us(operation, size, name)
            yield [
                f"{operation} {size} B" if name == "kclient" else "",
                name,
                f"{plain / 1000:,.0f}",
                f"{tls / 1000:,.0f}",
                *ratios,
                f"{added_us:,.0f}",
                f"{added_us / bare_us:.2f}",
            ]


def _targets(comparison: TlsComparison) -> Iterator[list[str]]:
    for operation, size in sorted({key[:2] for key in comparison.measured}):
        plain, tls = (
            comparison.rate(operation, size, "kclient", each)
            / comparison.rate(operation, size, "confluent", each)
            for each in (False, True)
        )
        added = comparison.added_us(operation, size, "kclient") / comparison.added_us(operation, size, "bare")
        case = f"{operation} {size} B"
        kept, ahead = tls / plain, tls
        yield [case, "ratio to confluent kept", f">= {_KEPT}", f"{kept:.2f}", output.verdict(kept >= _KEPT)]
        yield [case, "ratio to confluent", "> 1", f"{ahead:.2f}", output.verdict(ahead > 1)]
        yield [case, "CPU added, of bare", f"<= {_ADDED}", f"{added:.2f}", output.verdict(added <= _ADDED)]


def _show(comparison: TlsComparison) -> None:
    sheets = [
        Sheet("the price of TLS", _NAMES, list(_rows(comparison)), left=2, grouped=True),
        Sheet(
            "what it is held to",
            ("case", "figure", "wanted", "reached", ""),
            list(_targets(comparison)),
            left=2,
        ),
    ]
    output.show(sheets, 120)
    print(
        f"written to {output.write(sheets, {'runs': comparison.runs, 'failed': comparison.failed}, '-tls')}"
    )


def main() -> int:
    """Measure and report; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tls",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", nargs="+", type=positive, default=[100, 1000], help="default 100 1000")
    parser.add_argument(
        "--records",
        type=positive,
        default=1_000_000,
        help="of 100 bytes, as many bytes of others (default 1000000)",
    )
    parser.add_argument("--runs", type=positive, default=3, help="of which the median counts (default 3)")
    options = parser.parse_args()
    reason = real_kafka().missing()
    if reason is not None:
        print(f"no benchmark: {reason}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="kclient-bench-") as folder:
        authority = certificates().Authority(Path(folder))
        pair = str(authority.issue("127.0.0.1"))
        settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": pair}
        broker = new_broker("1g", listeners={"TLS": "SSL"}, settings=settings)
        tls_servers = f"127.0.0.1:{broker.ports['TLS']}"
        return run(
            lambda servers, tell: TlsComparison(
                *(servers, tls_servers, str(authority.file), pair), options.records, options.runs, tell
            ),
            lambda comparison: comparison.measure(options.sizes),
            _show,
            broker=broker,
        )


if __name__ == "__main__":
    sys.exit(main())
