"""Limits on partitions, offsets and times that follow from a query's filters, so that less is read.

Spark applies every filter again to the rows, so that it is enough to leave out what certainly does not match.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

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

from kclient.spark.condition import Condition

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EQUAL = (EqualTo, EqualNullSafe)


def condition_of(filters: Iterable[Filter]) -> Condition:
    """Return the condition that follows from the filters, all of them true. Unknown filters set no limit."""
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
