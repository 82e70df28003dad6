"""confluent-kafka as it is out of the box."""

from __future__ import annotations

from benchmarks.case import Job, Measured
from benchmarks.peers import confluent


def consume(job: Job) -> Measured:
    """Read everything as the only member of a new group."""
    return confluent.consume(job, {})
