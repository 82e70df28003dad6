"""aiokafka. It has one batch in flight for each partition; that cannot be set."""

from __future__ import annotations

import asyncio
import time

import aiokafka  # type: ignore[import-untyped]

from benchmarks.case import FETCH_BYTES, LINGER_MS, PARTITION_FETCH_BYTES, POLL_MS, Job, Measured
from benchmarks.watch import WARM_UP_ROUND_TRIPS, Reading, Stopwatch, with_latencies


def produce(job: Job) -> Measured:
    """Send everything and wait until it is acknowledged."""
    return asyncio.run(_produce(job))


def consume(job: Job) -> Measured:
    """Read everything as the only member of a new group."""
    return asyncio.run(_consume(job))


def round_trip(job: Job) -> Measured:
    """One record at a time, without linger."""
    return asyncio.run(_round_trip(job))


async def _produce(job: Job) -> Measured:
    values = job.case.values()
    topic = job.topic
    producer = _producer(job, LINGER_MS)
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
    reading = Reading.of(job)
    consumer = aiokafka.AIOKafkaConsumer(
        job.topic,
        bootstrap_servers=job.bootstrap_servers,
        group_id=f"{job.topic}-aiokafka",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        check_crcs=True,
        fetch_max_bytes=FETCH_BYTES,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        max_poll_records=job.poll_records,
    )
    await consumer.start()
    value = None
    while not reading.done:
        count = size = 0
        for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
            count += len(records)
            for record in records:
                value = record.value
                size += len(value)
        reading.take(count, size, value)
    await consumer.stop()
    return reading.measured(job)


async def _round_trip(job: Job) -> Measured:
    values = job.case.values()
    topic = job.topic
    producer = _producer(job, 0)
    await producer.start()
    for i in range(WARM_UP_ROUND_TRIPS):
        await producer.send_and_wait(topic, values[i % 1000])
    clock = time.perf_counter
    taken_s = []
    with Stopwatch() as watch:
        for i in range(job.records):
            started_s = clock()
            await producer.send_and_wait(topic, values[i % 1000])
            taken_s.append(clock() - started_s)
    await producer.stop()
    return with_latencies(job.records, watch, taken_s)


def _producer(job: Job, linger_ms: int) -> aiokafka.AIOKafkaProducer:
    return aiokafka.AIOKafkaProducer(
        bootstrap_servers=job.bootstrap_servers,
        acks="all",
        enable_idempotence=True,
        max_batch_size=job.case.batch_bytes,
        linger_ms=linger_ms,
        compression_type=None if job.case.codec == "none" else job.case.codec,
    )
