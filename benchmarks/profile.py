"""`python -m benchmarks.profile`: where kclient's time goes, per record and per batch, by step and by thread.

For the body that KCLIENT_IMPL chooses. The steps of the hot path are timed alone, without a broker. Then a producer
and a consumer run on a real Apache Kafka, and the CPU of each of their threads is divided by records and by requests.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import attrs
from rich.console import Console
from rich.table import Table

from benchmarks.broker import real_kafka
from benchmarks.case import LINGER_MS, POLL_MS, Case, Job
from benchmarks.command import new_broker
from benchmarks.peers import kclient as peer
from kclient._accel import IMPL, BatchBuilder, BatchResult, RecordReader
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.consumer import ConsumerRecord
from kclient.metrics import MetricName

_BATCHES = 64  # at 16 KiB what a fetch brings
_REPEATS = 5
_TIMESTAMP_MS = 1_750_000_000_000
_ATTRIBUTES = 0
_READ_AT_ONCE = 500
_WIDTH = 110  # also where nobody says how wide the terminal is


@attrs.frozen
class Step:
    """A part of the way, with what it takes: `unit` is ns/record or us/batch."""

    name: str
    figure: float
    unit: str


def steps(case: Case) -> Iterator[Step]:
    """The steps of the seam, each alone; the fastest of some repetitions."""
    values = case.values()
    per_batch = len(_full(case, values)[1])
    records = per_batch * _BATCHES
    best = {
        name: min(_timed(case, values, name) for _ in range(_REPEATS))
        for name in ("append", "close", "check")
    }
    yield Step("append, with its future", best["append"] / records * 1e9, "ns/record")
    yield Step(f"close a batch of {per_batch} (header, CRC)", best["close"] / _BATCHES * 1e6, "us/batch")
    yield Step("look at a future that is done", best["check"] / records * 1e9, "ns/record")
    data = b"".join(_closed(case, values, number * per_batch) for number in range(_BATCHES))
    yield Step(
        "read as objects",
        _best(lambda: _read(data, lambda reader: reader.read(_READ_AT_ONCE))) / records * 1e9,
        "ns/record",
    )
    for name, view in (("copied", False), ("views", True)):
        taken_s = _best(lambda view=view: _read(data, lambda reader: reader.read_columns(None, view)))  # type: ignore[misc]
        yield Step(f"read as columns, {name}", taken_s / records * 1e9, "ns/record")


def _timed(case: Case, values: Sequence[bytes], what: str) -> float:
    """Seconds that one of append, close and check takes for _BATCHES batches."""
    taken_s = 0.0
    clock = time.thread_time  # what other processes take meanwhile is not ours
    for number in range(_BATCHES):
        before_s = clock()
        builder, futures = _full(case, values)
        appended_s = clock()
        builder.close(1, 0, number, _ATTRIBUTES)
        closed_s = clock()
        builder.result.complete(0)
        completed_s = clock()
        for future in futures:
            future.exception(0)
        checked_s = clock()
        taken_s += {
            "append": appended_s - before_s,
            "close": closed_s - appended_s,
            "check": checked_s - completed_s,
        }[what]
    return taken_s


def _full(case: Case, values: Sequence[bytes]) -> tuple[BatchBuilder, list[Any]]:
    """A batch with all the records that it takes, and their futures."""
    builder = BatchBuilder("t", 0, case.batch_bytes, BatchResult("t", 0), 0)
    append = builder.append
    futures = []
    for value in itertools.cycle(values):
        future = append(_TIMESTAMP_MS, None, value, None)
        if future is None:
            break
        futures.append(future)
    return builder, futures


def _closed(case: Case, values: Sequence[bytes], base_offset: int) -> bytes:
    """A batch as a broker would have stored it."""
    builder, _ = _full(case, values)
    builder.close(1, 0, 0, _ATTRIBUTES)
    return base_offset.to_bytes(8, "big") + b"".join(builder.views())[8:]


def _read(data: bytes, take: Callable[[RecordReader], object]) -> None:
    reader = RecordReader(data, 0, len(data), "t", 0, 0, True, ConsumerRecord)
    while take(reader):
        pass


def _best(action: Callable[[], object]) -> float:
    taken_s = []
    for _ in range(_REPEATS):
        before_s = time.thread_time()
        action()
        taken_s.append(time.thread_time() - before_s)
    return min(taken_s)


class ThreadClocks:
    """The CPU that each thread of this process takes over a `with` block, by the thread's name, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.seconds = {name: -used_s for name, used_s in self._now().items()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, used_s in self._now().items():
            self.seconds[name] = self.seconds.get(name, 0.0) + used_s

    def _now(self) -> dict[str, float]:
        return {
            thread.name: time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
            for thread in threading.enumerate()
            if thread.ident is not None
        }


