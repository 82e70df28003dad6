"""Checks of what applications pass in: wrong arguments are refused at once, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import InvalidTopicError

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def checked_topic(topic: Any) -> str:
    """`topic`, if a topic can have that name; raises TypeError or InvalidTopicError."""
    if not isinstance(topic, str):
        raise TypeError(f"a topic's name is text, not {topic!r}")
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise InvalidTopicError(
            f"{topic!r} cannot be a topic: 1 to 249 letters, digits, dots, underscores and dashes are allowed"
        )
    return topic


def checked_topics(topics: Any) -> list[str]:
    """Topic names without repeats."""
    if isinstance(topics, str):
        raise TypeError(f"subscribe() takes a collection of topics; did you mean [{topics!r}]?")
    return [checked_topic(topic) for topic in dict.fromkeys(topics)]


def checked_partition(tp: Any) -> TopicPartition:
    """`tp`, if it can exist."""
    if not isinstance(tp, TopicPartition):
        raise TypeError(f"a TopicPartition is needed, not {tp!r}")
    checked_topic(tp.topic)
    number: Any = tp.partition
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"{tp!r} cannot be a partition")
    return tp


def checked_partitions(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Partitions without repeats."""
    if isinstance(cast(object, partitions), TopicPartition):
        raise TypeError(f"a collection of TopicPartition is needed; did you mean [{partitions!r}]?")
    return [checked_partition(tp) for tp in dict.fromkeys(partitions)]


def checked_timeout(timeout_ms: Any, default_ms: int) -> int:
    """`timeout_ms`, or the default for None; not negative."""
    if timeout_ms is None:
        return default_ms
    if not isinstance(timeout_ms, int) or isinstance(timeout_ms, bool):
        raise TypeError(f"timeout_ms is a whole number of milliseconds, not {timeout_ms!r}")
    if timeout_ms < 0:
        raise ValueError(f"timeout_ms must not be negative, not {timeout_ms}")
    return timeout_ms


def checked_offset(offset: Any) -> OffsetAndMetadata:
    """An offset given as a number or with metadata."""
    if isinstance(offset, OffsetAndMetadata):
        return offset
    if not isinstance(offset, int) or isinstance(offset, bool):
        raise TypeError(f"an offset is a whole number or an OffsetAndMetadata, not {offset!r}")
    return OffsetAndMetadata(offset)


def checked_offsets(offsets: Mapping[TopicPartition, Any]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit."""
    return {checked_partition(tp): checked_offset(offset) for tp, offset in offsets.items()}


def checked_timestamps(timestamps: Mapping[TopicPartition, Any]) -> dict[TopicPartition, int]:
    """Times to look up, in ms since the epoch."""
    for tp, timestamp in timestamps.items():
        checked_partition(tp)
        if not isinstance(timestamp, int) or isinstance(timestamp, bool):
            raise TypeError(f"{tp}: a timestamp is a whole number of milliseconds, not {timestamp!r}")
        if timestamp < 0:
            raise ValueError(f"{tp}: a timestamp must not be negative, not {timestamp}")
    return dict(timestamps)
