"""The place where fetched data changes threads: the I/O thread puts it in, the application's thread uses it up."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable
from operator import attrgetter

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.completed_fetch import CompletedFetch

MAX_FETCHES_PER_PARTITION = 2
"""One being read and one behind it, so that the next data is there when the first is used up."""

_turn_of = attrgetter("turn")


@attrs.define(eq=False, repr=False)
class FetchBuffer:
    """The completed fetches of each partition, in order. Thread-safe.

    Only the I/O thread puts fetches in and takes them out. The application's thread says of a fetch that it is over,
    by one assignment that no Ctrl-C ends halfway, and the I/O thread prunes it in its next round.

    A partition without data may always be fetched; one with data only while there are less than `max_bytes_ahead`
    in the whole buffer, so that many partitions do not add up to much memory.
    """

    _notify: Callable[[], None]
    _wake: Callable[[], None]
    _max_bytes_ahead: int = 2**31 - 1
    _bytes: int = attrs.field(default=0, init=False)
    _chains: dict[TopicPartition, tuple[CompletedFetch, ...]] = attrs.field(factory=dict, init=False)
    _turns: itertools.count[int] = attrs.field(factory=itertools.count, init=False)
    _changed: set[TopicPartition] = attrs.field(factory=set, init=False)
    _is_limited: bool = attrs.field(default=False, init=False)
    _room_wanted: bool = attrs.field(default=False, init=False)  # for the application's thread to read

    # The I/O thread's side.

    def add(self, fetches: Iterable[CompletedFetch]) -> None:
        """Append to the partitions' chains and notify the application."""
        for fetch in fetches:
            fetch.turn = next(self._turns)
            self._chains[fetch.tp] = (*self._chains.get(fetch.tp, ()), fetch)
            self._changed.add(fetch.tp)
            self._bytes += fetch.size
        self._notify()

    def begin_round(self) -> set[TopicPartition]:
        """Prune what is over; returns the partitions for which `next_fetch_offset` may have changed."""
        # First, so that what the application uses up from now on gives another round, if it is not seen in this one.
        self._room_wanted = True
        self._bytes = 0
        changed, self._changed = self._changed, set()
        for tp, chain in list(self._chains.items()):
            left = tuple(fetch for fetch in chain if not fetch.over)
            if not left:
                del self._chains[tp]
                changed.add(tp)
            elif len(left) != len(chain):
                self._chains[tp] = left
                changed.add(tp)
            for fetch in left:
                self._bytes += fetch.size
        was_limited, self._is_limited = self._is_limited, self._bytes >= self._max_bytes_ahead
        if was_limited or self._is_limited:
            changed.update(self._chains)
        return changed

    def next_fetch_offset(self, tp: TopicPartition, position: int) -> int | None:
        """The offset to fetch `tp` from next if it stands at `position`; None if enough is buffered."""
        chain = [fetch for fetch in self._chains.get(tp, ()) if not fetch.over]
        if not chain:
            return position
        if len(chain) >= MAX_FETCHES_PER_PARTITION or self._bytes >= self._max_bytes_ahead:
            return None
        # None too behind data whose end is not known: it will fail when it is read.
        return chain[-1].end_offset

    def end_round(self, *, room_wanted: bool) -> None:
        """The partitions were looked at; where there is no room for some, the application says when there is."""
        self._room_wanted = room_wanted

    # The application's side.

    def turns(self) -> list[CompletedFetch]:
        """The fetch to read now of each partition that has data; the one to read first is in front."""
        found = []
        for chain in list(self._chains.values()):
            for fetch in chain:
                if not fetch.over:
                    found.append(fetch)
                    break
        found.sort(key=_turn_of)
        return found

    def first(self, tp: TopicPartition) -> CompletedFetch | None:
        """The fetch of `tp` to read now."""
        for fetch in self._chains.get(tp, ()):
            if not fetch.over:
                return fetch
        return None

    def use_up(self, fetch: CompletedFetch) -> None:
        """`fetch` was read to its end; its partition goes behind the others."""
        if not fetch.over:
            fetch.end()
            self.put_last(fetch.tp)
            self.ask_for_more()

    def discard(self, tp: TopicPartition) -> None:
        """Drop all data of `tp`. For both threads: what the other one reads of it is not handed out."""
        for fetch in self._chains.get(tp, ()):
            if not fetch.over:
                fetch.discarded = fetch.over = True
                self._wake()

    def retain(self, partitions: Collection[TopicPartition]) -> None:
        """Drop the data of all but `partitions`."""
        for tp in list(self._chains):
            if tp not in partitions:
                self.discard(tp)

    def detach(self, tp: TopicPartition) -> None:
        """`tp` is not read for now: let go of the answers that its data came with."""
        for fetch in self._chains.get(tp, ()):
            if not fetch.over:
                fetch.detach()

    def put_first(self, tp: TopicPartition) -> None:
        """Read `tp` before the others the next time."""
        fetch = self.first(tp)
        if fetch is not None:
            fetch.turn = -next(self._turns)

    def put_last(self, tp: TopicPartition) -> None:
        """Read `tp` after the others."""
        fetch = self.first(tp)
        if fetch is not None:
            fetch.turn = next(self._turns)

    def ask_for_more(self) -> None:
        """Have the I/O thread look where there is room, if it found none somewhere the last time."""
        if self._room_wanted:
            self._wake()
