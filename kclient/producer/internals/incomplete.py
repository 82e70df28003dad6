"""IncompleteBatches: every batch whose outcome is not known yet, oldest first."""

from __future__ import annotations

import threading
from collections import OrderedDict

import attrs

from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.utils.steps import Broadcast, Pause, Steps
from kclient.utils.time import Timer


@attrs.define(eq=False, repr=False)
class IncompleteBatches:
    """The batches that flush waits for and that may expire. Thread-safe."""

    lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)  # reentrant: see Entry
    _changed: Broadcast = attrs.field(factory=Broadcast, init=False)
    _batches: OrderedDict[ProducerBatch, None] = attrs.field(factory=OrderedDict, init=False)
    _last_number: int = attrs.field(default=0, init=False)
    _ended: bool = attrs.field(default=False, init=False)

    def __len__(self) -> int:
        return len(self._batches)

    def next_number(self) -> int:
        """A number for a new batch. Called under the accumulator's lock, so numbers grow in the order of `add`."""
        self._last_number += 1
        return self._last_number

    def add(self, batch: ProducerBatch) -> None:
        """A new batch."""
        with self.lock:
            self._batches[batch] = None

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """`batch` was split: its parts, which have its number, take its place."""
        with self.lock:
            del self._batches[batch]
            # Rare enough to sort; that the first is the oldest is what makes all other looks at it cheap.
            ordered = sorted([*parts, *self._batches], key=lambda each: each.number)
            self._batches = OrderedDict.fromkeys(ordered)

    def remove(self, batch: ProducerBatch) -> None:
        """The outcome is known, and whoever wanted to know was told."""
        with self.lock:
            self._batches.pop(batch, None)
            self._changed.notify_all()

    def oldest(self) -> ProducerBatch | None:
        """The batch that expires first."""
        with self.lock:
            return next(iter(self._batches), None)

    def snapshot(self) -> list[ProducerBatch]:
        """All of them."""
        with self.lock:
            return list(self._batches)

    def record_count(self) -> int:
        """Records in all of them."""
        return sum(batch.builder.count for batch in self.snapshot())

    def end(self) -> None:
        """Nobody completes batches any more, so nobody may wait for them."""
        with self.lock:
            self._ended = True
            self._changed.notify_all()

    def await_all_until_now(self, timer: Timer | None) -> Steps[bool]:
        """Wait until every batch made so far has its outcome; False if `timer` expired or `end` came before that."""
        target = self._last_number
        while True:
            with self.lock:
                settled = self._settled(target)
                if settled or self._ended or (timer is not None and timer.is_expired()):
                    return settled
                changed = self._changed.next()
            yield Pause(changed, timer)

    def _settled(self, target: int) -> bool:
        oldest = next(iter(self._batches), None)
        return oldest is None or oldest.number > target
