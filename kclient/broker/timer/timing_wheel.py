"""The hierarchical timing wheel: adding and cancelling a timer cost the same whether there are ten or a
million.

A wheel of `size` buckets, each `tick_ms` wide, covers `tick_ms * size` ahead of its clock. What lies further
goes to an overflow wheel whose tick is the whole span of this one, made when first needed; when the clock
gets near, its buckets are emptied into the finer wheels below. Only buckets, never single tasks, are put in
order of time, so the heap that `SystemTimer` keeps stays as small as the number of distinct buckets in use.
"""

from __future__ import annotations

import abc
from collections.abc import Callable

import attrs


@attrs.define(eq=False)
class TimerTask(abc.ABC):
    """Something to run once, `delay_ms` after it is handed to a timer.

    `cancel` may be called by any thread, before, while or after the task is in a timer.
    """

    delay_ms: int
    _entry: TimerEntry | None = attrs.field(default=None, init=False)
    _cancelled: bool = attrs.field(default=False, init=False)

    @abc.abstractmethod
    def run(self) -> None:
        """Called by the thread that advances the timer's clock."""

    def is_cancelled(self) -> bool:
        """True once `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Take the task out of its timer; it will not be run, unless it is running at this moment."""
        # Set first: an entry that is being moved between wheels right now is dropped when it is added again.
        self._cancelled = True
        entry = self._entry
        if entry is not None:
            self._entry = None
            entry.remove()

    def attach(self, entry: TimerEntry) -> None:
        """Called by the timer: `entry` now stands for this task, and a former entry is withdrawn."""
        previous, self._entry = self._entry, entry
        if previous is not None:
            previous.remove()


@attrs.define(eq=False)
class TimerEntry:
    """A task's place in a wheel. The wheel's fields are guarded by the timer's lock."""

    task: TimerTask
    expiration_ms: int
    _withdraw: Callable[[TimerEntry], None]
    bucket: Bucket | None = attrs.field(default=None, init=False)

    def remove(self) -> None:
        """Leave the wheel."""
        self._withdraw(self)


@attrs.define(eq=False)
class Bucket:
    """The tasks of one tick. Guarded by the timer's lock.

    Java chains the entries in a circular list to remove one without a search; a dict keeps insertion order
    and does the same with one hash instead of four pointer updates.
    """

    expiration_ms: int = -1
    entries: dict[TimerEntry, None] = attrs.field(factory=dict)

    def add(self, entry: TimerEntry) -> None:
        """Put `entry` in."""
        entry.bucket = self
        self.entries[entry] = None

    def remove(self, entry: TimerEntry) -> None:
        """Take `entry` out."""
        del self.entries[entry]
        entry.bucket = None

    def drain(self) -> list[TimerEntry]:
        """Take everything out and make the bucket ready for another tick."""
        drained = list(self.entries)
        self.entries.clear()
        for entry in drained:
            entry.bucket = None
        self.expiration_ms = -1
        return drained


class TimingWheel:
    """One level of the hierarchy. Not thread-safe: the timer's lock guards all levels.

    `enqueue(bucket)` is called when a bucket has got a new expiry and must be put in order of time.
    """

    __slots__ = ("_buckets", "_enqueue", "_interval_ms", "_overflow", "_size", "_tick_ms", "current_ms")

    def __init__(self, tick_ms: int, size: int, start_ms: int, enqueue: Callable[[Bucket], None]) -> None:
        if tick_ms < 1 or size < 2:
            raise ValueError(f"A timing wheel needs tick_ms >= 1 and size >= 2, not {tick_ms} and {size}")
        self._tick_ms = tick_ms
        self._size = size
        self._interval_ms = tick_ms * size
        self._enqueue = enqueue
        self._buckets = [Bucket() for _ in range(size)]
        self._overflow: TimingWheel | None = None
        self.current_ms = start_ms - start_ms % tick_ms

    def add(self, entry: TimerEntry) -> bool:
        """Place `entry`; False if it is already due (the caller runs it)."""
        expiration_ms = entry.expiration_ms
        if expiration_ms < self.current_ms + self._tick_ms:
            return False
        if expiration_ms >= self.current_ms + self._interval_ms:
            if self._overflow is None:
                self._overflow = TimingWheel(self._interval_ms, self._size, self.current_ms, self._enqueue)
            return self._overflow.add(entry)
        tick = expiration_ms // self._tick_ms
        bucket = self._buckets[tick % self._size]
        bucket.add(entry)
        due_ms = tick * self._tick_ms
        # A bucket is used again and again; it is queued once for each turn of the wheel, by its first entry.
        if bucket.expiration_ms != due_ms:
            bucket.expiration_ms = due_ms
            self._enqueue(bucket)
        return True

    def advance(self, to_ms: int) -> None:
        """Move the clocks of this level and those above to `to_ms`."""
        if to_ms >= self.current_ms + self._tick_ms:
            self.current_ms = to_ms - to_ms % self._tick_ms
            if self._overflow is not None:
                self._overflow.advance(to_ms)
