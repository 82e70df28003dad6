"""The partitions that the consumer holds, by its own choice or its group's."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import attrs

from kclient.client.metadata_snapshot import LeaderAndEpoch
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.fetch_position import AutoOffsetReset
from kclient.consumer.internals.requests import Offsets
from kclient.consumer.internals.topic_partition_state import FetchState, PartitionChanges, TopicPartitionState
from kclient.errors import IllegalStateError, InvalidOffsetError, NoOffsetForPartitionError
from kclient.utils.log_context import LogContext, Logger

TopicIdOf = Callable[[str], Uuid | None]


@attrs.define(eq=False, repr=False)
class AssignedPartitions:
    """The assignment: the state of each partition, and the topics, by their ids, that positions belong to.

    Thread-safe. `by_partition` is replaced as a whole and never changed, so anybody may look into it at any time.
    """

    default_reset: AutoOffsetReset
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    by_partition: Mapping[TopicPartition, TopicPartitionState] = attrs.field(factory=dict, init=False)
    _changes: PartitionChanges = attrs.field(factory=PartitionChanges, init=False)
    _turns: itertools.count[int] = attrs.field(factory=itertools.count, init=False)
    # As of so many changes of states.
    _summed_up: int = attrs.field(default=-1, init=False)
    _all_valid: bool = attrs.field(default=True, init=False)
    _any_failed: bool = attrs.field(default=False, init=False)
    _topic_ids: dict[str, Uuid] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)

    def replace(
        self,
        partitions: Iterable[TopicPartition],
        topic_id: TopicIdOf,
        *,
        expected: Mapping[str, Uuid] = MappingProxyType({}),
        awaiting_callback: bool = False,
    ) -> None:
        """Take exactly `partitions`; those held already keep their state.

        `topic_id` says by which id a topic is known now: what is read belongs to that one, unless another is
        `expected`. New partitions may have to wait for `finish_callback` before they are read.
        """
        with self._lock:
            before = self.by_partition
            held = {tp: state for tp, state in before.items() if self._is_of(tp.topic, expected)}
            self.by_partition = {
                tp: held.get(tp)
                or TopicPartitionState(tp, self._lock, awaiting_callback, self._changes, next(self._turns))
                for tp in partitions
            }
            self._changes.partitions.update(before, self.by_partition)
            self._changes.states += 1
            topics = {tp.topic for tp in self.by_partition}
            ids = {
                topic: expected.get(topic) or self._topic_ids.get(topic) or topic_id(topic)
                for topic in topics
            }
            self._topic_ids = {topic: known for topic, known in ids.items() if known is not None}

    def is_exactly(self, partitions: Iterable[TopicPartition], expected: Mapping[str, Uuid]) -> bool:
        """Return True if these partitions are held, of the topics with the `expected` ids."""
        with self._lock:
            return self.by_partition.keys() == set(partitions) and all(
                self._is_of(topic, expected) for topic in expected
            )

    def _is_of(self, topic: str, expected: Mapping[str, Uuid]) -> bool:
        return expected.get(topic) in (None, self._topic_ids.get(topic))

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out nothing of `partitions` any more: they are about to be taken away."""
        for tp in partitions:
            state = self.by_partition.get(tp)
            if state is not None:
                state.begin_callback()

    def finish_callback(self) -> None:
        """The listener has heard of the assignment, so its partitions may be read."""
        for state in self.by_partition.values():
            state.finish_callback()

    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions held now."""
        return frozenset(self.by_partition)

    def state(self, tp: TopicPartition) -> TopicPartitionState:
        """The state of `tp`. Raises IllegalStateError if it is not assigned."""
        state = self.by_partition.get(tp)
        if state is None:
            raise IllegalStateError(f"{tp} is not assigned to this consumer")
        return state

    # Topics.

    def topic_id(self, topic: str) -> Uuid | None:
        """The id of the topic of this name that positions belong to; None while it is not known, or not held."""
        return self._topic_ids.get(topic)

    def topic_ids(self) -> dict[str, Uuid]:
        """All of them."""
        with self._lock:
            return dict(self._topic_ids)

    def follow_topics(self, topic_id: TopicIdOf) -> list[TopicPartition]:
        """New metadata: start again in topics that were deleted and created again. Returns their partitions."""
        with self._lock:
            again = set()
            for topic in {tp.topic for tp in self.by_partition}:
                before, now = self._topic_ids.get(topic), topic_id(topic)
                if now is None or now == before:
                    continue
                self._topic_ids[topic] = now
                self._changes.partitions.update(tp for tp in self.by_partition if tp.topic == topic)
                if before is not None:
                    again.add(topic)
                    self._log.warning(
                        "Topic %s was deleted and created again: its id was %s and is %s. Positions, fetched records "
                        "and offsets to commit of the old one are dropped; auto.offset.reset (%s) says where to start",
                        topic,
                        before,
                        now,
                        self.default_reset.policy,
                    )
            states = [state for tp, state in self.by_partition.items() if tp.topic in again]
            for state in states:
                state.start_over(self.default_reset)
            return [state.tp for state in states]

    def update_leaders(
        self,
        leader_of: Callable[[TopicPartition], LeaderAndEpoch],
        can_validate: Callable[[Node], bool],
    ) -> None:
        """New metadata: take over who leads, and validate positions where the leader's epoch moved on."""
        for tp, state in self.by_partition.items():
            state.update_leader(leader_of(tp), can_validate)

    # All partitions.

    def take_changed(self) -> set[TopicPartition]:
        """The partitions whose fetching may have changed since the last call, also such as are not held any more."""
        with self._lock:
            changed = set(self._changes.partitions)
            self._changes.partitions.clear()
            return changed

    def in_turn(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """The same partitions; those at the front were given a turn longest ago."""
        held = self.by_partition
        return sorted(partitions, key=lambda tp: -1 if (state := held.get(tp)) is None else state.turn)

    def move_to_end(self, tp: TopicPartition) -> None:
        """`tp` had its turn; others are fetched first the next time."""
        state = self.by_partition.get(tp)
        if state is not None:
            state.turn = next(self._turns)

    def consumed(self) -> Offsets:
        """The valid positions of all partitions, as a commit says them."""
        with self._lock:
            consumed = ((tp, state.consumed()) for tp, state in self.by_partition.items())
            return {tp: offset for tp, offset in consumed if offset is not None}

    def max_lag(self, read_committed: bool) -> int:
        """The largest lag of any partition, as far as they are known."""
        return max((state.lag(read_committed) or 0 for state in self.by_partition.values()), default=0)

    def min_lead(self) -> float:
        """The smallest lead of any partition, as far as they are known; NaN if none is."""
        leads = [lead for state in list(self.by_partition.values()) if (lead := state.lead()) is not None]
        return min(leads, default=float("nan"))

    # Partitions without a valid position.

    def all_valid(self) -> bool:
        """Return True if there is no such partition, as nearly always: then none of what follows finds anything."""
        self._sum_up()
        return self._all_valid

    def _sum_up(self) -> None:
        """Look at all partitions if the state or the error of one has changed."""
        if self._summed_up == self._changes.states:
            return
        with self._lock:
            states = self.by_partition.values()
            self._all_valid = all(state.state is FetchState.FETCHING for state in states)
            self._any_failed = any(state.error is not None for state in states)
            self._summed_up = self._changes.states

    def in_state(self, wanted: FetchState, now_ms: int) -> dict[TopicPartition, TopicPartitionState]:
        """Partitions for which something is to be done now."""
        with self._lock:
            return {
                tp: state
                for tp, state in self.by_partition.items()
                if state.state is wanted
                and state.error is None
                and state.next_retry_ms <= now_ms
                and not state.awaiting_callback
            }

    def next_retry_delay_ms(self, now_ms: int) -> int | None:
        """The time until a partition without a valid position is tried again; None if there is none waiting."""
        states = self.by_partition.values()
        return min(
            (state.next_retry_ms - now_ms for state in states if state.next_retry_ms > now_ms), default=None
        )

    def raise_error(self) -> None:
        """Raise what keeps partitions from having a position and only the application can decide.

        An error is raised at every call until the application seeks. One that cannot be mended by seeking,
        such as a missing authorization, is raised once and the partition tried again.
        """
        self._sum_up()
        if not self._any_failed:
            return
        with self._lock:
            failed = [(state, state.error) for state in self.by_partition.values() if state.error is not None]
            if not failed:
                return
            error = failed[0][1]
            if isinstance(error, NoOffsetForPartitionError):
                without = frozenset(
                    state.tp for state, why in failed if isinstance(why, NoOffsetForPartitionError)
                )
                raise NoOffsetForPartitionError(
                    f"No offset is committed for {', '.join(map(str, sorted(without)))} and "
                    "auto.offset.reset is none; seek() to an offset",
                    topic_partitions=without,
                )
            if not isinstance(error, InvalidOffsetError):
                for state, why in failed:
                    if why is error:
                        state.error = None
            raise error
