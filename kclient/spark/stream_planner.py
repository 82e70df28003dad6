"""The offsets of a stream's micro-batches: where it starts, how far each batch goes, and what is lost on the way.

Spark calls this in one process for as long as the query runs: `latest_offset`, writing the answer to its log, `plan`,
and, with the next batch, `commit`. After a restart it goes on from its log, with `plan` if the last batch was not
finished.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaError
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
from kclient.spark.resolver import OffsetResolver, asked_for_what_is_gone
from kclient.utils.time import SYSTEM_TIME, Time

if TYPE_CHECKING:
    from kclient.spark.committer import GroupCommitter
    from kclient.spark.topic_ids import TopicIds
    from kclient.spark.watcher import RecordWatcher

_SPIN_MS = 50
"""Asked again within this time, a query does nothing but ask: Spark does so every 10 ms."""


@attrs.define(eq=False)
class StreamPlanner:
    """Plans the micro-batches of one run of a query. Used by one thread."""

    _options: SourceOptions
    _resolver: OffsetResolver
    _topics: TopicIds
    _watcher: RecordWatcher
    _committer: GroupCommitter | None
    _time: Time = SYSTEM_TIME
    _gate: DelayGate = attrs.field(init=False)
    _first: Offsets | None = attrs.field(default=None, init=False)
    _last: Mapping[str, Any] | None = attrs.field(default=None, init=False)
    _latest: Offsets = attrs.field(factory=dict, init=False)
    _first_ids: Mapping[str, Uuid] = attrs.field(factory=dict, init=False)
    _frozen: Offsets | None = attrs.field(default=None, init=False)
    _frozen_ids: Mapping[str, Uuid] = attrs.field(factory=dict, init=False)
    # Topics that were created again before the end that was decided last, which is the new ones' beginning.
    _again: set[str] = attrs.field(factory=set, init=False)
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
        self._frozen = self._asked(lambda: self._resolver.latest(self._resolver.partitions_that_exist()))
        self._frozen_ids = self._resolver.topic_ids

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
            self._topics.begin_anew(self._first_ids)
            self._commit(self._latest)
            return to_json(self._latest)
        known = from_json(start)
        if known == self._first:
            self._topics.begin_anew(self._first_ids)
        self._topics.recall(known)
        # Asked again at once, the query has nothing else to do; otherwise another source of it may have.
        spinning = self._left_ms is not None and self._time.monotonic_ms() - self._left_ms <= _SPIN_MS
        end = self._next(known, all_available)
        if not self._again:
            # Otherwise first the new topics have to be in Spark's log, and then in the notes.
            self._commit(known)
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
        again = self._again if self._decides else self._look_at_topics(starts)
        # Nothing of a batch is of a topic that came after it was begun.
        starts, ends = ({tp: o for tp, o in each.items() if tp.topic not in again} for each in (starts, ends))
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
                ranges.append(OffsetRange(tp, starts[tp], ends[tp], self._topics.known.get(tp.topic)))
        return split(ranges, self._options.min_partitions, self._options.max_records_per_partition)

    def commit(self, end: Mapping[str, Any]) -> None:
        """The batch that ends here is done."""
        if not is_initial(end):
            self._commit(from_json(end))

    def _commit(self, offsets: Offsets) -> None:
        if self._committer is not None:
            # Offsets of a topic that is no more are none of the one that has its name.
            left = {tp: offset for tp, offset in offsets.items() if tp.topic not in self._again}
            self._committer.commit(left, self._topics.known)

    def _starts(self) -> Offsets:
        if self._first is None:
            partitions = self._resolver.partitions()
            self._first_ids = self._resolver.topic_ids
            self._first = self._resolver.start(self._options.starting, partitions)
        return dict(self._first)

    def _look_at_topics(self, reached: Offsets) -> set[str]:
        """Before a batch of the log is run again: the topics that are not those it was planned with any more."""
        self._topics.recall(reached)
        self._resolver.partitions_that_exist()
        again = set(self._topics.changed())
        # What this batch leaves out, the next one has to be told of.
        self._topics.take_over(but=again)
        return again

    def _starts_are_lasting(self) -> bool:
        bound = self._options.starting
        if bound.kind is Kind.OFFSETS:
            return LATEST not in bound.values.values()
        if bound.kind in {Kind.TIMESTAMP, Kind.TIMESTAMPS}:
            return not self._options.latest_if_no_match
        return bound.kind is Kind.EARLIEST

    def _next(self, known: Offsets, all_available: bool) -> Offsets:
        return self._asked(lambda: self._next_of_what_is_there(known, all_available))

    def _asked(self, questions: Callable[[], Offsets]) -> Offsets:
        """The answer to several questions, all of which are asked again if a topic is deleted between two of them."""
        tries = self._options.retries
        while True:
            try:
                return questions()
            except KafkaError as error:
                if tries == 0 or not asked_for_what_is_gone(error):
                    raise
            tries -= 1
            self._time.sleep_ms(self._options.retry_interval_ms)

    def _next_of_what_is_there(self, known: Offsets, all_available: bool) -> Offsets:
        self._again = set()
        partitions = self._resolver.partitions(known)
        anew = self._beginnings_of_new_topics(known, partitions)
        if self._frozen is not None:
            partitions &= set(self._frozen)
        starts = {tp: offset for tp, offset in known.items() if tp in partitions}
        new = partitions - set(known)
        if new:
            starts.update(self._resolver.earliest(new))
        starts.update(anew)
        ends = self._latest = self._latest_of(starts)
        # Not before all questions are answered: whoever asks again has to see the change as well.
        self._topics.take_over()
        if self._frozen is not None:
            ends = {tp: min(end, max(self._frozen[tp], starts[tp])) for tp, end in ends.items()}
        if not all_available:
            ends = self._limited(known, starts, ends)
        topics = {tp.topic for tp in anew}
        return {tp: end for tp, end in ends.items() if tp.topic not in topics} | anew

    def _beginnings_of_new_topics(self, known: Offsets, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offsets of partitions whose topics were deleted and created again since the last batch.

        These are the end of the next batch, which reads nothing of such a topic, neither old nor new. From then on the
        checkpoint has offsets of the new one, by whatever run, or connector, it is read.
        """
        changed = self._topics.changed()
        if not changed:
            return {}
        # Not every broker may know the new one yet.
        self._time.sleep_ms(self._options.retry_interval_ms)
        anew = self._resolver.earliest([tp for tp in partitions if tp.topic in changed])
        if self._frozen is not None:
            # What was created after the run had begun comes later than what it reads.
            late = {topic for topic, topic_id in changed.items() if self._frozen_ids.get(topic) != topic_id}
            kept = {tp: end for tp, end in self._frozen.items() if tp.topic not in late}
            self._frozen = kept | {tp: start for tp, start in anew.items() if tp.topic in late}
        for topic in changed:
            beginning = {tp: start for tp, start in anew.items() if tp.topic == topic}
            if beginning == {tp: offset for tp, offset in known.items() if tp.topic == topic}:
                # The offsets happen to be those of the new one already: there is no batch for it to begin with.
                anew = {tp: start for tp, start in anew.items() if tp.topic != topic}
            else:
                self._again.add(topic)
        return anew

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
