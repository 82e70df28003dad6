"""Checks of what applications pass in: wrong arguments are refused at once, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kclient.common.offset_arguments import checked_partition
from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.topic_name import check_topic
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.group_membership_operation import GroupMembershipOperation
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import IllegalStateError

_MAX_INT64 = 2**63 - 1


def checked_topic(topic: Any, argument: str = "topic") -> str:
    """`topic`, if a topic can have that name; raises TypeError or InvalidTopicError."""
    check_topic(topic, argument)
    return str(topic)


def checked_topics(topics: Any) -> list[str]:
    """Topic names without repeats."""
    return [checked_topic(topic, "topics") for topic in _distinct("topics", topics)]


def checked_partitions(partitions: Any) -> list[TopicPartition]:
    """Partitions without repeats."""
    return [checked_partition(tp, "partitions") for tp in _distinct("partitions", partitions)]


def checked_assignment(partitions: Any) -> tuple[list[TopicPartition], dict[str, Uuid]]:
    """Partitions without repeats, and the ids of their topics where they are given."""
    topic_ids: dict[str, Uuid] = {}
    names: dict[TopicPartition, None] = {}
    for given in _distinct("partitions", partitions):
        if not isinstance(given, TopicIdPartition):
            names[checked_partition(given, "partitions")] = None
            continue
        names[checked_partition(given.topic_partition, "partitions")] = None
        if topic_ids.setdefault(given.topic, given.topic_id) != given.topic_id:
            raise ValueError(
                f"partitions: {given.topic} is given with two ids, {topic_ids[given.topic]} and {given.topic_id}"
            )
    return list(names), topic_ids


def _distinct(argument: str, given: Any) -> list[Any]:
    # A single name is a collection, too: of names of one letter each.
    if isinstance(given, (str, bytes, TopicPartition, TopicIdPartition)):
        raise TypeError(f"{argument} must be a collection; did you mean [{given!r}]?")
    if not isinstance(given, Iterable):
        raise TypeError(f"{argument} must be a collection, not {given!r}")
    try:
        return list(dict.fromkeys(given))
    except TypeError as error:
        raise TypeError(f"{argument}: an entry is not what is expected here ({error})") from None


def checked_assigned(
    partitions: Iterable[TopicPartition] | None, held: Collection[TopicPartition]
) -> list[TopicPartition]:
    """Partitions that are `held`, all of them for None; raises IllegalStateError for others."""
    if partitions is None:
        return sorted(held)
    chosen = checked_partitions(partitions)
    for tp in chosen:
        if tp not in held:
            raise IllegalStateError(f"{tp} is not assigned to this consumer")
    return chosen


def checked_operation(operation: Any) -> GroupMembershipOperation:
    """`operation`; raises TypeError if it is none."""
    if not isinstance(operation, GroupMembershipOperation):
        names = ", ".join(map(str, GroupMembershipOperation))
        raise TypeError(f"group_membership_operation must be one of {names}, not {operation!r}")
    return operation


def checked_timeout(timeout_ms: Any, default_ms: int) -> int:
    """`timeout_ms`, or the default for None; not negative."""
    if timeout_ms is None:
        return default_ms
    if not isinstance(timeout_ms, int) or isinstance(timeout_ms, bool):
        raise TypeError(f"timeout_ms is a whole number of milliseconds, not {timeout_ms!r}")
    if timeout_ms < 0:
        raise ValueError(f"timeout_ms must not be negative, not {timeout_ms}")
    return timeout_ms


def check_listener(listener: Any) -> None:
    """Raise TypeError for what is no listener of rebalances, nor None."""
    if listener is not None and not isinstance(listener, ConsumerRebalanceListener):
        raise TypeError(f"listener must be a ConsumerRebalanceListener, not {listener!r}")


def check_callback(on_commit: Any) -> None:
    """Raise TypeError for what cannot be called, nor is None."""
    if on_commit is not None and not callable(on_commit):
        raise TypeError(f"on_commit must be callable, not {on_commit!r}")


def checked_reason(reason: Any) -> str:
    """Return the reason of a rebalance."""
    if not isinstance(reason, str):
        raise TypeError(f"reason must be a str, not {reason!r}")
    return reason


def checked_timestamps(timestamps: Any) -> dict[TopicPartition, int]:
    """Times to look up, in ms since the epoch."""
    if not isinstance(timestamps, Mapping):
        raise TypeError(f"timestamps must map each TopicPartition to a time, not be {timestamps!r}")
    for tp, timestamp in timestamps.items():
        checked_partition(tp, "timestamps")
        if not isinstance(timestamp, int) or isinstance(timestamp, bool):
            raise TypeError(f"timestamps: {tp} needs a whole number of milliseconds, not {timestamp!r}")
        if not 0 <= timestamp <= _MAX_INT64:
            raise ValueError(f"timestamps: {timestamp} for {tp} is no time in ms since the epoch")
    return dict(timestamps)


def checked_max_records(max_records: Any) -> int | None:
    """Return the number of records that may come at once, if it is a number above 0; None for any number."""
    if max_records is None:
        return None
    if not isinstance(max_records, int) or isinstance(max_records, bool):
        raise TypeError(f"max_records is a number, not {max_records!r}")
    if max_records < 1:
        raise ValueError(f"max_records must be 1 at least, not {max_records}")
    return min(max_records, _MAX_INT64)
