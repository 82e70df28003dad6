"""One measurement in a Spark session of its own: `python -P benchmarks/spark_job.py JOB`, JSON in and JSON out.

A program that imports nothing of the work tree, to be run in another folder: Spark's Python workers then have the
kclient that is installed, as they have for a user.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how everybody calls it
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from kclient.producer import KafkaProducer
from kclient.spark import register

KEY_BYTES = 8
# Each of the seven columns is needed, so that no source can leave one out.
AGGREGATES = (
    "count(*) AS rows",
    "sum(length(key) + length(value)) AS bytes",
    "sum(offset) AS offsets",
    "max(topic) AS topic",
    "max(partition) AS partition",
    "max(timestamp) AS timestamp",
    "max(timestampType) AS kind",
)
_WORKER = "pyspark.daemon"
_WAIT_S = 900

Job = Mapping[str, Any]


def main() -> None:
    """Do the job that the one argument describes, and print what it took as the last line."""
    job: Job = json.loads(sys.argv[1])
    with _session(job) as spark, contextlib.ExitStack() as stack:
        run: Callable[[], float | None]
        if job["operation"] == "micro_batch":
            run = stack.enter_context(_micro_batches(spark, job))
        else:
            run = partial(_OPERATIONS[job["operation"]], spark, job)
        # The first job compiles, connects and starts the workers.
        for _ in range(job["warm_ups"]):
            run()
        seconds, cpu_seconds = [], []
        for _ in range(job["runs"]):
            cpu_before_s, before_s = _cpu_s(), time.perf_counter()
            taken_s = run()
            seconds.append(time.perf_counter() - before_s if taken_s is None else taken_s)
            cpu_seconds.append(_cpu_s() - cpu_before_s)
        answer = {"seconds": seconds, "cpu_seconds": cpu_seconds, "worker_rss_bytes": _peak_of_workers()}
    print(json.dumps(answer))


@contextlib.contextmanager
def _session(job: Job) -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.jars": ",".join(job["jars"]),
    }
    with started("local[2]", settings) as spark:
        if job["format"] == "kclient":
            register(spark)
        elif job["format"] == "drain":
            spark.dataSource.register(Drain)
        yield spark


@contextlib.contextmanager
def started(master: str, settings: Mapping[str, str]) -> Iterator[Any]:
    """A session that says nothing but errors, and is stopped in the end."""
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def _source(reader: Any, job: Job) -> Any:
    options = {
        "kafka.bootstrap.servers": job["servers"],
        "subscribe": job["topic"],
        "startingOffsets": "earliest",
        "minPartitions": str(job["min_partitions"]),
    }
    return reader.format(job["format"]).options(**options).load()


def _aggregated(frame: Any) -> Any:
    return frame.agg(*map(F.expr, AGGREGATES))


def _read(spark: Any, job: Job) -> None:
    ends = json.dumps({job["topic"]: {"0": job["records"]}})
    reader = spark.read.option("endingOffsets", ends)
    _check(_aggregated(_source(reader, job)).first(), job)


def _stream(spark: Any, job: Job) -> None:
    with tempfile.TemporaryDirectory() as checkpoint:
        query = (
            _aggregated(_source(spark.readStream, job))
            .writeStream.format("memory")
            .queryName("found")
            .outputMode("complete")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        if not query.awaitTermination(_WAIT_S):
            raise TimeoutError(f"the query has not ended after {_WAIT_S} s")
        _check(spark.table("found").first(), job)


@contextlib.contextmanager
def _micro_batches(spark: Any, job: Job) -> Iterator[Callable[[], float]]:
    """A query that runs; each call gives it records, and returns the seconds that these then took to be processed.

    From the moment at which the broker has them to the end of their micro-batch, by Spark's clock.
    """
    count, value = job["records"], b"x" * job["size"]
    written = itertools.count(1)
    # All of them in one request: a part of them would be a micro-batch of its own.
    settings = {"bootstrap_servers": job["servers"], "linger_ms": 10_000, "batch_size": 2_000_000}
    settings["max_request_size"] = 2_000_000
    with KafkaProducer(**settings) as producer, tempfile.TemporaryDirectory() as folder:
        query = (
            _source(spark.readStream, job)
            .writeStream.format("noop")
            .option("checkpointLocation", folder)
            .start()
        )

        def run() -> float:
            for number in range(count):
                producer.send(job["topic"], value, key=b"%08d" % number)
            producer.flush()
            there_s = time.time()
            last = await_rows(query, count * next(written))[-1]
            began_s = datetime.fromisoformat(last["timestamp"]).timestamp()
            return float(began_s + last["durationMs"]["triggerExecution"] / 1000 - there_s)

        try:
            yield run
        finally:
            query.stop()


def await_rows(query: Any, wanted: int) -> list[Any]:
    """The micro-batches of a query that had rows, when it has told of as many rows as are wanted."""
    deadline_s = time.monotonic() + _WAIT_S
    query.processAllAvailable()
    while True:
        # A micro-batch is told of a moment after it has ended.
        filled = [each for each in query.recentProgress if each["numInputRows"]]
        if sum(each["numInputRows"] for each in filled) >= wanted:
            return filled
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"{wanted} records are not read after {_WAIT_S} s: {query.status}")
        time.sleep(0.05)


def _write(spark: Any, job: Job) -> None:
    # As cheap as rows can be, as making them is part of what is measured.
    value = f"concat(key, X'{'61' * (job['size'] - KEY_BYTES)}')"
    frame = (
        spark.range(0, job["records"], 1, 2)
        .selectExpr(f"encode(lpad(CAST(id AS STRING), {KEY_BYTES}, '0'), 'utf-8') AS key")
        .selectExpr("key", f"{value} AS value")
    )
    writer = frame.write.format(job["format"]).option("kafka.bootstrap.servers", job["servers"])
    writer.option("topic", job["topic"]).mode("append").save()


class Drain(DataSource):
    """A sink in Python that is given the rows and does nothing with them."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "drain"

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002 - Spark's signature
        """Return what takes the rows."""
        return _DrainWriter()


