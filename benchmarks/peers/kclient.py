"""kclient."""

from __future__ import annotations

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
from kclient.consumer import KafkaConsumer
from kclient.producer import KafkaProducer


def produce(job: Job) -> Measured:
    """Send everything and wait until it is acknowledged."""
    values = job.case.values()
    topic = job.topic
    with KafkaProducer(
        bootstrap_servers=job.bootstrap_servers,
        acks="all",
        enable_idempotence=True,
        max_in_flight_requests_per_connection=IN_FLIGHT,
        batch_size=BATCH_BYTES,
        linger_ms=LINGER_MS,
        compression_type=job.case.codec,
    ) as producer:
        producer.partitions_for(topic)
        with Stopwatch() as watch:
            send = producer.send
            futures = [send(topic, values[i % 1000]) for i in range(job.records)]
            producer.flush()
            if any(future.exception(0) for future in futures):
                raise RuntimeError("kclient did not deliver everything")
    return Measured(job.records, watch.seconds, watch.cpu_seconds)


def consume(job: Job) -> Measured:
    """Read everything as the only member of a new group."""
    reading = Reading(job.records)
    with KafkaConsumer(
        bootstrap_servers=job.bootstrap_servers,
        group_id=f"{job.topic}-kclient",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        check_crcs=True,
        fetch_max_bytes=FETCH_BYTES,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        max_poll_records=POLL_RECORDS,
    ) as consumer:
        consumer.subscribe([job.topic])
        while not reading.done:
            size = 0
            records = consumer.poll(POLL_MS)
            for record in records:
                size += len(record.value)  # type: ignore[arg-type]  # none of them is null
            reading.take(len(records), size)
    return reading.measured(job.case)
