"""Health of a producer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kclient.client.health import ClientHealth, common_health, connection_reasons
from kclient.producer.internals.producer_batch import BatchState
from kclient.utils.text import counted

if TYPE_CHECKING:
    from kclient.producer.internals.assembly import ProducerCore


@attrs.frozen(kw_only=True)
class ProducerHealth(ClientHealth):
    """State of a producer at one moment. Immutable; taking it asks no broker and waits for nothing."""

    buffer_total_bytes: int
    """`buffer.memory`."""
    buffer_available_bytes: int
    """Bytes of it that no record has."""
    waiting_threads: int
    """Threads that wait for memory in `send()`."""
    undelivered_records: int
    """Records that were sent and have no outcome yet."""
    records_queued: int
    """Those of them that wait to be sent, or to be sent again."""
    records_in_flight: int
    """Those of them that a request carries."""
    oldest_batch_age_ms: int | None
    """Milliseconds since the oldest batch without an outcome was begun, None if there is none."""
    requests_in_flight: int
    """Requests that wait for an answer."""


def health_of(core: ProducerCore) -> ProducerHealth:
    """Return how the producer stands. For any thread."""
    queued = core.accumulator.queued
    pool = queued.pool
    now_ms = core.time.monotonic_ms()
    full_since_ms = pool.full_since_ms
    full_ms = 0 if full_since_ms is None else now_ms - full_since_ms
    fields = common_health(core.config.client_id, core.client, core.metadata, now_ms)
    reasons = connection_reasons(core.client, fields["connections"])
    if core.sender.closing:
        reasons.insert(0, "The producer is closed")
    elif not core.io_thread.alive:
        reasons.insert(
            0, "The I/O thread has ended, so nothing is delivered; the log says why. Create a new producer"
        )
    elif full_ms > core.config.max_block_ms:
        reasons.append(
            f"No memory came free for {full_ms} ms (max.block.ms): {pool.available} of {pool.total} bytes "
            f"(buffer.memory) are free, and {counted(pool.waiting, 'call')} of send() wait"
        )
    records = {BatchState.QUEUED: 0, BatchState.IN_FLIGHT: 0}
    oldest = queued.incomplete.oldest()
    for batch in queued.incomplete.snapshot():
        state = batch.state
        if state in records:
            records[state] += batch.builder.count
    return ProducerHealth(
        **fields,
        reasons=tuple(reasons),
        buffer_total_bytes=pool.total,
        buffer_available_bytes=pool.available,
        waiting_threads=pool.waiting,
        undelivered_records=core.io_thread.undelivered,
        records_queued=records[BatchState.QUEUED],
        records_in_flight=records[BatchState.IN_FLIGHT],
        oldest_batch_age_ms=None if oldest is None else max(now_ms - oldest.created_ms, 0),
        requests_in_flight=core.client.in_flight_count(),
    )
