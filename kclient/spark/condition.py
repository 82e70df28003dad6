"""The condition on the records that a query wants, as far as it limits partitions, offsets and times."""

from __future__ import annotations

from collections.abc import Callable
from operator import and_
from typing import TypeVar

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.spark.ranges import OffsetRange

T = TypeVar("T")


@attrs.frozen
class Condition:
    """A condition on records. None in a field means no limit. Immutable, can be pickled."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    least_offset: int | None = None
    offset_limit: int | None = None
    """Offsets are less than this."""
    timestamp_ms: int | None = None
    """The least time. Records are not in the order of their times, so that nothing follows from a latest one."""

    def may_hold_in(self, tp: TopicPartition) -> bool:
        """Return True if a record of the partition can match."""
        return (self.topics is None or tp.topic in self.topics) and (
            self.partitions is None or tp.partition in self.partitions
        )

    def narrow(self, wanted: OffsetRange) -> OffsetRange | None:
        """The part of the range that can match; None if there is none."""
        if not self.may_hold_in(wanted.tp):
            return None
        start = wanted.start if self.least_offset is None else max(wanted.start, self.least_offset)
        end = wanted.end if self.offset_limit is None else min(wanted.end, self.offset_limit)
        return OffsetRange(wanted.tp, start, end, wanted.topic_id) if start < end else None

    def also(self, other: Condition) -> Condition:
        """Both conditions at once."""
        return Condition(
            _both(and_, self.topics, other.topics),
            _both(and_, self.partitions, other.partitions),
            _both(max, self.least_offset, other.least_offset),
            _both(min, self.offset_limit, other.offset_limit),
            _both(max, self.timestamp_ms, other.timestamp_ms),
        )


def _both(combine: Callable[[T, T], T], one: T | None, other: T | None) -> T | None:
    if one is None or other is None:
        return other if one is None else one
    return combine(one, other)
