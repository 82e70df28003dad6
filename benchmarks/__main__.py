"""kclient beside confluent-kafka, aiokafka, kafka-python and Java's perf tools, on a real Apache Kafka.

Without options: the cases that kclient is held to, in about ten minutes. With --all the whole matrix, for an hour or
more. A figure is the median of the runs; the lowest and the highest are its noise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks.broker import kafka_version, real_kafka
from benchmarks.case import POLL_RECORDS
from benchmarks.clients import CLIENTS, OPERATIONS
from benchmarks.command import positive, run
from benchmarks.comparison import Comparison, Line
from benchmarks.plan import plan
from benchmarks.report import show

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_QUICK_PART = 0.2


def main() -> int:
    """Measure and report; 1 if something could not be measured that should have been."""
    options = _parser().parse_args()
    broker = real_kafka()
    reason = broker.missing()
    if reason is not None:
        print(f"no benchmark: {reason}", file=sys.stderr)
        return 1
    stages = list(
        plan(
            options.operations,
            options.sizes,
            options.codecs or (["none", "lz4", "zstd"] if options.all else ["none"]),
            options.partitions or ([1, 12] if options.all else [1]),
            options.batch_sizes,
        )
    )
    lines: list[Line] = []

    def make(servers: str, tell: Callable[[str], None]) -> Comparison:
        return Comparison(
            servers,
            options.clients,
            options.runs or (1 if options.quick else 3),
            tell,
            options.records,
            _QUICK_PART if options.quick else 1.0,
            options.poll_records,
        )

    def measure(comparison: Comparison) -> None:
        comparison.warm_up()
        for stage in stages:
            lines.extend(comparison.of(stage))

    def report(comparison: Comparison) -> None:
        about = {
            "kafka": kafka_version(broker.classpath()),
            "runs": comparison.runs,
            "max_poll_records": options.poll_records,
            "absent": [f"{name} {operation}: {why}" for (operation, name), why in comparison.absent.items()],
            "failed": comparison.failed,
        }
        show(lines, about)

    return run(make, measure, report, options.heap)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="codecs none, lz4 and zstd, 1 and 12 partitions")
    parser.add_argument(
        "--quick", action="store_true", help="one run with a fifth of the records: a look, not a measurement"
    )
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS), help="default: all")
    parser.add_argument(
        "--operations", nargs="+", choices=OPERATIONS, default=list(OPERATIONS), help="default: all"
    )
    parser.add_argument(
        "--sizes", nargs="+", type=positive, default=[100, 1000], help="bytes of a value (default 100 1000)"
    )
    parser.add_argument("--codecs", nargs="+", choices=_CODECS, help="default: none")
    parser.add_argument("--partitions", nargs="+", type=positive, help="default: 1")
    parser.add_argument(
        "--batch-sizes",
        nargs="+",
        type=positive,
        default=[16_384, 131_072],
        help="batch.size (default 16384 131072); reading is measured on the first",
    )
    parser.add_argument(
        "--records", type=positive, help="for each run (default: 300 MB of them, at most 1500000)"
    )
    parser.add_argument("--runs", type=positive, help="of which the median counts (default 3)")
    parser.add_argument(
        "--poll-records",
        type=positive,
        default=POLL_RECORDS,
        help=f"records that a poll gives at most (default {POLL_RECORDS})",
    )
    parser.add_argument("--heap", default="1g", help="memory for the broker's JVM (default 1g)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
