"""The place where fetched data changes threads: the I/O thread puts it in, the application's thread takes it out."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterable

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.completed_fetch import CompletedFetch
from kclient.utils.time import Time, Timer

MAX_FETCHES_PER_PARTITION = 2
"""One being read and one behind it, so that the next data is there when the first is used up."""


class FetchBuffer:
    """The completed fetches of each partition, in order. Thread-safe.

    A partition without data may always be fetched; one with data only while there are less than `max_bytes_ahead`
    in the whole buffer, so that many partitions do not add up to much memory.
    """

    def __init__(self, time: Time, max_bytes_ahead: int = 2**31 - 1) -> None:
        self._time = time
        self._max_bytes_ahead = max_bytes_ahead
        self._bytes = 0
        # Reentrant: a signal handler may call the consumer's wakeup() in a thread that is in here.
        self._lock = threading.RLock()
        self._chains: dict[TopicPartition, deque[CompletedFetch]] = {}
        self._turns: deque[TopicPartition] = deque()
        self.signals = 0
        """Counts what the application may be waiting for; read it before looking, and pass it to `wait`."""
        self._torn = False
        # Held until something is signalled; a lock costs both threads far less than a Condition.
        self._waiter: threading.Lock | None = None
        self._refused = False
        self.room_made = False
        """Set when there is room again that the I/O thread did not find; for the application, who tells it."""

    def _mend(self) -> None:
        """Make chains, turns and bytes agree again, if a Ctrl-C ended a change of them halfway.

        A chain without a turn would never be read, and its partition never fetched again. The lock is held.
        """
        self._chains = {tp: chain for tp, chain in self._chains.items() if chain}
        turns = [tp for tp in self._turns if tp in self._chains]
        self._turns = deque([*turns, *(tp for tp in self._chains if tp not in turns)])
        self._bytes = sum(fetch.size for chain in self._chains.values() for fetch in chain)
        self._torn = False

    # The I/O thread's side.

    def add(self, fetches: Iterable[CompletedFetch]) -> None:
        """Append to the partitions' chains and wake the application."""
        with self._lock:
            if self._torn:
                self._mend()
            for fetch in fetches:
                chain = self._chains.get(fetch.tp)
                if chain is None:
                    chain = self._chains[fetch.tp] = deque()
                    self._turns.append(fetch.tp)
                chain.append(fetch)
                self._bytes += fetch.size
            self._signal()

    def next_fetch_offset(self, tp: TopicPartition, position: int) -> int | None:
        """The offset to fetch `tp` from next if it stands at `position`; None if enough is buffered."""
        with self._lock:
            if self._torn:
                self._mend()
            chain = self._chains.get(tp)
            if not chain:
                return position
            if len(chain) >= MAX_FETCHES_PER_PARTITION or self._bytes >= self._max_bytes_ahead:
                offset = None
            else:
                # None too behind data whose end is not known: it will fail when it is read.
                offset = chain[-1].end_offset
            self._refused |= offset is None
            return offset

    # The application's side.

    def turns(self) -> list[TopicPartition]:
        """The partitions that have data; the one to read first is in front."""
        with self._lock:
            if self._torn:
                self._mend()
            return list(self._turns)

    def first(self, tp: TopicPartition) -> CompletedFetch | None:
        """The fetch of `tp` to read now."""
        with self._lock:
            chain = self._chains.get(tp)
            return chain[0] if chain else None

    def detach(self, tp: TopicPartition) -> None:
        """`tp` is not read for now: let go of the answers that its data came with."""
        with self._lock:
            for fetch in self._chains.get(tp, ()):
                fetch.detach()

    def pop(self, fetch: CompletedFetch) -> None:
        """`fetch` is used up; its partition goes behind the others. Nothing happens if it was discarded already."""
        with self._lock:
            if self._refused:
                self.room_made = True
                self._refused = False
            chain = self._chains.get(fetch.tp)
            if not chain or chain[0] is not fetch:
                return
            self._torn = True
            chain.popleft()
            self._bytes -= fetch.size
            self._turns.remove(fetch.tp)
            if chain:
                self._turns.append(fetch.tp)
            else:
                del self._chains[fetch.tp]
            self._torn = False

    def discard(self, tp: TopicPartition) -> None:
        """Drop all data of `tp`."""
        with self._lock:
            if self._torn:
                self._mend()
            if tp not in self._chains:
                return
            self.room_made = True
            self._torn = True
            for fetch in self._chains.pop(tp):
                fetch.discarded = True
                self._bytes -= fetch.size
            self._turns.remove(tp)
            self._torn = False

    def retain(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the data of all but `partitions`."""
        with self._lock:
            for tp in [tp for tp in self._chains if tp not in partitions]:
                self.discard(tp)

    def put_first(self, tp: TopicPartition) -> None:
        """Read `tp` before the others the next time."""
        self._move(tp, to_front=True)

    def put_last(self, tp: TopicPartition) -> None:
        """Read `tp` after the others."""
        self._move(tp, to_front=False)

    def _move(self, tp: TopicPartition, *, to_front: bool) -> None:
        with self._lock:
            if self._torn:
                self._mend()
            if tp in self._chains:
                self._torn = True
                self._turns.remove(tp)
                if to_front:
                    self._turns.appendleft(tp)
                else:
                    self._turns.append(tp)
                self._torn = False

    # Waiting.

    def wait(self, seen: int, timer: Timer) -> None:
        """Wait until something was signalled since `seen` was read, or the timer expires.

        Data that is there but must not be handed out (a paused partition) therefore does not end the wait.
        """
        waiter = threading.Lock()
        waiter.acquire()
        with self._lock:
            if self.signals != seen:
                return
            self._waiter = waiter
        self._time.wait_for_lock(waiter, timer.remaining_ms())

    def wakeup(self) -> None:
        """Signal that there is something to look at other than data."""
        with self._lock:
            self._signal()

    def _signal(self) -> None:
        self.signals += 1
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.release()
