"""What a query's conditions say about partitions and offsets, so that less is read.

Spark applies every condition again to the rows, so that it is enough to leave out what certainly does not match.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import attrs
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from kclient.common.topic_partition import TopicPartition
from kclient.spark.ranges import OffsetRange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EQUAL = (EqualTo, EqualNullSafe)


@attrs.frozen
class Condition:
    """What has to be true of a record. None means that nothing is said. Immutable, can be pickled."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    least_offset: int | None = None
    offset_limit: int | None = None
    """Offsets are less than this."""
    timestamp_ms: int | None = None
    """The least time. Records are not in the order of their times, so that nothing follows from a latest one."""

    def may_hold_in(self, tp: TopicPartition) -> bool:
        """Whether a record of the partition can match."""
        return (self.topics is None or tp.topic in self.topics) and (
            self.partitions is None or tp.partition in self.partitions
        )

    def narrow(self, wanted: OffsetRange) -> OffsetRange | None:
        """The part of the range that can match; None if there is none."""
        if not self.may_hold_in(wanted.tp):
            return None
        start = wanted.start if self.least_offset is None else max(wanted.start, self.least_offset)
        end = wanted.end if self.offset_limit is None else min(wanted.end, self.offset_limit)
        return OffsetRange(wanted.tp, start, end) if start < end else None

    def also(self, other: Condition) -> Condition:
        """Both conditions at once."""
        return Condition(
            _common(self.topics, other.topics),
            _common(self.partitions, other.partitions),
            _best(max, self.least_offset, other.least_offset),
            _best(min, self.offset_limit, other.offset_limit),
            _best(max, self.timestamp_ms, other.timestamp_ms),
        )


def condition_of(filters: Iterable[Filter]) -> Condition:
    """What the filters, all of which are true, say together. What is not understood says nothing."""
    condition = Condition()
    for each in filters:
        condition = condition.also(_meaning(each))
    return condition


def _meaning(each: Filter) -> Condition:
    attribute: tuple[str, ...] = getattr(each, "attribute", ())
    if len(attribute) != 1:
        return Condition()
    column = attribute[0].lower()
    value: Any = getattr(each, "value", None)
    if column in {"topic", "partition"} and isinstance(each, (*_EQUAL, In)):
        chosen = frozenset(value if isinstance(each, In) else [value])
        return Condition(topics=chosen) if column == "topic" else Condition(partitions=chosen)
    if column == "offset" and type(value) is int:
        return _of_offset(each, value)
    if column == "timestamp" and isinstance(value, datetime) and value.tzinfo is not None:
        return _of_timestamp(each, value)
    return Condition()


def _of_offset(each: Filter, value: int) -> Condition:
    if isinstance(each, _EQUAL):
        return Condition(least_offset=value, offset_limit=value + 1)
    if isinstance(each, GreaterThan):
        return Condition(least_offset=value + 1)
    if isinstance(each, GreaterThanOrEqual):
        return Condition(least_offset=value)
    if isinstance(each, LessThan):
        return Condition(offset_limit=value)
    if isinstance(each, LessThanOrEqual):
        return Condition(offset_limit=value + 1)
    return Condition()


def _of_timestamp(each: Filter, value: datetime) -> Condition:
    since = value - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if isinstance(each, GreaterThan):
        least = micros // 1000 + 1
    elif isinstance(each, (*_EQUAL, GreaterThanOrEqual)):
        least = -(-micros // 1000)
    else:
        return Condition()
    # Kafka has no times before 1970 but -1, which stands for none and comes before all others.
    return Condition(timestamp_ms=least) if least > 0 else Condition()


def _common(one: frozenset[Any] | None, other: frozenset[Any] | None) -> frozenset[Any] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _best(choose: Any, one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return int(choose(one, other))
