"""kclient on many partitions of which few have anything new, with its default settings."""

from __future__ import annotations

import uuid

from benchmarks.case import POLL_MS, Job, Measured
from benchmarks.watch import Stopwatch
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer


def subscribe(job: Job) -> Measured:
    """Read as the only member of a new group."""
    with KafkaConsumer(bootstrap_servers=job.bootstrap_servers, group_id=uuid.uuid4().hex) as consumer:
        consumer.subscribe([job.topic])
        return _read(consumer, job)


def assign(job: Job) -> Measured:
    """Read all partitions without a group's help, committing as a group."""
    with KafkaConsumer(bootstrap_servers=job.bootstrap_servers, group_id=uuid.uuid4().hex) as consumer:
        consumer.assign([TopicPartition(job.topic, number) for number in range(job.case.partitions)])
        return _read(consumer, job)


def _read(consumer: KafkaConsumer[bytes, bytes], job: Job) -> Measured:
    _take(consumer, job.warm_up)
    with Stopwatch() as watch:
        taken = _take(consumer, job.records)
    return Measured(taken, watch.seconds, watch.cpu_seconds)


def _take(consumer: KafkaConsumer[bytes, bytes], records: int) -> int:
    count = 0
    while count < records:
        for record in consumer.poll(POLL_MS):
            assert record.value is not None
            count += 1
    return count
