"""confluent-kafka on many partitions of which few have anything new, with its default settings."""

from __future__ import annotations

import uuid
from typing import Any

import confluent_kafka

from benchmarks.case import POLL_MS, Job, Measured
from benchmarks.watch import Stopwatch


def subscribe(job: Job) -> Measured:
    """Read as the only member of a new group."""
    consumer = _consumer(job)
    consumer.subscribe([job.topic])
    return _read(consumer, job)


def assign(job: Job) -> Measured:
    """Read all partitions without a group's help, committing as a group."""
    consumer = _consumer(job)
    consumer.assign(
        [confluent_kafka.TopicPartition(job.topic, number) for number in range(job.case.partitions)]
    )
    return _read(consumer, job)


def _consumer(job: Job) -> Any:
    return confluent_kafka.Consumer(
        {"bootstrap.servers": job.bootstrap_servers, "group.id": uuid.uuid4().hex}
    )


def _read(consumer: Any, job: Job) -> Measured:
    try:
        _take(consumer, job.warm_up)
        with Stopwatch() as watch:
            taken = _take(consumer, job.records)
    finally:
        consumer.close()
    return Measured(taken, watch.seconds, watch.cpu_seconds)


def _take(consumer: Any, records: int) -> int:
    count = 0
    while count < records:
        message = consumer.poll(POLL_MS / 1000)
        if message is not None and message.error() is None:
            assert message.value() is not None
            count += 1
    return count
