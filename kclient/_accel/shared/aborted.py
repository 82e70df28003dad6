"""Aborted transactions among fetched batches, for both bodies."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from heapq import merge

# A sort keeps the interpreter lock to its end; of so many numbers it takes about a millisecond.
_SORTED_AT_ONCE = 8192


class AbortedTransactions:
    """The offsets of a producer that belong to transactions that were aborted.

    A transaction reaches from its first offset to its marker, which is learned as the batches are read. What was
    learned stays true when they are read again from an earlier one on. It costs n log n, in steps between which other
    threads have their turn.
    """

    __slots__ = ("_ends", "_starts")

    def __init__(self, entries: Iterable[tuple[int, int]]) -> None:
        """Of `entries`, producer id and first offset each, in any order."""
        starts: dict[int, list[int]] = {}
        for producer_id, first_offset in entries:
            starts.setdefault(producer_id, []).append(first_offset)
        self._starts = {producer_id: _in_order(offsets) for producer_id, offsets in starts.items()}
        self._ends: dict[tuple[int, int], int] = {}

    def has(self, producer_id: int, offset: int) -> bool:
        """True if that producer's `offset` belongs to one, as far as markers are known; the marker itself does."""
        start = self._last_start(producer_id, offset)
        return start is not None and offset <= self._ends.get((producer_id, start), offset)

    def end(self, producer_id: int, offset: int) -> None:
        """The transaction that has `offset` ends with it."""
        start = self._last_start(producer_id, offset)
        if start is not None:
            self._ends[producer_id, start] = offset

    def _last_start(self, producer_id: int, offset: int) -> int | None:
        starts = self._starts.get(producer_id)
        if starts is None or offset < starts[0]:
            return None
        return starts[bisect_right(starts, offset) - 1]


def _in_order(offsets: list[int]) -> list[int]:
    pieces = [sorted(offsets[at : at + _SORTED_AT_ONCE]) for at in range(0, len(offsets), _SORTED_AT_ONCE)]
    return pieces[0] if len(pieces) == 1 else list(merge(*pieces))
