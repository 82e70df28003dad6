"""One measurement with many partitions, in a process of its own: `python -P benchmarks/spark_scale_job.py JOB`.

As spark_job.py, from which it has the aggregate, it imports nothing of the work tree: Spark has the kclient that is
installed. JSON in, and as the last line JSON out.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import functions as F  # noqa: N812 - how everybody calls it

from kclient.producer import KafkaProducer
from kclient.spark import clients
from kclient.spark.data_source import KafkaDataSource

sys.path.append(str(Path(__file__).parent))
from spark_job import AGGREGATES, KEY_BYTES, await_rows, started

_EXECUTOR = "CoarseGrainedExecutorBackend"
_PYTHON = "pyspark.daemon"
_SOURCE = "python_streaming_source_runner"

Job = Mapping[str, Any]
Found = dict[str, list[float]]


def main() -> None:
    """Do the job that the one argument describes, and print what it found."""
    job: Job = json.loads(sys.argv[1])
    print(json.dumps(_OPERATIONS[job["operation"]](job)))


@contextlib.contextmanager
def _session(job: Job) -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.pop("PYSPARK_DRIVER_PYTHON", None)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    with started(job["master"], settings) as spark:
        yield spark


def _options(job: Job, starting: str = "earliest") -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": job["servers"],
        "subscribe": job["topic"],
        "startingOffsets": starting,
    }


def _read(job: Job) -> Found:
    """The whole topic, several times, each as a new query: its time, and the CPU of the executors."""
    found: Found = {"seconds": [], "cpu_seconds": []}
    with _session(job) as spark:
        for number in range(job["warm_ups"] + job["runs"]):
            cpu_s, began_s = _executors_cpu_s(job), time.perf_counter()
            frame = spark.read.format("kclient").options(**_options(job)).load()
            _check(frame.agg(*map(F.expr, AGGREGATES)).first(), job)
            if number >= job["warm_ups"]:
                found["seconds"].append(time.perf_counter() - began_s)
                found["cpu_seconds"].append(_executors_cpu_s(job) - cpu_s)
    return found


def _check(row: Any, job: Job) -> None:
    """Raises ValueError unless every record was read once and whole."""
    count, partitions = job["records"], job["partitions"]
    each = count // partitions
    wanted = (count, count * (KEY_BYTES + job["size"]), partitions * each * (each - 1) // 2, partitions - 1)
    found = (row["rows"], row["bytes"], row["offsets"], row["partition"])
    if found != wanted:
        raise ValueError(f"{found} was read instead of {wanted}")


def _plan(job: Job) -> Found:
    """The time of planning: the source's alone, in this process, and Spark's of a batch query."""
    source = KafkaDataSource({name.lower(): value for name, value in _options(job).items()})
    reader, stream = source.reader(source.schema()), source.streamReader(source.schema())
    found: Found = {"batch": [], "stream": [], "query": []}

    def micro_batch() -> None:
        start = stream.initialOffset()
        _expect(stream.partitions(start, stream.latestOffset(start)), job)

    for _ in range(1 + job["runs"]):
        # It is planned by another process than the stream, which has to connect as well.
        clients.close_all()
        found["batch"].append(_seconds(lambda: _expect(reader.partitions(), job)))
    clients.close_all()
    for _ in range(1 + job["runs"]):
        found["stream"].append(_seconds(micro_batch))
    with _session(job) as spark:
        for _ in range(1 + job["runs"]):
            frame = spark.read.format("kclient").options(**_options(job)).load()
            with contextlib.redirect_stdout(io.StringIO()):
                found["query"].append(_seconds(frame.explain))
    return found


def _expect(tasks: Any, job: Job) -> None:
    if len(tasks) != job["partitions"]:
        raise ValueError(f"{len(tasks)} tasks were planned instead of {job['partitions']}")


def _seconds(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def _stream(job: Job) -> Found:
    """Micro-batches of a query, one after the other: what planning took, and the driver's memory after each."""
    names = ("source", "python", "jvm")
    found: Found = {"planning": [], "latest_offset": [], "trigger": [], **{name: [] for name in names}}
    settings = {"bootstrap_servers": job["servers"], "linger_ms": 10_000}
    partitions = job["partitions"]
    with _session(job) as spark, KafkaProducer(**settings) as producer, tempfile.TemporaryDirectory() as at:
        source = spark.readStream.format("kclient").options(**_options(job, "latest")).load()
        query = source.writeStream.format("noop").option("checkpointLocation", at).start()
        query.processAllAvailable()  # it has decided where it begins
        for number in range(job["micro_batches"]):
            for place in range(job["touched"]):
                partition = (number * job["touched"] + place) % partitions
                producer.send_many(job["topic"], [b"x" * job["size"]] * 10, partition=partition)
            producer.flush()
            filled = await_rows(query, (number + 1) * job["touched"] * 10)
            for name, size in zip(names, _driver_bytes(), strict=True):
                found[name].append(size)
        for each in filled:
            took = each["durationMs"]
            found["latest_offset"].append(took["latestOffset"] / 1000)
            planning_ms = took["latestOffset"] + took["getBatch"] + took["queryPlanning"]
            found["planning"].append(planning_ms / 1000)
            found["trigger"].append(took["triggerExecution"] / 1000)
        query.stop()
    return found


def _executors_cpu_s(job: Job) -> float:
    """CPU so far of the executors: their JVMs and Python processes, without driver, broker, master and workers."""
    total = 0.0
    for process in psutil.Process(job["cluster_pid"]).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it may have ended meanwhile
            if _EXECUTOR in " ".join(process.cmdline()):
                for each in [process, *process.children(recursive=True)]:
                    with contextlib.suppress(psutil.Error):
                        total += sum(each.cpu_times()[:4])
    return total


def _driver_bytes() -> tuple[int, int, int]:
    """Memory of the driver's process that plans the stream, of all of its JVM's Python processes, and of the JVM."""
    source = python = jvm = 0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            command, size = " ".join(process.cmdline()), process.memory_info().rss
            if _PYTHON in command or "pyspark.sql" in command:
                python += size
                # Of a daemon and its children the child has the source.
                source = max(source, size) if _SOURCE in command else source
            elif process.name() == "java":
                jvm = max(jvm, size)
    return source, python, jvm


_OPERATIONS: Mapping[str, Callable[[Job], Found]] = {"read": _read, "plan": _plan, "stream": _stream}

if __name__ == "__main__":
    main()
