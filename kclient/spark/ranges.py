"""Offset ranges, and how they become Spark's tasks."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import pairwise

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid


@attrs.frozen(order=True)
class OffsetRange:
    """The offsets from `start` up to, and without, `end` of one partition. Immutable, can be pickled."""

    tp: TopicPartition
    start: int
    end: int
    topic_id: Uuid | None = attrs.field(default=None, order=False)
    """The topic that the offsets are of, whatever has its name by now; None if the broker has no ids."""

    @property
    def size(self) -> int:
        """Number of offsets; there may be fewer records, where the log was compacted or has transactions."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.tp} from {self.start} to {self.end}"

    def cut(self, pieces: int) -> list[OffsetRange]:
        """`pieces` ranges whose sizes differ by one at most."""
        bounds = [self.start + self.size * index // pieces for index in range(pieces + 1)]
        return [OffsetRange(self.tp, start, end, self.topic_id) for start, end in pairwise(bounds)]


def split(
    ranges: Iterable[OffsetRange],
    min_partitions: int | None = None,
    max_records_per_partition: int | None = None,
) -> list[OffsetRange]:
    """The ranges, cut so that none is longer than `max_records_per_partition` and, if there are enough offsets, that
    there are at least `min_partitions`. Empty ranges are left out.

    Whichever has the longest pieces is cut next, so that a partition with much more to read than the others is shared
    by more tasks. Sorted by partition and offset; the same ranges are always cut in the same way, which a batch that
    is run again relies on.
    """
    chosen = sorted(each for each in ranges if each.size > 0)
    pieces = [
        1 if max_records_per_partition is None else -(-each.size // max_records_per_partition)
        for each in chosen
    ]
    missing = (min_partitions or 0) - sum(pieces)
    if missing > 0:
        longest = [
            (-each.size / count, index)
            for index, (each, count) in enumerate(zip(chosen, pieces, strict=True))
        ]
        heapq.heapify(longest)
        while missing > 0 and longest:
            _, index = heapq.heappop(longest)
            if pieces[index] < chosen[index].size:
                pieces[index] += 1
                missing -= 1
                heapq.heappush(longest, (-chosen[index].size / pieces[index], index))
    return [piece for each, count in zip(chosen, pieces, strict=True) for piece in each.cut(count)]
