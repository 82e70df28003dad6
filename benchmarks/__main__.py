"""`python -m benchmarks`: kclient beside kafka-python, aiokafka and confluent-kafka on a real Apache Kafka."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.case import CASES
from benchmarks.comparison import CLIENTS, OPERATIONS, Comparison, Line
from benchmarks.report import show


def main() -> int:
    """Measure and report; 1 if this machine cannot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--records", type=_positive, default=500_000, help="for each run (default 500000)")
    parser.add_argument("--runs", type=_positive, default=3, help="of which the median counts (default 3)")
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=CLIENTS, help="default: all")
    parser.add_argument(
        "--operations", nargs="+", choices=OPERATIONS, default=OPERATIONS, help="default: both"
    )
    options = parser.parse_args()

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "kafka"))
    import real_kafka

    reason = real_kafka.missing()
    if reason is not None:
        print(f"no benchmark: {reason}", file=sys.stderr)
        return 1
    lines: list[Line] = []
    with real_kafka.RealKafka(heap="1g") as kafka:
        comparison = Comparison(
            kafka.bootstrap_servers,
            options.clients,
            options.operations,
            options.records,
            options.runs,
            lambda text: print(text, file=sys.stderr, flush=True),
        )
        for case in CASES:
            lines += comparison.of(case)
    show(lines)
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


if __name__ == "__main__":
    sys.exit(main())