@attrs.frozen
class Share:
    """The CPU time of one thread for `records` records in `requests` requests."""

    operation: str
    thread: str
    seconds: float
    records: int
    requests: float


def produce_shares(job: Job) -> Iterator[Share]:
    """The threads of a producer."""
    values = job.case.values()
    with peer.new_producer(job, LINGER_MS) as producer:
        producer.send(job.topic, values[0]).result(60)
        before = _metric(producer.metrics(), "request-total")
        clock = time.thread_time
        phases = {}
        with ThreadClocks() as clocks:
            before_s = clock()
            send = producer.send
            futures = [send(job.topic, values[i % 1000]) for i in range(job.records)]
            phases["application: send()"] = clock() - before_s
            before_s = clock()
            producer.flush()
            phases["application: flush()"] = clock() - before_s
            before_s = clock()
            peer.check(futures)
            phases["application: look at the futures"] = clock() - before_s
        requests = _metric(producer.metrics(), "request-total") - before
    for name, used_s in {**phases, **clocks.seconds}.items():
        if name != threading.current_thread().name:
            yield Share("produce", _short(name), used_s, job.records, requests)


def consume_shares(job: Job) -> Iterator[Share]:
    """The threads of a consumer."""
    with peer.new_consumer(job) as consumer:
        while not (seen := len(consumer.poll(POLL_MS))):
            pass
        before = _metric(consumer.metrics(), "fetch-total")
        with ThreadClocks() as clocks:
            while seen < job.records:
                for record in consumer.poll(POLL_MS):
                    seen += record.value is not None
        requests = _metric(consumer.metrics(), "fetch-total") - before
    for name, used_s in clocks.seconds.items():
        yield Share("consume", _short(name), used_s, job.records, requests)


def _metric(metrics: Mapping[MetricName, float], name: str) -> float:
    return next(value for metric, value in metrics.items() if metric.name == name)


def _short(name: str) -> str:
    return "application" if name == "MainThread" else "I/O" if name.startswith("kclient-") else name


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--size", type=int, default=100, help="bytes of a value (default 100)")
    parser.add_argument("--batch-size", type=int, default=16_384, help="batch.size (default 16384)")
    parser.add_argument("--codec", default="none", help="for the threads (default none)")
    parser.add_argument("--records", type=int, default=300_000, help="for the threads (default 300000)")
    options = parser.parse_args()
    case = Case(options.size, options.codec, 1, options.batch_size)
    console = Console()
    console.width = max(console.width, _WIDTH)
    out = Table(
        title=f"steps, {IMPL} body, {case.size} B, batches of {case.batch_bytes} B", title_justify="left"
    )
    out.add_column("step")
    out.add_column("takes", justify="right")
    out.add_column("")
    for step in steps(case):
        out.add_row(step.name, f"{step.figure:,.1f}", step.unit)
    console.print(out)

    reason = real_kafka().missing()
    if reason is not None:
        print(f"no threads: {reason}", file=sys.stderr)
        return 1
    out = Table(title=f"threads, {IMPL} body, {case.name}", title_justify="left")
    for column in ("operation", "thread"):
        out.add_column(column)
    for column in ("CPU ns/record", "CPU us/request", "records/request"):
        out.add_column(column, justify="right")
    with new_broker("1g") as kafka:
        topic = f"profile-{uuid.uuid4().hex[:8]}"
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(topic, 1, 1)])
        job = Job("profile", kafka.bootstrap_servers, topic, options.records, case)
        for share in (*produce_shares(job), *consume_shares(job)):
            out.add_row(
                share.operation,
                share.thread,
                f"{share.seconds / share.records * 1e9:,.0f}",
                f"{share.seconds / max(share.requests, 1) * 1e6:,.0f}",
                f"{share.records / max(share.requests, 1):,.0f}",
            )
    console.print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
