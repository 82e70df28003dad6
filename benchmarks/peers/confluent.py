"""confluent-kafka, which is librdkafka, with the two settings without which its consumer stops and waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import confluent_kafka

from benchmarks.case import (
    FETCH_BYTES,
    IN_FLIGHT,
    LINGER_MS,
    PARTITION_FETCH_BYTES,
    POLL_MS,
    Job,
    Measured,
)
from benchmarks.watch import SAMPLED_EVERY, Reading, Stopwatch, busy_turns, round_trips, with_latencies

_QUEUE_RECORDS = 1_000_000
_REPORTS_EVERY = 1000
_REPORTS_EVERY_WHEN_TIMED = 10  # 0.1 ms at the rate of a busy sender
# With its defaults it stops fetching at 100,000 records and looks again a second later.
_TUNED = {"queued.min.messages": _QUEUE_RECORDS, "fetch.queue.backoff.ms": 10}


def produce(job: Job) -> Measured:
    """Send everything and wait until it is acknowledged."""
    values = job.case.values()
    topic = job.topic
    on_delivery, check = _reports()
    producer = _producer(job, LINGER_MS)
    producer.list_topics(topic)
    with Stopwatch() as watch:
        for i in range(job.records):
            while True:
                try:
                    producer.produce(topic, values[i % 1000], on_delivery=on_delivery)
                    break
                except BufferError:
                    producer.poll(0.01)
            if i % _REPORTS_EVERY == 0:
                producer.poll(0)
        producer.flush()
    check(job.records)
    return Measured(job.records, watch.seconds, watch.cpu_seconds)


def consume(job: Job, tuning: Mapping[str, int] | None = None) -> Measured:
    """Read everything as the only member of a new group."""
    reading = Reading.of(job)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": job.bootstrap_servers,
            "group.id": f"{job.topic}-confluent",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.max.bytes": FETCH_BYTES,
            "max.partition.fetch.bytes": PARTITION_FETCH_BYTES,
            **(_TUNED if tuning is None else tuning),
            **_security(job),
        }
    )
    consumer.subscribe([job.topic])
    value = None
    while not reading.done:
        messages = consumer.consume(job.poll_records, POLL_MS / 1000)
        size = 0
        for message in messages:
            if message.error():
                raise RuntimeError(str(message.error()))
            value = message.value()
            size += len(value)  # type: ignore[arg-type]  # none of them is null
        reading.take(len(messages), size, value)
    consumer.close()
    return reading.measured(job)


def round_trip(job: Job) -> Measured:
    """One record at a time, without linger."""
    producer = _producer(job, 0)
    on_delivery, check = _reports()
    waiting = [False]

    def delivered(error: Any, message: Any) -> None:
        waiting[0] = False
        on_delivery(error, message)

    def send_and_wait(value: bytes) -> None:
        waiting[0] = True
        producer.produce(job.topic, value, on_delivery=delivered)
        while waiting[0]:
            producer.poll(1.0)

    measured = round_trips(job, send_and_wait)
    check(None)
    return measured


def busy(job: Job) -> Measured:
    """A thread that computes sends at a steady rate; the latency is from `produce()` to the callback.

    Callbacks come from `poll`, which is therefore called often.
    """
    values = job.case.values()
    topic = job.topic
    clock = time.perf_counter
    taken_s: list[float] = []
    on_delivery, check = _reports()

    def timed() -> Callable[[Any, Any], None]:
        sent_s = clock()

        def delivered(error: Any, message: Any) -> None:
            taken_s.append(clock() - sent_s)
            on_delivery(error, message)

        return delivered

    producer = _producer(job, 0)
    producer.produce(topic, values[0], on_delivery=on_delivery)
    producer.flush()
    with Stopwatch() as watch:
        for i in busy_turns(job.records):
            report = on_delivery if i % SAMPLED_EVERY else timed()
            producer.produce(topic, values[i % 1000], on_delivery=report)
            if i % _REPORTS_EVERY_WHEN_TIMED == 0:
                producer.poll(0)
    producer.flush()
    check(job.records + 1)
    return with_latencies(job.records, watch, taken_s)


def _producer(job: Job, linger_ms: int) -> confluent_kafka.Producer:
    return confluent_kafka.Producer(
        {
            "bootstrap.servers": job.bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "max.in.flight.requests.per.connection": IN_FLIGHT,
            "batch.size": job.case.batch_bytes,
            "linger.ms": linger_ms,
            "compression.type": job.case.codec,
            "queue.buffering.max.messages": _QUEUE_RECORDS,
            **_security(job),
        }
    )


def _security(job: Job) -> dict[str, str]:
    return {"security.protocol": "ssl", "ssl.ca.location": job.authority} if job.authority else {}


def _reports() -> tuple[Callable[[Any, Any], None], Callable[[int | None], None]]:
    """A delivery callback, and a check that it heard of that many deliveries, and of no failure."""
    failures: list[Any] = []
    delivered = 0

    def on_delivery(error: Any, _message: Any) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1
        else:
            failures.append(error)

    def check(records: int | None) -> None:
        if failures or delivered != (delivered if records is None else records):
            raise RuntimeError(f"confluent-kafka delivered {delivered} of {records}: {failures[:1]}")

    return on_delivery, check
