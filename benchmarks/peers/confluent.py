"""confluent-kafka, which is librdkafka."""

from __future__ import annotations

from typing import Any

import confluent_kafka

from benchmarks.case import (
    BATCH_BYTES,
    FETCH_BYTES,
    IN_FLIGHT,
    LINGER_MS,
    PARTITION_FETCH_BYTES,
    POLL_MS,
    POLL_RECORDS,
    Job,
    Measured,
    Reading,
    Stopwatch,
)

_QUEUE_RECORDS = 1_000_000
_REPORTS_EVERY = 1000


def produce(job: Job) -> Measured:
    """Send everything and wait until it is acknowledged."""
    values = job.case.values()
    topic = job.topic
    failures: list[Any] = []
    delivered = 0

    def on_delivery(error: Any, _message: Any) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1
        else:
            failures.append(error)

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": job.bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "max.in.flight.requests.per.connection": IN_FLIGHT,
            "batch.size": BATCH_BYTES,
            "linger.ms": LINGER_MS,
            "compression.type": job.case.codec,
            "queue.buffering.max.messages": _QUEUE_RECORDS,
        }
    )
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
    if failures or delivered != job.records:
        raise RuntimeError(f"confluent-kafka delivered {delivered} of {job.records}: {failures[:1]}")
    return Measured(job.records, watch.seconds, watch.cpu_seconds)


def consume(job: Job) -> Measured:
    """Read everything as the only member of a new group."""
    reading = Reading(job.records)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": job.bootstrap_servers,
            "group.id": f"{job.topic}-confluent",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.max.bytes": FETCH_BYTES,
            "max.partition.fetch.bytes": PARTITION_FETCH_BYTES,
            # With its defaults it stops fetching at 100,000 records and looks again a second later.
            "queued.min.messages": _QUEUE_RECORDS,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.subscribe([job.topic])
    while not reading.done:
        messages = consumer.consume(POLL_RECORDS, POLL_MS / 1000)
        size = 0
        for message in messages:
            if message.error():
                raise RuntimeError(str(message.error()))
            size += len(message.value())  # type: ignore[arg-type]  # none of them is null
        reading.take(len(messages), size)
    consumer.close()
    return reading.measured(job.case)
