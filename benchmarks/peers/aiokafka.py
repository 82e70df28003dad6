"""aiokafka. It has one batch in flight for each partition; that cannot be set."""

from __future__ import annotations

import asyncio

import aiokafka  # type: ignore[import-untyped]

from benchmarks.case import (
    BATCH_BYTES,
    FETCH_BYTES,
    LINGER_MS,
    PARTITION_FETCH_BYTES,
    POLL_MS,
    POLL_RECORDS,
    Job,
    Measured,
    Reading,
    Stopwatch,
)


def produce(job: Job) -> Measured:
    """Send everything and wait until it is acknowledged."""
    return asyncio.run(_produce(job))


def consume(job: Job) -> Measured:
    """Read everything as the only member of a new group."""
    return asyncio.run(_consume(job))


async def _produce(job: Job) -> Measured:
    values = job.case.values()
    topic = job.topic
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=job.bootstrap_servers,
        acks="all",
        enable_idempotence=True,
        max_batch_size=BATCH_BYTES,
        linger_ms=LINGER_MS,
        compression_type=None if job.case.codec == "none" else job.case.codec,
    )
    await producer.start()
    await producer.partitions_for(topic)
    with Stopwatch() as watch:
        send = producer.send
        futures = [await send(topic, values[i % 1000]) for i in range(job.records)]
        await producer.flush()
        for future in futures:
            future.result()
    await producer.stop()
    return Measured(job.records, watch.seconds, watch.cpu_seconds)


async def _consume(job: Job) -> Measured:
    reading = Reading(job.records)
    consumer = aiokafka.AIOKafkaConsumer(
        job.topic,
        bootstrap_servers=job.bootstrap_servers,
        group_id=f"{job.topic}-aiokafka",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        check_crcs=True,
        fetch_max_bytes=FETCH_BYTES,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        max_poll_records=POLL_RECORDS,
    )
    await consumer.start()
    while not reading.done:
        count = size = 0
        for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
            count += len(records)
            for record in records:
                size += len(record.value)
        reading.take(count, size)
    await consumer.stop()
    return reading.measured(job.case)
