"""Rules for records that consumers were handed: all that there are, in their order, while the partition is theirs."""

from __future__ import annotations

from collections.abc import Iterator

from harness.checker.history import Anomaly, Place
from harness.checker.index import Index, Jump, Log, is_committed, read_in, within

_SHOWN = 3


def check_reads(index: Index) -> Iterator[Anomaly]:
    """Find what is wrong with the polls of each consumer, between two changes of its assignment or position.

    - nonmonotonic poll: a record comes after one with the same or a higher offset;
    - poll skip: between two records there is one that others read; or any, where no transaction leaves gaps;
    - foreign poll: the consumer did not have the partition.
    """
    sight = Sight(index)
    for read in index.foreign:
        what = f"{read.process} was handed records of {read.place}, which it did not have"
        yield Anomaly("foreign poll", what, (read,))
    for jump in index.jumps:
        log, place = jump.log, jump.log.place
        before = read_in(jump.before, place, jump.last)
        after = read_in(jump.poll, place, jump.offset)
        if jump.offset <= jump.last:
            what = f"{jump.process} was handed {place}@{jump.offset} after @{jump.last}"
            yield Anomaly("nonmonotonic poll", what, (before, after))
            continue
        missed = sight.missed(jump)
        if missed or sight.must_be_dense(jump):
            what = f"{jump.process} was handed {place}@{jump.offset} next after @{jump.last}"
            between = [index.read(log, offset) for offset in missed[:_SHOWN]]
            yield Anomaly("poll skip", what, (before, *between, after))


class Sight:
    """Records that a reader has to be handed, by what is known in the end of all readers and transactions."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._read: dict[tuple[Place, bool], list[int]] = {}
        self._unread: dict[Place, list[int]] = {}

    def visible(self, log: Log, *, read_committed: bool) -> list[int]:
        """Sorted offsets at which somebody read what a reader of that isolation level must see as well."""
        isolated = read_committed and log.place.home in self._index.transactional
        key = log.place, isolated
        if key not in self._read:
            self._read[key] = sorted(
                offset
                for offset, value in log.values.items()
                if not isolated or self._is_committed(log, value)
            )
        return self._read[key]

    def missed(self, jump: Jump) -> list[int]:
        """Offsets within a jump at which the consumer had to be handed something."""
        isolated = self._index.history.client(jump.process).read_committed
        return list(within(self.visible(jump.log, read_committed=isolated), jump.last + 1, jump.offset))

    def must_be_dense(self, jump: Jump) -> bool:
        """Return True if each offset of a jump has a record that is not lost: lost writes have a rule of their own."""
        place = jump.log.place.home
        if place in self._index.transactional:
            return False
        if place not in self._unread:
            self._unread[place] = sorted(self._acked_unread(place))
        return jump.offset - jump.last - 1 > len(within(self._unread[place], jump.last + 1, jump.offset))

    def _acked_unread(self, place: Place) -> set[int]:
        if self._index.log_of(place) is None:
            return set()
        sends = self._index.sends.get(place, {}).values()
        return {send.offset for send in sends if send.offset is not None and not self._index.was_read(send)}

    def _is_committed(self, log: Log, value: str) -> bool:
        send = self._index.send_of(log.place, value)
        return value in log.committed or (send is not None and is_committed(send.transaction))
