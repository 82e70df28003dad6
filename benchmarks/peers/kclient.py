"""kclient, with the body that KCLIENT_IMPL names."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.case import (
    FETCH_BYTES,
    IN_FLIGHT,
    LINGER_MS,
    PARTITION_FETCH_BYTES,
    POLL_MS,
    Job,
    Measured,
    UnavailableError,
)
from benchmarks.watch import SAMPLED_EVERY, Reading, Stopwatch, busy_turns, round_trips, with_latencies
from kclient.consumer import KafkaConsumer
from kclient.errors import KafkaError
from kclient.producer import KafkaProducer, RecordMetadata


def produce(job: Job) -> Measured:
    """Send everything and wait until it is acknowledged."""
    values = job.case.values()
    topic = job.topic
    with new_producer(job, LINGER_MS) as producer:
        producer.partitions_for(topic)
        with Stopwatch() as watch:
            send = producer.send
            futures = [send(topic, values[i % 1000]) for i in range(job.records)]
            producer.flush()
            check(futures)
    return Measured(job.records, watch.seconds, watch.cpu_seconds)


def consume(job: Job) -> Measured:
    """Read everything as the only member of a new group, as objects."""
    reading = Reading.of(job)
    with new_consumer(job) as consumer:
        value: bytes | None = None
        while not reading.done:
            size = 0
            records = consumer.poll(POLL_MS)
            for record in records:
                value = record.value
                size += len(value)  # type: ignore[arg-type]  # none of them is null
            reading.take(len(records), size, value)
    return reading.measured(job)


def columns(job: Job) -> Measured:
    """Read everything as columns."""
    reading = Reading.of(job)
    with new_consumer(job) as consumer:
        last: bytes | None = None
        while not reading.done:
            count = size = 0
            for part in consumer.poll_columns(POLL_MS, _part_of(job)).values():
                count += part.count
                size += part.values.offsets[part.count]
                last = part.values[-1]
            reading.take(count, size, last)
    return reading.measured(job)


def arrow(job: Job) -> Measured:
    """Read everything as Arrow record batches."""
    try:
        import pyarrow.compute  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise UnavailableError("pyarrow is not installed") from None
    reading = Reading.of(job)
    with new_consumer(job) as consumer:
        while not reading.done:
            batch = consumer.poll_arrow(POLL_MS, max_records=_part_of(job))
            if not batch.num_rows:
                reading.take(0, 0, None)
                continue
            values = batch.column("value")
            size = pyarrow.compute.sum(pyarrow.compute.binary_length(values)).as_py()
            reading.take(batch.num_rows, size, values[-1].as_py())
    return reading.measured(job)


def round_trip(job: Job) -> Measured:
    """One record at a time, without linger."""
    with new_producer(job, 0) as producer:
        return round_trips(job, lambda value: producer.send(job.topic, value).result(60))


def busy(job: Job) -> Measured:
    """A thread that computes sends at a steady rate; the latency is from `send()` to the callback."""
    values = job.case.values()
    topic = job.topic
    clock = time.perf_counter
    taken_s: list[float] = []

    def timed(value: bytes) -> Any:
        sent_s = clock()

        def delivered(_metadata: RecordMetadata, _error: KafkaError | None) -> None:
            taken_s.append(clock() - sent_s)

        return send(topic, value, on_delivery=delivered)

    with new_producer(job, 0) as producer:
        send = producer.send
        send(topic, values[0]).result(60)
        futures = []
        with Stopwatch() as watch:
            for i in busy_turns(job.records):
                value = values[i % 1000]
                futures.append(send(topic, value) if i % SAMPLED_EVERY else timed(value))
        producer.flush()
        check(futures)
    return with_latencies(job.records, watch, taken_s)


def new_producer(job: Job, linger_ms: int) -> KafkaProducer[bytes, bytes]:
    """With the settings that all peers have."""
    return KafkaProducer(
        {"compression.type": job.case.codec, **_security(job)},
        bootstrap_servers=job.bootstrap_servers,
        acks="all",
        enable_idempotence=True,
        max_in_flight_requests_per_connection=IN_FLIGHT,
        batch_size=job.case.batch_bytes,
        linger_ms=linger_ms,
    )


def new_consumer(job: Job) -> KafkaConsumer[bytes, bytes]:
    """With the settings that all peers have, subscribed to the topic."""
    consumer = KafkaConsumer(
        _security(job),
        bootstrap_servers=job.bootstrap_servers,
        group_id=f"{job.topic}-{job.operation}-kclient",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        check_crcs=True,
        fetch_max_bytes=FETCH_BYTES,
        max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
        max_poll_records=job.poll_records,
    )
    consumer.subscribe([job.topic])
    return consumer


def _security(job: Job) -> dict[str, str]:
    if not job.authority:
        return {}
    return {"security.protocol": "SSL", "ssl.truststore.location": job.authority}


def _part_of(job: Job) -> int:
    """More than a fetch holds, but in a short trial not all there is: the clock starts with the second part."""
    return max(job.records // 10, 1)


def check(futures: list[Any]) -> None:
    """Raise RuntimeError unless all of them are delivered."""
    for future in futures:
        if future.exception(0) is not None:
            raise RuntimeError(f"kclient did not deliver everything: {future.exception(0)}")
