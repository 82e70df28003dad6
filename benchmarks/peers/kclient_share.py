"""kclient as the only member of a share group, with its default settings."""

from __future__ import annotations

from benchmarks.case import POLL_MS, Job, Measured
from benchmarks.share_groups import new_share_group
from benchmarks.watch import Stopwatch
from kclient.consumer import KafkaShareConsumer


def implicit(job: Job) -> Measured:
    """Accept what was returned with the next poll."""
    return _read(job, "implicit")


def explicit(job: Job) -> Measured:
    """Acknowledge every record."""
    return _read(job, "explicit")


def _read(job: Job, mode: str) -> Measured:
    with KafkaShareConsumer(
        bootstrap_servers=job.bootstrap_servers,
        group_id=new_share_group(job.bootstrap_servers),
        share_acknowledgement_mode=mode,
    ) as consumer:
        consumer.subscribe([job.topic])
        _take(consumer, job.warm_up, mode == "explicit")
        with Stopwatch() as watch:
            taken = _take(consumer, job.records, mode == "explicit")
            consumer.commit_sync()
    return Measured(taken, watch.seconds, watch.cpu_seconds)


def _take(consumer: KafkaShareConsumer[bytes, bytes], records: int, explicit: bool) -> int:
    count = 0
    while count < records:
        for record in consumer.poll(POLL_MS):
            if explicit:
                consumer.acknowledge(record)
            count += 1
    return count
