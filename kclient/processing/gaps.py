"""PartitionProgress: how far a partition may be committed while its records finish in any order."""

from __future__ import annotations

from collections import deque

from kclient.common.offsets import OffsetAndMetadata


class PartitionProgress:
    """The records of one partition that were begun, up to the first that is not finished. Not thread-safe."""

    __slots__ = ("_begun", "_committed", "_done", "_end", "_epoch", "_finished")

    def __init__(self) -> None:
        self._begun: deque[tuple[int, int | None]] = deque()
        self._finished: set[int] = set()
        # The next offset to read, as far as everything before it is finished, and once all that was begun is.
        self._done: int | None = None
        self._end: int | None = None
        self._epoch: int | None = None
        self._committed: int | None = None

    def begin(self, offset: int, leader_epoch: int | None) -> None:
        """The record at `offset`, which is above all before it, is in hand."""
        self._begun.append((offset, leader_epoch))

    def reach(self, offset: int) -> None:
        """`offset` is the next to read after all that was begun: between may be what no reader is given."""
        self._end = offset

    def finish(self, offset: int) -> None:
        """The record at `offset` is done with for good."""
        self._finished.add(offset)
        while self._begun and self._begun[0][0] in self._finished:
            first, self._epoch = self._begun.popleft()
            self._finished.remove(first)
            self._done = first + 1

    @property
    def start(self) -> int | None:
        """Return the offset of the first unfinished record; None if all are finished."""
        return self._begun[0][0] if self._begun else None

    def to_commit(self) -> OffsetAndMetadata | None:
        """Offset to commit: that of the first unfinished record; None if there is nothing new."""
        done = self._done if self._begun or self._end is None else self._end
        if done is None or done == self._committed:
            return None
        return OffsetAndMetadata(done, leader_epoch=self._epoch)

    def committed(self, offset: int) -> None:
        """`offset` was committed."""
        self._committed = offset
