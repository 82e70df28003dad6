"""A history sorted for questions: who sent a value, what stands in a log, who was handed it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

import attrs

from harness.checker.history import Finish, History, Place, Poll, Read, Send, Transaction


@attrs.define(eq=False)
class Log:
    """Everything that anybody read of one partition, of a topic of one id."""

    place: Place
    values: dict[int, str] = attrs.Factory(dict)
    """Offset -> the value first read there."""
    offsets: dict[str, int] = attrs.Factory(dict)
    """Value -> the offset at which it was first read."""
    copies: dict[str, list[int]] = attrs.Factory(dict)
    """Values that were read at several offsets: those after the first one."""
    others: list[tuple[int, str, Poll]] = attrs.Factory(list)
    """Values read at an offset where another one was read before."""
    committed: set[str] = attrs.Factory(set)
    """Values that a reader of committed records was handed."""

    @property
    def highest(self) -> int:
        """The highest offset read, -1 if none was."""
        return max(self.values, default=-1)

    def holds(self, value: str, offset: int) -> bool:
        """Return True if the value was read there."""
        return self.offsets.get(value) == offset or offset in self.copies.get(value, ())


@attrs.define(eq=False)
class Stretch:
    """A consumer's way through a log, without a seek and without losing the partition."""

    process: str
    log: Log
    first: int
    last: int
    poll: Poll
    """The last one."""


@attrs.define(eq=False)
class Jump:
    """A record that did not have the offset after that of the one before, in one stretch."""

    process: str
    log: Log
    last: int
    before: Poll
    offset: int
    poll: Poll


