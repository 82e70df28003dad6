"""Health of a consumer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from kclient.client.health import ClientHealth, common_health, connection_reasons
from kclient.common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kclient.consumer.internals.consumer_core import ConsumerCore


_SESSION_TIMEOUT = {
    "classic": "session.timeout.ms",
    "consumer": "group.consumer.session.timeout.ms of the broker, if that is its default",
}


@attrs.frozen(kw_only=True)
class ConsumerHealth(ClientHealth):
    """State of a consumer at one moment. Immutable; taking it asks no broker and waits for nothing."""

    group_id: str | None
    member_state: str | None
    """`stable`, `joining` and the like; None without a group that assigns the partitions."""
    last_heartbeat_ms: int | None
    """Milliseconds since the coordinator let the member join or live on; None before, and without such a group."""
    last_poll_ms: int | None
    """Milliseconds since the application polled, or took a record from a loop; None without such a group."""
    max_poll_interval_ms: int
    """The most that `last_poll_ms` may be (`max.poll.interval.ms`)."""
    assignment_age_ms: int | None
    """Milliseconds since partitions were assigned or taken away last, None while there are none."""
    lag: Mapping[TopicPartition, int | None]
    """The partitions assigned, with the records up to the end that was last seen; None while that is not known."""


def health_of(core: ConsumerCore, *, closed: bool) -> ConsumerHealth:
    """Return how the consumer stands. For any thread."""
    now_ms = core.time.monotonic_ms()
    config = core.config
    client = core.network.client
    fields = common_health(config.client_id, client, core.metadata, now_ms)
    reasons = connection_reasons(client, fields["connections"])
    membership = core.membership if core.subscription.has_auto_assigned_partitions() else None
    state = heartbeat_ms = poll_ms = None
    if closed:
        reasons.insert(0, "The consumer is closed")
    elif core.network.ended:
        reasons.insert(
            0, "The I/O thread has ended, so nothing is read; the log says why. Create a new consumer"
        )
    elif core.queue.final_error is not None:
        reasons.append(str(core.queue.final_error))
    elif membership is not None:
        heartbeat = membership.heartbeat
        state = membership.state_name
        heartbeat_ms, poll_ms = heartbeat.since_answer_ms(now_ms), heartbeat.since_poll_ms(now_ms)
        if poll_ms >= config.max_poll_interval_ms:
            reasons.append(
                f"The application has not polled for {poll_ms} ms, so its partitions go to other members "
                "(max.poll.interval.ms)"
            )
        elif (
            membership.expects_heartbeats
            and heartbeat_ms is not None
            and heartbeat_ms >= config.session_timeout_ms
        ):
            reasons.append(
                f"The group's coordinator has not answered for {heartbeat_ms} ms, so the partitions may be with other "
                f"members ({_SESSION_TIMEOUT[membership.PROTOCOL]})"
            )
    committed_only = config.isolation_level == "read_committed"
    return ConsumerHealth(
        **fields,
        reasons=tuple(reasons),
        group_id=config.group_id,
        member_state=state,
        last_heartbeat_ms=heartbeat_ms,
        last_poll_ms=poll_ms,
        max_poll_interval_ms=config.max_poll_interval_ms,
        assignment_age_ms=max(now_ms - core.assigned_ms, 0) if core.assigned.by_partition else None,
        lag={tp: each.lag(committed_only) for tp, each in core.assigned.by_partition.items()},
    )
