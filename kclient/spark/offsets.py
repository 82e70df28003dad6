"""Offsets as Spark's options and checkpoints write them: the JSON of spark-sql-kafka-0-10.

    {"orders": {"0": 23, "1": -1}, "payments": {"0": -2}}

-2 stands for the earliest and -1 for the latest offset. In a checkpoint an offset is the next one to read, and never
one of these two. Topics and partitions are in order, so that equal offsets are equal text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeAlias

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError

EARLIEST = -2
LATEST = -1

Offsets: TypeAlias = dict[TopicPartition, int]
OffsetJson: TypeAlias = dict[str, dict[str, int]]

INITIAL: Mapping[str, str] = {"kclient": "initial"}
"""The initial offset of a stream whose first offsets are not known before its first batch is planned.

Spark asks for the initial offset again whenever the first batch was not finished, and "latest" would be another
offset then. So the stream starts with this mark, which no topic can be confused with, and the offsets that it stands
for become the end of an empty first batch, which is in Spark's log.
"""

_LARGEST = 2**63 - 1
_EXAMPLE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'


class Kind(Enum):
    """The way in which a `Bound` gives the start or end of reading."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSETS = "offsets"
    TIMESTAMP = "timestamp"
    TIMESTAMPS = "timestamps"
    GROUP = "group"


@attrs.frozen
class Bound:
    """The start or end of reading, as the option `option` gave it. Immutable, can be pickled.

    `values` are the offsets (or -1, -2), or the times in ms, of each partition; `timestamp_ms` is the time for all;
    `group_id` names the group whose committed offsets are meant.
    """

    kind: Kind
    option: str
    values: Mapping[TopicPartition, int] = attrs.field(factory=dict)
    timestamp_ms: int = 0
    group_id: str = ""


def is_initial(offset: Mapping[str, Any]) -> bool:
    """Return True if this is the mark for a stream's start."""
    return offset == INITIAL


def to_json(offsets: Mapping[TopicPartition, int]) -> OffsetJson:
    """The offsets as Spark stores them."""
    by_topic: OffsetJson = {}
    for tp in sorted(offsets):
        by_topic.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return by_topic


def from_json(value: Mapping[str, Any]) -> Offsets:
    """The offsets that Spark hands back. Raises ValueError for what `to_json` cannot have made."""
    found = _per_partition(value)
    for tp, offset in found.items():
        if offset < 0:
            raise ValueError(f"{offset} is not an offset to read {tp} from")
    return found


def parse_offsets(option: str, text: str) -> Offsets:
    """The value of an option such as startingOffsets. Raises ConfigError."""
    return _parse(option, text, EARLIEST, f"an offset, {EARLIEST} for earliest or {LATEST} for latest")


def parse_timestamps(option: str, text: str) -> Offsets:
    """The value of an option such as startingOffsetsByTimestamp, in ms since the epoch. Raises ConfigError."""
    return _parse(option, text, 0, "a time in ms since the epoch")


def parse_partitions(option: str, text: str) -> frozenset[TopicPartition]:
    """The value of `assign`, such as `{"topicA":[0,1]}`. Raises ConfigError."""
    value = _object(option, text, '{"topicA":[0,1],"topicB":[2,4]}')
    found: set[TopicPartition] = set()
    for topic, numbers in value.items():
        if not isinstance(numbers, list) or not numbers:
            raise ConfigError(f"{option}: {topic!r} needs a list of partitions, such as [0,1].", name=option)
        for number in numbers:
            if type(number) is not int or number < 0:
                raise ConfigError(f"{option}: {number!r} is not a partition of {topic!r}.", name=option)
            found.add(TopicPartition(topic, number))
    if not found:
        raise ConfigError(f"{option} names no partition.", name=option)
    return frozenset(found)


def _parse(option: str, text: str, lowest: int, what: str) -> Offsets:
    value = _object(option, text, _EXAMPLE)
    try:
        found = _per_partition(value)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}; it looks like {_EXAMPLE}.", name=option) from None
    for tp, number in found.items():
        if not lowest <= number <= _LARGEST:
            raise ConfigError(f"{option}: {number} for {tp} is not {what}.", name=option)
    if not found:
        raise ConfigError(f"{option} names no partition.", name=option)
    return found


def _object(option: str, text: str, example: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ConfigError(f"{option}: {text!r} is not a JSON object such as {example}.", name=option)
    return value


def _per_partition(value: Mapping[str, Any]) -> Offsets:
    found: Offsets = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict):
            raise ValueError(f"{topic!r} needs an object of partitions and numbers, not {partitions!r}")
        for partition, number in partitions.items():
            if not (partition.isascii() and partition.isdigit()):
                raise ValueError(f"{partition!r} is not a partition of {topic!r}")
            if type(number) is not int:
                raise ValueError(f"{number!r} for partition {partition} of {topic!r} is not a whole number")
            found[TopicPartition(topic, int(partition))] = number
    return found
