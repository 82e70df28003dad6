"""The offsets of a stream's micro-batches: where it starts, how far each batch goes, and what is lost on the way.

Spark calls this in one process for as long as the query runs: `latest_offset`, writing the answer to its log, `plan`,
and, with the next batch, `commit`. After a restart it goes on from its log, with `plan` if the last batch was not
finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.spark.data_loss import report_data_loss
from kclient.spark.limits import DelayGate, limit_offsets
from kclient.spark.offsets import (
    INITIAL,
    LATEST,
    Kind,
    Offsets,
    from_json,
    is_initial,
    to_json,
)
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange, split
from kclient.spark.resolver import OffsetResolver
from kclient.utils.time import SYSTEM_TIME, Time

if TYPE_CHECKING:
    from kclient.spark.committer import GroupCommitter
    from kclient.spark.watcher import RecordWatcher

_SPIN_MS = 50
"""Asked again within this time, a query does nothing but ask: Spark does so every 10 ms."""


@attrs.define(eq=False)
class StreamPlanner:
    """Plans the micro-batches of one run of a query. Used by one thread."""

    _options: SourceOptions
    _resolver: OffsetResolver
    _watcher: RecordWatcher
    _committer: GroupCommitter | None
    _time: Time = SYSTEM_TIME
    _gate: DelayGate = attrs.field(init=False)
    _first: Offsets | None = attrs.field(default=None, init=False)
    _last: Mapping[str, Any] | None = attrs.field(default=None, init=False)
    _latest: Offsets = attrs.field(factory=dict, init=False)
    _frozen: Offsets | None = attrs.field(default=None, init=False)
    _left_ms: int | None = attrs.field(default=None, init=False)
    # Whether this run has decided on an end itself, and does not only run again what is in the log.
    _decides: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._gate = DelayGate(self._options.limits, self._time)

    def initial_offset(self) -> Mapping[str, Any]:
        """Return the start offsets of a new query.

        Spark asks more than once, also after a crash in the first batch. If the answer could be another one
        then, it is the mark `INITIAL`, and the offsets come with `latest_offset`.
        """
        return to_json(self._starts()) if self._starts_are_lasting() else INITIAL

    def prepare_for_available_now(self) -> None:
        """From now on, nothing that comes later is read."""
        # Whether this is a new query, and a topic must be there, is not known yet.
        self._frozen = self._resolver.latest(self._resolver.partitions_that_exist())

    def latest_offset(self, start: Mapping[str, Any] | None, *, all_available: bool) -> Mapping[str, Any]:
        """The end of the batch that begins at `start`; `start` itself if there is nothing to read, or not enough.

        `start` is None from a Spark that does not tell; it is the end of the last batch then. `all_available` sets
        the limits aside.
        """
        self._decides = True
        if start is None:
            start = self._last if self._last is not None else self.initial_offset()
        if is_initial(start):
            self._latest = self._starts()
            return to_json(self._latest)
        known = from_json(start)
        if self._committer is not None:
            self._committer.commit(known)
        # Asked again at once, the query has nothing else to do; otherwise another source of it may have.
        spinning = self._left_ms is not None and self._time.monotonic_ms() - self._left_ms <= _SPIN_MS
        end = self._next(known, all_available)
        if end == known and spinning and self._frozen is None and self._watcher.wait(end):
            end = self._next(known, all_available)
        self._left_ms = self._time.monotonic_ms()
        # Equal offsets have to be equal text to Spark, and the log may hold another order.
        return start if end == known else to_json(end)

    def report_latest(self) -> Mapping[str, Any] | None:
        """The ends that were found last, whatever the limits made of them."""
        return to_json(self._latest) if self._latest else None

    def plan(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[OffsetRange]:
        """The tasks of the batch. The same again for the same offsets, whatever has come since."""
        self._last = end
        if is_initial(start):
            return []
        starts, ends = from_json(start), from_json(end)
        fail = self._options.fail_on_data_loss
        gone = sorted(set(starts) - set(ends))
        # When a first batch is run again its start is looked up again: they may have come after its end was decided.
        if gone and (self._decides or starts != self._first):
            report_data_loss(fail, f"{', '.join(map(str, gone))}: gone since the last batch.")
        starts.update(self._new_starts(frozenset(ends) - frozenset(starts)))
        ranges: list[OffsetRange] = []
        for tp in sorted(ends):
            if tp not in starts:
                report_data_loss(fail, f"{tp} was deleted before it was read up to offset {ends[tp]}.")
            elif ends[tp] < starts[tp]:
                report_data_loss(
                    fail, f"{tp} ends at {ends[tp]} now, and was read up to {starts[tp]} before."
                )
            else:
                ranges.append(OffsetRange(tp, starts[tp], ends[tp]))
        return split(ranges, self._options.min_partitions, self._options.max_records_per_partition)

    def commit(self, end: Mapping[str, Any]) -> None:
        """The batch that ends here is done."""
        if self._committer is not None and not is_initial(end):
            self._committer.commit(from_json(end))

    def _starts(self) -> Offsets:
        if self._first is None:
            self._first = self._resolver.start(self._options.starting, self._resolver.partitions())
        return dict(self._first)

    def _starts_are_lasting(self) -> bool:
        bound = self._options.starting
        if bound.kind is Kind.OFFSETS:
            return LATEST not in bound.values.values()
        if bound.kind in {Kind.TIMESTAMP, Kind.TIMESTAMPS}:
            return not self._options.latest_if_no_match
        return bound.kind is Kind.EARLIEST

    def _next(self, known: Offsets, all_available: bool) -> Offsets:
        partitions = self._resolver.partitions(known)
        if self._frozen is not None:
            partitions &= set(self._frozen)
        starts = {tp: offset for tp, offset in known.items() if tp in partitions}
        new = partitions - set(known)
        if new:
            starts.update(self._resolver.earliest(new))
        ends = self._latest = self._latest_of(starts)
        if self._frozen is not None:
            ends = {tp: min(end, max(self._frozen[tp], starts[tp])) for tp, end in ends.items()}
        return ends if all_available else self._limited(known, starts, ends)

    def _limited(self, known: Offsets, starts: Offsets, ends: Offsets) -> Offsets:
        limits = self._options.limits
        available = sum(max(ends[tp] - starts[tp], 0) for tp in ends)
        # With AvailableNow nothing more will come, so that waiting for it would leave the rest unread.
        if self._frozen is None and self._gate.waits(available):
            return known
        if limits.max_offsets is not None:
            ends = limit_offsets(starts, ends, limits.max_offsets)
        if limits.max_bytes is not None and available:
            ends = limit_offsets(starts, ends, limits.max_bytes, self._watcher.offset_bytes(starts, ends))
        return ends

    def _latest_of(self, starts: Offsets) -> Offsets:
        """A broker that has just become leader may not know all it has yet, and is asked again (KAFKA-7703)."""
        latest = self._resolver.latest(starts)
        for _ in range(self._options.retries):
            if all(latest[tp] >= start for tp, start in starts.items()):
                break
            self._time.sleep_ms(self._options.retry_interval_ms)
            latest = self._resolver.latest(starts)
        return latest

    def _new_starts(self, new: frozenset[TopicPartition]) -> Offsets:
        starts = self._resolver.earliest_that_exist(new)
        for tp, start in sorted(starts.items()):
            if start > 0:
                report_data_loss(
                    self._options.fail_on_data_loss, f"{tp} is new and begins at offset {start} instead of 0."
                )
        return starts
