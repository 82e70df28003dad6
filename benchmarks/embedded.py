"""The embedded broker beside Apache Kafka, and its own figures.

confluent-kafka writes to both and reads from both in turns, records of 100 bytes in batches of 16 KiB; then the broker
alone: how soon it listens, idle connections, many partitions, timers, a large log. About five minutes. A figure is the
median of the runs.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

from benchmarks import embedded_figures, output
from benchmarks.broker import embedded_process, real_kafka
from benchmarks.command import new_broker, positive, run
from benchmarks.embedded_comparison import KAFKA, NAMES, OURS, TARGET_NAMES, Server, ServerComparison
from benchmarks.embedded_figures import Figure
from benchmarks.output import Sheet


def _row(figure: Figure) -> list[str]:
    wanted = "" if figure.wanted is None else f"<= {figure.wanted:g} {figure.unit}"
    met = "" if figure.wanted is None else output.verdict(figure.value <= figure.wanted)
    return [figure.name, wanted, f"{figure.value:.3g} {figure.unit}", met]


def _alone(comparison: ServerComparison, gigabytes: float) -> list[Figure]:
    figures: list[Figure] = []
    for name, *arguments in (
        ("start",),
        ("connections",),
        ("partitions", "4096"),
        ("partitions", "1024"),
        ("timer",),
        ("large_log", f"{gigabytes:g}"),
    ):
        try:
            figures += embedded_figures.of(name, *arguments)
        except RuntimeError as error:
            comparison.failed.append(str(error))
            continue
        comparison.tell(f"{name} {' '.join(arguments)}")
    return figures


def main() -> int:
    """Measure and report; 1 if something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.embedded",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--records", type=positive, default=1_500_000, help="of each run (default 1500000)")
    parser.add_argument("--runs", type=positive, default=5, help="of which the median counts (default 5)")
    parser.add_argument(
        "--gigabytes",
        type=float,
        default=1.0,
        help="of the large log, which has to fit on the disk (default 1)",
    )
    options = parser.parse_args()
    reason = real_kafka().missing()
    if reason is not None:
        print(f"no benchmark: {reason}", file=sys.stderr)
        return 1
    figures: list[Figure] = []

    def compare(comparison: ServerComparison) -> None:
        comparison.measure()
        figures.extend(_alone(comparison, options.gigabytes))

    def show(comparison: ServerComparison) -> None:
        sheets = [
            Sheet("the embedded broker beside Kafka", NAMES, list(comparison.rows()), left=2),
            Sheet("what it is held to beside Kafka", TARGET_NAMES, list(comparison.targets()), left=2),
            Sheet(
                "the embedded broker alone",
                ("figure", "wanted", "reached", ""),
                list(map(_row, figures)),
                left=1,
            ),
        ]
        output.show(sheets, 120)
        about = {"runs": comparison.runs, "records": comparison.records, "failed": comparison.failed}
        print(f"written to {output.write(sheets, about, '-embedded')}")

    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kclient-bench-"))
        # Segments of Kafka's default size, and what is deleted goes at once, for both.
        ours = stack.enter_context(embedded_process()(Path(folder), log_segment_delete_delay_ms="0"))
        kafka = new_broker("1g")
        return run(
            lambda servers, tell: ServerComparison(
                {OURS: Server(ours.bootstrap_servers, ours.pid), KAFKA: Server(servers, kafka.pid)},
                options.records,
                options.runs,
                tell,
            ),
            compare,
            show,
            broker=kafka,
        )


if __name__ == "__main__":
    sys.exit(main())
