"""confluent-kafka as people write the same, with a queue that holds all of it and callbacks served now and then."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from typing import Any

import confluent_kafka

from benchmarks.case import IN_FLIGHT, LINGER_MS, POLL_MS, Job, Measured
from benchmarks.shapes import FIRST_MS, HEADERS, IN_TRANSACTION, KEYS, PARTITIONS, SENDING, order
from benchmarks.watch import Reading, Stopwatch

# Room for everything, as waiting for room costs a program more than having it.
_QUEUE_RECORDS = 10_000_000
_QUEUE_KBYTES = 2_097_151
_REPORTS_EVERY = 1000
_TUNED = {"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 10}


def shape(job: Job) -> Measured:
    """Send or read everything in the way that the operation names."""
    return _send(job) if job.operation in SENDING else _read(job)


def _send(job: Job) -> Measured:
    values = job.case.values()
    transactional = job.operation == "send_transactions"
    producer = confluent_kafka.Producer(
        {
            **({"transactional.id": f"bench-{uuid.uuid4().hex}"} if transactional else {}),
            "bootstrap.servers": job.bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "max.in.flight.requests.per.connection": IN_FLIGHT,
            "batch.size": job.case.batch_bytes,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": _QUEUE_RECORDS,
            "queue.buffering.max.kbytes": _QUEUE_KBYTES,
        }
    )
    producer.list_topics(job.topic)
    if transactional:
        producer.init_transactions()

    failures: list[Any] = []
    delivered = 0

    def on_delivery(error: Any, _message: Any) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1
        else:
            failures.append(error)

    with Stopwatch() as watch:
        _SENDERS[job.operation](producer, on_delivery, job.topic, values, job.records)
        left = producer.flush(60)
    if failures or left:
        raise RuntimeError(f"confluent-kafka did not deliver everything: {failures[:1]}, {left} left")
    return Measured(job.records, watch.seconds, watch.cpu_seconds)


def _plain(producer: Any, _told: Any, topic: str, values: list[bytes], records: int) -> None:
    produce = producer.produce
    for i in range(records):
        produce(topic, values[i % 1000])
        if i % _REPORTS_EVERY == 0:
            producer.poll(0)


def _key(producer: Any, _told: Any, topic: str, values: list[bytes], records: int) -> None:
    produce = producer.produce
    keys = [b"key-%d" % i for i in range(KEYS)]
    for i in range(records):
        produce(topic, values[i % 1000], key=keys[i % KEYS])
        if i % _REPORTS_EVERY == 0:
            producer.poll(0)


def _threads(producer: Any, told: Any, topic: str, values: list[bytes], records: int) -> None:
    threads = [
        threading.Thread(
            target=_plain, args=(producer, told, topic, values, records // 4 + (i < records % 4))
        )
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _str_key(producer: Any, _told: Any, topic: str, values: list[bytes], records: int) -> None:
    produce = producer.produce
    keys = [f"key-{i}" for i in range(KEYS)]
    for i in range(records):
        produce(topic, values[i % 1000], key=keys[i % KEYS])
        if i % _REPORTS_EVERY == 0:
            producer.poll(0)


def _headers(producer: Any, _told: Any, topic: str, values: list[bytes], records: int) -> None:
    produce = producer.produce
    keys = [b"key-%d" % i for i in range(KEYS)]
    for i in range(records):
        produce(topic, values[i % 1000], key=keys[i % KEYS], headers=HEADERS)
        if i % _REPORTS_EVERY == 0:
            producer.poll(0)


def _partition(producer: Any, _told: Any, topic: str, values: list[bytes], records: int) -> None:
    produce = producer.produce
    for i in range(records):
        produce(topic, values[i % 1000], partition=i % PARTITIONS)
        if i % _REPORTS_EVERY == 0:
            producer.poll(0)


def _timestamp(producer: Any, _told: Any, topic: str, values: list[bytes], records: int) -> None:
    produce = producer.produce
    for i in range(records):
        produce(topic, values[i % 1000], timestamp=FIRST_MS + i // 1000)
        if i % _REPORTS_EVERY == 0:
            producer.poll(0)


def _callback(producer: Any, told: Any, topic: str, values: list[bytes], records: int) -> None:
    produce = producer.produce
    keys = [b"key-%d" % i for i in range(KEYS)]
    for i in range(records):
        produce(topic, values[i % 1000], key=keys[i % KEYS], on_delivery=told)
        if i % _REPORTS_EVERY == 0:
            producer.poll(0)


def _json(producer: Any, _told: Any, topic: str, _values: list[bytes], records: int) -> None:
    produce = producer.produce
    for i in range(records):
        produce(topic, json.dumps(order(i)).encode())
        if i % _REPORTS_EVERY == 0:
            producer.poll(0)


def _results(producer: Any, told: Any, topic: str, values: list[bytes], records: int) -> None:
    produce = producer.produce
    # It has no futures: who wants to know of each record gives a callback.
    for i in range(records):
        produce(topic, values[i % 1000], on_delivery=told)
        if i % _REPORTS_EVERY == 0:
            producer.poll(0)


def _transactions(producer: Any, _told: Any, topic: str, values: list[bytes], records: int) -> None:
    produce = producer.produce
    for first in range(0, records, IN_TRANSACTION):
        producer.begin_transaction()
        for i in range(first, min(first + IN_TRANSACTION, records)):
            produce(topic, values[i % 1000])
            if i % _REPORTS_EVERY == 0:
                producer.poll(0)
        producer.commit_transaction()


_SENDERS: dict[str, Callable[[Any, Any, str, list[bytes], int], None]] = {
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
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": job.bootstrap_servers,
            "group.id": f"{job.topic}-{uuid.uuid4().hex}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": job.operation == "poll_commit",
            "check.crcs": True,
            **_TUNED,
        }
    )
    consumer.subscribe([job.topic])
    if job.operation == "iterate_singly":
        _one_by_one(consumer, reading)
    else:
        _many(consumer, reading, job)
    consumer.close()
    return reading.measured(job)


def _one_by_one(consumer: Any, reading: Reading) -> None:
    count = size = 0
    while True:
        message = consumer.poll(POLL_MS / 1000)
        if message is None:
            continue
        value = message.value()
        size += len(value)
        count += 1
        if count == 500:
            reading.take(count, size, value)
            if reading.done:
                return
            count = size = 0


def _many(consumer: Any, reading: Reading, job: Job) -> None:
    all_of_it = job.operation.startswith("poll")
    value = None
    while not reading.done:
        messages = consumer.consume(job.poll_records, POLL_MS / 1000)
        size = 0
        for message in messages:
            value = message.value()
            if not all_of_it or (message.key() is None and not message.headers() and message.timestamp()):
                size += len(value)
        reading.take(len(messages), size, value)