class Index:
    """A history, its sends by partition and value, its logs, and the ways of its readers through them.

    Raises ValueError if two records of a partition have the same value: nothing could be said of them.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.sends: dict[Place, dict[str, Send]] = {}
        self.logs: dict[Place, Log] = {}
        self.homes: defaultdict[Place, list[Log]] = defaultdict(list)
        """The logs of a partition by its name: more than one if the topic was created again."""
        self.jumps: list[Jump] = []
        self.stretches: list[Stretch] = []
        self.foreign: list[Read] = []
        """The first record of every poll that is of a partition which the consumer did not have."""
        self.finishes: defaultdict[Place, list[Finish]] = defaultdict(list)
        self.read_by: dict[str, defaultdict[Place, set[str]]] = {}
        """Subscribers that say that they have read everything -> partition -> the values that they read."""
        self._first_polls: dict[tuple[Place, int, str], Poll] | None = None
        self._sends_of: defaultdict[tuple[str, str], list[Send]] | None = None
        unplaced = self._take_sends()
        for finish in history.finishes:
            self.read_by.setdefault(finish.subscriber, defaultdict(set))
        self._take_reading()
        self._place(unplaced)
        self._take_finishes()
        self.transactional = self._transactional()
        """Partitions that have control records, so that their offsets have gaps."""

    def send_of(self, place: Place, value: str) -> Send | None:
        """The record with this value in a partition, None if nobody sent it there."""
        return self.sends.get(place.home, {}).get(value)

    def log_of(self, place: Place) -> Log | None:
        """The only log of a partition, None if there is none or several."""
        logs = self.homes.get(place.home, ())
        return logs[0] if len(logs) == 1 else None

    def was_read(self, send: Send) -> bool:
        """Return True if somebody read the record."""
        place = send.place
        return place is not None and any(send.value in log.offsets for log in self.homes.get(place, ()))

    def was_read_committed(self, send: Send) -> bool:
        """Return True if somebody read the record among those that are committed."""
        place = send.place
        return place is not None and any(send.value in log.committed for log in self.homes.get(place, ()))

    def sends_of(self, topic: str, value: str) -> list[Send]:
        """Records with this value that were sent to any partition of a topic."""
        if self._sends_of is None:
            self._sends_of = defaultdict(list)
            for send in self.history.sends:
                self._sends_of[send.topic, send.value].append(send)
        return self._sends_of.get((topic, value), [])

    def read(self, log: Log, offset: int) -> Read:
        """Read of the record at an offset, as evidence: by the first who did."""
        return self.read_of(log, offset, log.values[offset])

    def read_of(self, log: Log, offset: int, value: str) -> Read:
        """Read of a value at an offset; the same."""
        if self._first_polls is None:
            self._first_polls = {}
            for poll in self.polls():
                for place, records in poll.records.items():
                    for at, found in records:
                        self._first_polls.setdefault((place, at, found), poll)
        poll = self._first_polls[log.place, offset, value]
        return Read(poll.process, poll.at, log.place, offset, value)

    def polls(self) -> Iterable[Poll]:
        """All polls."""
        return (each for each in self.history.reading if isinstance(each, Poll))

    def _take_sends(self) -> dict[str, dict[str, Send]]:
        """Sort the sends; those whose partition only the producer knew are returned, by topic and value."""
        unplaced: dict[str, dict[str, Send]] = {}
        by_place = self.sends
        found: dict[tuple[str, int | None], dict[str, Send]] = {}
        for send in self.history.sends:
            key = send.topic, send.partition
            values = found.get(key)
            if values is None:
                values = found[key] = {}
                if send.partition is None:
                    unplaced[send.topic] = values
                else:
                    by_place[Place(send.topic, send.partition)] = values
            if values.setdefault(send.value, send) is not send:
                raise ValueError(f"two records have the same value: {values[send.value]}; {send}")
        return unplaced

    def _place(self, unplaced: dict[str, dict[str, Send]]) -> None:
        """Give sends a partition that were not acknowledged, but read somewhere."""
        for place, log in self.logs.items():
            waiting = unplaced.get(place.topic)
            if waiting:
                sends = self.sends.setdefault(place.home, {})
                found = log.offsets.keys() & waiting.keys() - sends.keys()
                for value in found:
                    send = sends[value] = waiting.pop(value)
                    send.partition = place.partition
                if found:  # back to the order of sending
                    self.sends[place.home] = dict(sorted(sends.items(), key=lambda sent: sent[1].started))

    def _transactional(self) -> set[Place]:
        sends = [send for send in self.history.sends if send.transaction is not None]
        topics = {send.topic for send in sends if send.partition is None}
        return {send.place for send in sends if send.place is not None} | {
            home for home in self.homes if home.topic in topics
        }

    def _take_reading(self) -> None:
        ways: defaultdict[str, dict[Place, Stretch]] = defaultdict(dict)
        owned: dict[str, set[Place]] = {}
        for event in self.history.reading:
            way = ways[event.process]
            if isinstance(event, Poll):
                self._take_poll(event, way, owned.get(event.process))
                continue
            homes = {place.home for place in event.places}
            for place in [place for place in way if place.home in homes]:
                del way[place]
            if event.kind == "assigned":
                owned.setdefault(event.process, set()).update(homes)
            elif event.kind != "sought":
                owned.setdefault(event.process, set()).difference_update(homes)

    def _take_poll(self, poll: Poll, way: dict[Place, Stretch], owned: set[Place] | None) -> None:
        client = self.history.client(poll.process)
        finished = self.read_by.get(client.subscriber)
        for place, records in poll.records.items():
            if not records:
                continue
            log = self.logs.get(place)
            if log is None:
                log = self.logs[place] = Log(place)
                self.homes[place.home].append(log)
            if owned is not None and place.home not in owned:
                self.foreign.append(Read(poll.process, poll.at, place, *records[0]))
            stretch = way.get(place)
            if stretch is None:
                first = records[0][0]
                stretch = way[place] = Stretch(poll.process, log, first, first - 1, poll)
                self.stretches.append(stretch)
            self._take_records(poll, records, log, stretch)
            if client.read_committed:
                log.committed.update([value for _, value in records])
            if finished is not None:
                finished[place.home].update([value for _, value in records])

    def _take_records(
        self, poll: Poll, records: Sequence[tuple[int, str]], log: Log, stretch: Stretch
    ) -> None:
        values, offsets, last = log.values, log.offsets, stretch.last
        for offset, value in records:
            if offset != last + 1:
                self.jumps.append(Jump(poll.process, log, last, stretch.poll, offset, poll))
            last = offset
            stretch.poll = poll
            known = values.get(offset)
            if known is None:
                values[offset] = value
                if offsets.setdefault(value, offset) != offset:
                    log.copies.setdefault(value, []).append(offset)
            elif known != value:
                log.others.append((offset, value, poll))
                if offsets.setdefault(value, offset) != offset and not log.holds(value, offset):
                    log.copies.setdefault(value, []).append(offset)
        stretch.last = last

    def _take_finishes(self) -> None:
        for finish in self.history.finishes:
            claimed = set(finish.places)
            for home in {place.home for place in finish.places}:
                # Of a topic that was created again, all logs have to be among them.
                if {log.place for log in self.homes.get(home, ())} <= claimed:
                    self.finishes[home].append(finish)


def last_read(stretch: Stretch) -> Read:
    """Return the last record of a stretch."""
    return read_in(stretch.poll, stretch.log.place, stretch.last)


def read_in(poll: Poll, place: Place, offset: int) -> Read:
    """Return what a poll had at an offset."""
    return Read(poll.process, poll.at, place, offset, dict(poll.records[place])[offset])


def is_certain(send: Send) -> bool:
    """Return True if a record was acknowledged and, where it is in a transaction, that was committed."""
    return send.outcome == "ok" and (send.transaction is None or send.transaction.outcome == "ok")


def done_at(send: Send) -> float:
    """Time from which a record that `is_certain` was certain."""
    ends = [send.ended, None if send.transaction is None else send.transaction.ended]
    return max((end for end in ends if end is not None), default=float("inf"))


def is_committed(transaction: Transaction | None) -> bool:
    """Return True if there is no transaction, or one that was committed."""
    return transaction is None or transaction.outcome == "ok"


def within(offsets: Sequence[int], start: int, end: int) -> Sequence[int]:
    """Those of the sorted `offsets` that are in [start, end)."""
    return offsets[bisect_left(offsets, start) : bisect_left(offsets, end)]