class _DrainWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


def _check(row: Any, job: Job) -> None:
    """Raises ValueError unless every record was read once and whole."""
    count = job["records"]
    wanted = (count, count * (KEY_BYTES + job["size"]), count * (count - 1) // 2, job["topic"], 0, 0)
    found = (row["rows"], row["bytes"], row["offsets"], row["topic"], row["partition"], row["kind"])
    if found != wanted or row["timestamp"] is None:
        raise ValueError(f"{found} was read instead of {wanted}")


def _cpu_s() -> float:
    """CPU so far of this process and all below it: Spark's JVM and its Python workers."""
    return float(_over_tree(lambda process: sum(process.cpu_times()[:4]), sum))


def _peak_of_workers() -> int:
    """The most memory that any of Spark's Python workers has had. They live on for a minute after their last task."""
    return int(_over_tree(_worker_bytes, max))


def _worker_bytes(process: psutil.Process) -> int:
    return _peak_bytes(process) if any(_WORKER in word for word in process.cmdline()) else 0


def _peak_bytes(process: psutil.Process) -> int:
    """Return the most memory that the process has had; where the system does not tell it, its memory now."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    except OSError:
        return int(process.memory_info().rss)
    found = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0].split()[1]) * 1024 if found else 0


def _over_tree(figure: Callable[[psutil.Process], Any], total: Callable[[list[Any]], Any]) -> Any:
    me = psutil.Process()
    found = []
    for process in [me, *me.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # it may have ended meanwhile
            found.append(figure(process))
    return total(found)


_OPERATIONS: Mapping[str, Callable[[Any, Job], None]] = {
    "fill": _write,
    "batch_read": _read,
    "batch_write": _write,
    "write_parts": _write,
    "stream": _stream,
    "memory": _read,
}

if __name__ == "__main__":
    main()
