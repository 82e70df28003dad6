"""kclient as people write it, with its default settings where nothing else is said."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from typing import Any

from benchmarks.case import IN_FLIGHT, LINGER_MS, POLL_MS, Job, Measured
from benchmarks.shapes import FIRST_MS, HEADERS, IN_TRANSACTION, KEYS, PARTITIONS, SENDING, order
from benchmarks.watch import Reading, Stopwatch
from kclient.consumer import KafkaConsumer
from kclient.producer import KafkaProducer


def shape(job: Job) -> Measured:
    """Send or read everything in the way that the operation names."""
    return _send(job) if job.operation in SENDING else _read(job)


def _send(job: Job) -> Measured:
    values = job.case.values()
    settings: dict[str, Any] = {}
    if job.operation == "send_str_key":
        settings["key_serializer"] = str.encode
    if job.operation == "send_json":
        settings["value_serializer"] = lambda value: json.dumps(value).encode()
    if job.operation == "send_transactions":
        settings["transactional_id"] = f"bench-{uuid.uuid4().hex}"
    producer: KafkaProducer[Any, Any] = KafkaProducer(
        bootstrap_servers=job.bootstrap_servers,
        acks="all",
        max_in_flight_requests_per_connection=IN_FLIGHT,
        batch_size=job.case.batch_bytes,
        linger_ms=LINGER_MS,
        **settings,
    )
    with producer:
        producer.partitions_for(job.topic)
        if job.operation == "send_transactions":
            producer.init_transactions()
        with Stopwatch() as watch:
            _SENDERS[job.operation](producer, job.topic, values, job.records)
            producer.flush()
        failed = sum(value for name, value in producer.metrics().items() if name.name == "record-error-total")
    if failed:
        raise RuntimeError(f"kclient did not deliver {failed} records")
    return Measured(job.records, watch.seconds, watch.cpu_seconds)


def _plain(producer: Any, topic: str, values: list[bytes], records: int) -> None:
    send = producer.send
    for i in range(records):
        send(topic, values[i % 1000])


def _key(producer: Any, topic: str, values: list[bytes], records: int) -> None:
    send = producer.send
    keys = [b"key-%d" % i for i in range(KEYS)]
    for i in range(records):
        send(topic, values[i % 1000], key=keys[i % KEYS])


def _threads(producer: Any, topic: str, values: list[bytes], records: int) -> None:
    threads = [
        threading.Thread(target=_plain, args=(producer, topic, values, records // 4 + (i < records % 4)))
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _str_key(producer: Any, topic: str, values: list[bytes], records: int) -> None:
    send = producer.send
    keys = [f"key-{i}" for i in range(KEYS)]
    for i in range(records):
        send(topic, values[i % 1000], key=keys[i % KEYS])


def _headers(producer: Any, topic: str, values: list[bytes], records: int) -> None:
    send = producer.send
    keys = [b"key-%d" % i for i in range(KEYS)]
    for i in range(records):
        send(topic, values[i % 1000], key=keys[i % KEYS], headers=HEADERS)


def _partition(producer: Any, topic: str, values: list[bytes], records: int) -> None:
    send = producer.send
    for i in range(records):
        send(topic, values[i % 1000], partition=i % PARTITIONS)


def _timestamp(producer: Any, topic: str, values: list[bytes], records: int) -> None:
    send = producer.send
    for i in range(records):
        send(topic, values[i % 1000], timestamp_ms=FIRST_MS + i // 1000)


def _callback(producer: Any, topic: str, values: list[bytes], records: int) -> None:
    send = producer.send
    keys = [b"key-%d" % i for i in range(KEYS)]
    delivered = 0

    def on_delivery(_metadata: Any, error: Any) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1

    for i in range(records):
        send(topic, values[i % 1000], key=keys[i % KEYS], on_delivery=on_delivery)


def _json(producer: Any, topic: str, _values: list[bytes], records: int) -> None:
    send = producer.send
    for i in range(records):
        send(topic, order(i))


def _results(producer: Any, topic: str, values: list[bytes], records: int) -> None:
    send = producer.send
    futures = [send(topic, values[i % 1000]) for i in range(records)]
    for future in futures:
        future.result(60)


def _transactions(producer: Any, topic: str, values: list[bytes], records: int) -> None:
    send = producer.send
    for first in range(0, records, IN_TRANSACTION):
        with producer.transaction():
            for i in range(first, min(first + IN_TRANSACTION, records)):
                send(topic, values[i % 1000])


_SENDERS: dict[str, Callable[[Any, str, list[bytes], int], None]] = {
    "send": _plain,
    "send_key": _key,
    "send_threads": _threads,
    "send_str_key": _str_key,
    "send_headers": _headers,
    "send_partition": _partition,
    "send_timestamp": _timestamp,
    "send_callback": _callback,
    "send_json": _json,
    "send_results": _results,
    "send_transactions": _transactions,
}


def _read(job: Job) -> Measured:
    reading = Reading.of(job)
    with KafkaConsumer(
        bootstrap_servers=job.bootstrap_servers,
        group_id=f"{job.topic}-{uuid.uuid4().hex}",
        auto_offset_reset="earliest",
        enable_auto_commit=job.operation == "poll_commit",
    ) as consumer:
        consumer.subscribe([job.topic])
        if job.operation.startswith("iterate"):
            _iterate(consumer, reading)
        else:
            _poll(consumer, reading)
    return reading.measured(job)


def _iterate(consumer: KafkaConsumer[bytes, bytes], reading: Reading) -> None:
    count = size = 0
    for record in consumer:
        value = record.value
        size += len(value)  # type: ignore[arg-type]  # none of them is null
        count += 1
        if count == 500:
            reading.take(count, size, value)
            if reading.done:
                break
            count = size = 0


def _poll(consumer: KafkaConsumer[bytes, bytes], reading: Reading) -> None:
    value: bytes | None = None
    while not reading.done:
        size = 0
        records = consumer.poll(POLL_MS)
        for record in records:
            value = record.value
            if record.key is None and not record.headers and record.timestamp_ms:
                size += len(value)  # type: ignore[arg-type]  # none of them is null
        reading.take(len(records), size, value)
