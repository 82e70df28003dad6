"""Offsets of a partition that are done, in any order, kept in one committed offset and its metadata."""

from __future__ import annotations

import re
from bisect import bisect_right

from kclient.common.offsets import OffsetAndMetadata

_MARK = "kclient.replay:"
_FORM = re.compile(rf"{_MARK}(?:[0-9a-f]+\+[0-9a-f]+(?:,[0-9a-f]+\+[0-9a-f]+)*)?")
MOST_METADATA = 4000
"""Characters of the metadata; brokers take 4,096 bytes (offset.metadata.max.bytes)."""


class DoneOffsets:
    """The done offsets of a partition: all below `position`, and ranges above it. Not thread-safe.

    Records are told of in their order, each as done (`take`, `passed`) or not (`leave`). Offsets between two records
    that are done belong to none, and are done as well.
    """

    def __init__(self, position: int, committed: OffsetAndMetadata | None = None) -> None:
        known = committed is not None and committed.offset >= position
        # Starts and ends of ranges without what they end before, in order; the first is all below the position.
        self._starts = [0]
        self._ends = [committed.offset if known and committed is not None else position]
        if committed is not None and _FORM.fullmatch(committed.metadata):
            at = committed.offset
            for pair in filter(None, committed.metadata.removeprefix(_MARK).split(",")):
                gap, length = (int(number, 16) for number in pair.split("+"))
                self._add(at + gap, at + gap + length)
                at += gap + length
        self._next: int | None = self.position

    @property
    def position(self) -> int:
        """The first offset that is not done."""
        return self._ends[0]

    @property
    def committed(self) -> OffsetAndMetadata:
        """All of it, to be committed."""
        pairs, at = [], self.position
        for start, end in zip(self._starts[1:], self._ends[1:], strict=True):
            pairs.append(f"{start - at:x}+{end - start:x}")
            at = end
        return OffsetAndMetadata(self.position, _MARK + ",".join(pairs) if pairs else "")

    def __contains__(self, offset: int) -> bool:
        return offset < self._ends[bisect_right(self._starts, offset) - 1]

    def take(self, offset: int) -> bool:
        """The record at `offset` is done from now on; False, and nothing has changed, if there is no room to say so."""
        before = [*self._starts], [*self._ends]
        self.passed(offset)
        if len(self.committed.metadata) <= MOST_METADATA:
            return True
        self._starts, self._ends = before
        self.leave()
        return False

    def passed(self, offset: int) -> None:
        """The record at `offset` is done."""
        self._add(offset if self._next is None else self._next, offset + 1)
        self._next = offset + 1

    def leave(self) -> None:
        """The next record is not done."""
        self._next = None

    def finish(self, end: int) -> None:
        """There are no more records before `end`."""
        if self._next is not None and self._next < end:
            self._add(self._next, end)

    def _add(self, start: int, end: int) -> None:
        first = bisect_right(self._starts, start) - 1
        if self._ends[first] < start:
            first += 1
        last = bisect_right(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
