"""kclient's data source for PySpark beside Spark's own Kafka connector, on a real Apache Kafka.

`python -m benchmarks.spark`, with an interpreter that has PySpark 4.0, for which the connector is on Maven Central:

    python3 -m venv spark-bench
    spark-bench/bin/pip install 'pyspark==4.0.*' pyarrow psutil .
    spark-bench/bin/python -m benchmarks.spark

Reads and writes two million records of 100 bytes with both, in turns, in about ten minutes. Each measurement is a
Spark session of its own, which does the job once to warm up. A figure is the median of the runs of all its sessions;
the lowest and the highest are its noise. A micro-batch is 1,000 records that a query gets which has read all before.
The parts of a write are sinks that do ever more of it: `noop` has the rows made, `drain` takes them to Python.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import subprocess
import sys
import tempfile

from benchmarks.broker import real_kafka
from benchmarks.command import positive, run

CONNECTOR = "4.0"
OPERATIONS = ("batch_read", "batch_write", "stream", "micro_batch", "write_parts", "memory")


def missing(*, connector: bool = True) -> str | None:
    """Return the reason why this cannot run here, in one line; None if it can. Only the connector has its PySpark."""
    absent = [name for name in ("pyspark", "pyarrow", "psutil") if importlib.util.find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed (pip install 'pyspark=={CONNECTOR}.*' pyarrow psutil .)"
    version = importlib.metadata.version("pyspark")
    if connector and not version.startswith(f"{CONNECTOR}."):
        return f"PySpark is {version}, and the connector {CONNECTOR} (pip install 'pyspark=={CONNECTOR}.*')"
    # Somewhere else, as the work tree is not what Spark's workers are to import.
    with tempfile.TemporaryDirectory() as elsewhere:
        command = [sys.executable, "-P", "-c", "import kclient.spark"]
        installed = subprocess.run(command, cwd=elsewhere, capture_output=True, check=False)
    if installed.returncode != 0:
        return "kclient is not installed for this interpreter (pip install .)"
    reason: str | None = real_kafka().missing()
    return reason


def main() -> int:
    """Measure and report; 1 if something could not be measured."""
    options = _parser().parse_args()
    reason = missing()
    if reason is not None:
        print(f"no benchmark: {reason}", file=sys.stderr)
        return 1
    from benchmarks.spark_comparison import SparkComparison, connector_jars
    from benchmarks.spark_report import show

    jars = connector_jars()
    return run(
        lambda servers, tell: SparkComparison(
            servers, jars, options.records, options.sessions, options.runs, tell
        ),
        lambda comparison: comparison.measure(options.operations),
        show,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--operations", nargs="+", choices=OPERATIONS, default=OPERATIONS, help="default: all"
    )
    parser.add_argument("--records", type=positive, default=2_000_000, help="for each run (default 2000000)")
    parser.add_argument("--sessions", type=positive, default=2, help="of each kind (default 2)")
    parser.add_argument("--runs", type=positive, default=3, help="in each session (default 3)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
