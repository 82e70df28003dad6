"""Rule for the offsets that a group has committed: they are not before what its members were handed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

import attrs

from harness.checker.history import Anomaly, Observation, Place, Turn
from harness.checker.index import Index, within
from harness.checker.reads import Sight


def check_progress(index: Index) -> Iterator[Anomaly]:
    """Hold committed offsets, wherever somebody asked for them, against what the group had been handed by then.

    - committed too far: behind the end of the log; or behind the last record that a member was handed, where no
      transaction leaves gaps; or behind a record that none was handed, though it is not before the group's first one
      and no application moved a position.
    """
    progress = Progress(index)
    for observation in index.history.observations:
        for place, offset in observation.offsets.items():
            yield from progress.check(observation, place, offset)


@attrs.define(eq=False)
class Reading:
    """The records of a partition that were handed to a group's members."""

    times: dict[int, float] = attrs.Factory(dict)
    """Offset -> when it was first handed out."""
    sought: bool = False
    """An application moved a position itself, so records may be left out."""
    _moments: list[float] = attrs.Factory(list)
    _highest: list[int] = attrs.Factory(list)
    """The highest offset handed out up to each moment."""
    _due: list[int] = attrs.Factory(list)
    """Offsets of the records that the group had to be handed, from its first one."""
    _latest: list[tuple[float, int]] = attrs.Factory(list)
    """Of those up to each one, the time and offset of that which was handed out last."""

    def sort(self, visible: list[int]) -> None:
        """Get ready for questions; `visible` are the offsets of all records for the group."""
        by_time = sorted((at, offset) for offset, at in self.times.items())
        self._moments = [at for at, _ in by_time]
        self._highest = list(accumulate((offset for _, offset in by_time), max))
        self._due = list(within(visible, min(self.times), max(visible, default=-1) + 1))
        last = ((self.times.get(offset, float("inf")), offset) for offset in self._due)
        self._latest = list(accumulate(last, max))

    def highest(self, at: float) -> int:
        """The highest offset that had been handed out at a time, -1 if none had."""
        number = bisect_right(self._moments, at)
        return self._highest[number - 1] if number else -1

    def left_out(self, end: int, at: float) -> int | None:
        """Offset of a record below `end` that had not been handed out at a time, None if there is none."""
        number = 0 if self.sought else bisect_left(self._due, end)
        last, offset = self._latest[number - 1] if number else (at, end)
        return offset if last > at else None


class Progress:
    """Reading of the groups whose committed offsets somebody asked for."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._readings: dict[str, dict[Place, Reading]] = {}
        self._ends: dict[Place, int] = {}
        for observation in index.history.observations:
            self._readings.setdefault(observation.group, {})
        isolated = {client.group for client in index.history.clients.values() if client.read_committed}
        self._take_reading()
        sight = Sight(index)
        for group, places in self._readings.items():
            for place, reading in places.items():
                log = index.log_of(place)
                if reading.times:
                    seen = [] if log is None else sight.visible(log, read_committed=group in isolated)
                    reading.sort(seen)

    def check(self, observation: Observation, place: Place, offset: int) -> Iterator[Anomaly]:
        """Hold a committed offset against what the group had been handed by then."""
        reading = self._readings[observation.group].get(place) or Reading()
        what = f"{observation.group} had committed {place}@{offset}"
        highest = reading.highest(observation.ended)
        if place not in self._index.transactional and offset > highest + 1 and not reading.sought:
            handed = "nothing" if highest < 0 else f"up to @{highest}"
            yield Anomaly("committed too far", f"{what} and been handed {handed}", (observation,))
            return
        if offset > self._end(place):
            what += f", and {place} ends at @{self._end(place)}"
            yield Anomaly("committed too far", what, (observation,))
            return
        left_out = reading.left_out(offset, observation.ended)
        log = self._index.log_of(place)
        if left_out is not None and log is not None:
            what += f", and none of it had been handed @{left_out}"
            yield Anomaly("committed too far", what, (observation, self._index.read(log, left_out)))

    def _end(self, place: Place) -> int:
        """The highest offset that a log can end at: every transaction leaves a marker, and may do so last."""
        if place not in self._ends:
            sends = self._index.sends.get(place, {}).values()
            logs = self._index.homes.get(place, [])
            known = [log.highest for log in logs] + [send.offset for send in sends if send.offset is not None]
            markers = len({send.transaction for send in sends if send.transaction is not None})
            self._ends[place] = max(known, default=-1) + 1 + markers + sum(s.offset is None for s in sends)
        return self._ends[place]

    def _take_reading(self) -> None:
        for event in self._index.history.reading:
            group = self._index.history.client(event.process).group
            if group is None or group not in self._readings:
                continue
            places = self._readings[group]
            if isinstance(event, Turn):
                if event.kind == "sought":
                    for place in event.places:
                        places.setdefault(place.home, Reading()).sought = True
                continue
            for place, records in event.records.items():
                times = places.setdefault(place.home, Reading()).times
                for offset, _ in records:
                    if times.setdefault(offset, event.at) > event.at:
                        times[offset] = event.at
