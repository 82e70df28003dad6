"""Health of a producer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kclient.client.health import ClientHealth, common_health, connection_reasons
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
    requests_in_flight: int
    """Requests that wait for an answer."""


def health_of(core: ProducerCore) -> ProducerHealth:
    """Return how the producer stands. For any thread."""
    queued = core.accumulator.queued
    pool = queued.pool
    reasons = connection_reasons(core.client)
    if core.sender.closing:
        reasons.insert(0, "The producer is closed")
    elif not core.io_thread.alive:
        reasons.insert(
            0, "The I/O thread has ended, so nothing is delivered; the log says why. Create a new producer"
        )
    elif pool.waiting:
        reasons.append(
            f"Records wait for memory in {counted(pool.waiting, 'call')} of send() (buffer.memory)"
        )
    return ProducerHealth(
        **common_health(core.config.client_id, core.client, core.metadata, core.time.monotonic_ms()),
        reasons=tuple(reasons),
        buffer_total_bytes=pool.total,
        buffer_available_bytes=pool.available,
        waiting_threads=pool.waiting,
        undelivered_records=core.io_thread.undelivered,
        requests_in_flight=core.client.in_flight_count(),
    )
