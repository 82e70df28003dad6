"""kafka-python."""

from __future__ import annotations

import kafka  # type: ignore[import-untyped]
from benchmarks.case import (
    FETCH_BYTES,
    IN_FLIGHT,
    LINGER_MS,
    PARTITION_FETCH_BYTES,
    POLL_MS,
    Job,
    Measured,
)
from benchmarks.watch import Reading, Stopwatch, round_trips


def produce(job: Job) -> Measured:
    """Send everything and wait until it is acknowledged."""
    values = job.case.values()
    topic = job.topic
    producer = _producer(job, LINGER_MS)
    producer.partitions_for(topic)
    with Stopwatch() as watch:
        send = producer.send
        futures = [send(topic, values[i % 1000]) for i in range(job.records)]
        producer.flush()
        if not all(future.succeeded() for future in futures):
            raise RuntimeError("kafka-python did not deliver everything")
    producer.close()
    return Measured(job.records, watch.seconds, watch.cpu_seconds)


def consume(job: Job) -> Measured:
    """Read everything as the only member of a new group."""
    reading = Reading.of(job)
    consumer = kafka.KafkaConsumer(
        job.topic,
        bootstrap_servers=job.bootstrap_servers,
        group_id=f"{job.topic}-kafka-python",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        check_crcs=True,
        fetch_max_bytes=FETCH_BYTES,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        max_poll_records=job.poll_records,
    )
    value = None
    while not reading.done:
        count = size = 0
        for records in consumer.poll(POLL_MS).values():
            count += len(records)
            for record in records:
                value = record.value
                size += len(value)
        reading.take(count, size, value)
    consumer.close()
    return reading.measured(job)


def round_trip(job: Job) -> Measured:
    """One record at a time, without linger."""
    producer = _producer(job, 0)
    measured = round_trips(job, lambda value: producer.send(job.topic, value).get(60))
    producer.close()
    return measured


def _producer(job: Job, linger_ms: int) -> kafka.KafkaProducer:
    return kafka.KafkaProducer(
        bootstrap_servers=job.bootstrap_servers,
        acks="all",
        enable_idempotence=True,
        max_in_flight_requests_per_connection=IN_FLIGHT,
        batch_size=job.case.batch_bytes,
        linger_ms=linger_ms,
        compression_type=None if job.case.codec == "none" else job.case.codec,
    )
