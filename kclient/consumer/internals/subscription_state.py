"""The consumer's subscription, its assignment, and its positions.

Both threads use it under one lock. The rule that keeps positions right: a position that is valid
(`FetchState.FETCHING`) is moved by the application's thread alone, when records are handed out or the application
seeks. The I/O thread only gives positions to partitions that have none, and takes them from partitions whose
position a broker refused; it names the position it worked with, and nothing happens if that is no longer the one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kclient.client.metadata_snapshot import LeaderAndEpoch
from kclient.common.node import Node
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.partition_state import (
    AutoOffsetReset,
    FetchPosition,
    FetchState,
    PartitionState,
)
from kclient.consumer.internals.topic_subscription import SubscriptionType, TopicSubscription
from kclient.errors import IllegalStateError, InvalidOffsetError, KafkaError, NoOffsetForPartitionError
from kclient.utils.log_context import LogContext

TopicIdOf = Callable[[str], Uuid | None]


class SubscriptionState(TopicSubscription):
    """Subscription, assignment and positions. Thread-safe."""

    def __init__(self, default_reset: AutoOffsetReset, log_context: LogContext) -> None:
        super().__init__()
        self._log = log_context.logger(__name__)
        self.default_reset = default_reset
        self._assignment: dict[TopicPartition, PartitionState] = {}
        self._turns: list[PartitionState] = []
        self._topic_ids: dict[str, Uuid] = {}

    def metadata_topics(self) -> frozenset[str]:
        """The topics whose metadata has to be known."""
        with self._lock:
            if self._type is SubscriptionType.USER_ASSIGNED:
                return frozenset(tp.topic for tp in self._assignment)
            return self._subscription | self._group_subscription

    def unsubscribe(self) -> None:
        """Forget subscription and assignment."""
        with self._lock:
            self._forget_topics()
            self._replace_assignment({}, lambda _: None)

    # What the consumer has.

    def assign_from_user(self, partitions: Iterable[TopicPartition], topic_id: TopicIdOf) -> bool:
        """Take exactly `partitions`; those held already keep their state. Returns whether anything changed.

        `topic_id` says by which id a topic is known now: what is read belongs to that one.
        """
        with self._lock:
            self._set_type(SubscriptionType.USER_ASSIGNED)
            new = {tp: self._assignment.get(tp) or PartitionState(tp) for tp in partitions}
            if new.keys() == self._assignment.keys():
                return False
            self._replace_assignment(new, topic_id)
            return True

    def assign_from_group(self, partitions: Iterable[TopicPartition], topic_id: TopicIdOf) -> None:
        """Take exactly `partitions` from the group; new ones wait for `assignment_told` before they are read."""
        with self._lock:
            if not self.has_auto_assigned_partitions():
                raise IllegalStateError("the group assigned partitions to a consumer that is not subscribed")
            self._replace_assignment(
                {
                    tp: self._assignment.get(tp) or PartitionState(tp, awaiting_callback=True)
                    for tp in partitions
                },
                topic_id,
            )

    def assignment_told(self) -> None:
        """The listener has heard of the assignment, so its partitions may be read."""
        with self._lock:
            for state in self._turns:
                state.awaiting_callback = False

    def matches_subscription(self, partitions: Iterable[TopicPartition]) -> bool:
        """Return True if the group assigned only what is subscribed to now."""
        with self._lock:
            if self._type is SubscriptionType.AUTO_PATTERN:
                return all(self.matches(tp.topic) for tp in partitions)
            return all(tp.topic in self._subscription for tp in partitions)

    def assigned_partitions(self) -> frozenset[TopicPartition]:
        """The partitions held now."""
        with self._lock:
            return frozenset(self._assignment)

    def is_assigned(self, tp: TopicPartition) -> bool:
        """Return True if `tp` is held now."""
        return tp in self._assignment

    def _replace_assignment(self, new: dict[TopicPartition, PartitionState], topic_id: TopicIdOf) -> None:
        self._assignment = new
        self._turns = list(new.values())
        ids = {topic: self._topic_ids.get(topic) or topic_id(topic) for topic in {tp.topic for tp in new}}
        self._topic_ids = {topic: known for topic, known in ids.items() if known is not None}

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
            for topic in {tp.topic for tp in self._assignment}:
                before, now = self._topic_ids.get(topic), topic_id(topic)
                if now is None or now == before:
                    continue
                self._topic_ids[topic] = now
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
            states = [state for state in self._turns if state.tp.topic in again]
            for state in states:
                state.start_over(self.default_reset)
            return [state.tp for state in states]

    # Where it reads.

    def offset_to_fetch(self, tp: TopicPartition) -> int | None:
        """The offset of the position of `tp`; None if that is not valid, or `tp` is not held."""
        state = self._assignment.get(tp)
        if state is None or state.state is not FetchState.FETCHING:
            return None
        position = state.position
        return None if position is None else position.offset

    def position(self, tp: TopicPartition) -> FetchPosition | None:
        """The position of `tp` if it is valid, else None. Raises if `tp` is not assigned."""
        with self._lock:
            state = self._state(tp)
            return state.position if state.has_valid_position else None

    def seek(self, tp: TopicPartition, position: FetchPosition, *, validate: bool = False) -> None:
        """Read `tp` from `position` on. For the application's thread. Raises if `tp` is not assigned."""
        with self._lock:
            self._state(tp).seek(position, validate=validate)

    def advance(
        self,
        tp: TopicPartition,
        expected: int,
        offset: int,
        offset_epoch: int | None,
        undo: dict[TopicPartition, FetchPosition] | None = None,
    ) -> bool:
        """Move `tp` on to `offset` if it may be read and still is at offset `expected`; returns whether it moved.

        `undo` gets the position before, for `take_back`.
        """
        with self._lock:
            state = self._assignment.get(tp)
            if state is None or state.position is None or not state.is_fetchable():
                return False
            before = state.position
            if before.offset != expected:
                return False
            if undo is not None:
                undo[tp] = before  # first, so that there is no moment at which a Ctrl-C could not be undone
                state.may_go_back = True
            # The leader known here may be newer than the one the records came from.
            state.position = FetchPosition(offset, offset_epoch, before.leader)
            return True

    def take_back(self, tp: TopicPartition, position: FetchPosition) -> None:
        """Undo `advance`: what was handed out did not reach the application."""
        with self._lock:
            state = self._assignment.get(tp)
            # Also where validating the position has begun since; that starts again with this one.
            if state is not None and state.position is not None and state.may_go_back:
                state.position = FetchPosition(position.offset, position.offset_epoch, state.position.leader)

    def is_readable_at(self, tp: TopicPartition, offset: int) -> bool | None:
        """Return True if records of `tp` from `offset` on may be handed out now.

        None: they never will be, because the partition was given up or the position is another one.
        """
        with self._lock:
            state = self._assignment.get(tp)
            if state is None or state.position is None or state.position.offset != offset:
                return None
            return state.is_fetchable()

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The valid positions of all partitions, as a commit says them."""
        with self._lock:
            consumed = ((state.tp, state.consumed()) for state in self._turns)
            return {tp: offset for tp, offset in consumed if offset is not None}

    def fetchable(self) -> list[tuple[TopicPartition, FetchPosition, bool]]:
        """Partitions to fetch with their positions; those at the front were given a turn longest ago.

        The last of the three says whether `preferred_replica` is to be asked where to fetch.
        """
        found = []
        with self._lock:
            for state in self._turns:
                position = state.position
                if position is not None and state.is_fetchable():
                    found.append((state.tp, position, state.preferred_replica is not None))
        return found

    def move_to_end(self, tp: TopicPartition) -> None:
        """`tp` had its turn; others are fetched first the next time."""
        with self._lock:
            state = self._assignment.get(tp)
            if state is not None and self._turns[-1] is not state:
                self._turns.remove(state)
                self._turns.append(state)

    # Partitions without a valid position.

    def all_valid(self) -> bool:
        """Return True if there is no such partition, as nearly always: then none of what follows finds anything."""
        with self._lock:
            return all(state.state is FetchState.FETCHING for state in self._turns)

    def needing_offsets(self, now_ms: int) -> list[TopicPartition]:
        """Partitions whose committed offset has to be looked up."""
        return self._in_state(FetchState.INITIALIZING, now_ms)

    def needing_reset(self, now_ms: int) -> dict[TopicPartition, AutoOffsetReset]:
        """Partitions that start where a policy says."""
        with self._lock:
            return {
                tp: reset
                for tp in self._in_state(FetchState.AWAIT_RESET, now_ms)
                if (reset := self._assignment[tp].reset) is not None
            }

    def needing_validation(self, now_ms: int) -> dict[TopicPartition, FetchPosition]:
        """Partitions whose position a broker has to confirm."""
        with self._lock:
            return {
                tp: position
                for tp in self._in_state(FetchState.AWAIT_VALIDATION, now_ms)
                if (position := self._assignment[tp].position) is not None
            }

    def next_retry_delay_ms(self, now_ms: int) -> int | None:
        """The time until a partition without a valid position is tried again; None if there is none waiting."""
        with self._lock:
            waits = [state.next_retry_ms - now_ms for state in self._turns if state.next_retry_ms > now_ms]
            return min(waits, default=None)

    def _in_state(self, wanted: FetchState, now_ms: int) -> list[TopicPartition]:
        with self._lock:
            return [
                state.tp
                for state in self._turns
                if state.state is wanted
                and state.error is None
                and state.next_retry_ms <= now_ms
                and not state.awaiting_callback
            ]

    def back_off(self, partitions: Iterable[TopicPartition], until_ms: int) -> None:
        """Try nothing for these before `until_ms`."""
        with self._lock:
            for tp in partitions:
                state = self._assignment.get(tp)
                if state is not None and not state.has_valid_position:
                    state.next_retry_ms = until_ms

    def initialize(self, tp: TopicPartition, position: FetchPosition, *, validate: bool) -> None:
        """Start `tp` at its committed offset, unless something else was decided meanwhile."""
        with self._lock:
            state = self._assignment.get(tp)
            if state is not None and state.state is FetchState.INITIALIZING:
                state.seek(position, validate=validate)

    def initialize_by_policy(self, tp: TopicPartition) -> None:
        """`tp` has no committed offset: reset it, or with the policy none let the application know."""
        with self._lock:
            state = self._assignment.get(tp)
            if state is None or state.state is not FetchState.INITIALIZING:
                return
            if self.default_reset.is_none:
                state.fail_without_offset()
            else:
                state.await_reset(self.default_reset)

    def request_reset(self, tp: TopicPartition, reset: AutoOffsetReset) -> None:
        """Give the position of `tp` up and start where `reset` says. For the application's thread."""
        with self._lock:
            self._state(tp).await_reset(reset)

    def finish_reset(self, tp: TopicPartition, asked: AutoOffsetReset, position: FetchPosition) -> None:
        """ListOffsets answered what was `asked`; ignored if something else is wanted by now."""
        with self._lock:
            state = self._assignment.get(tp)
            if state is None or state.state is not FetchState.AWAIT_RESET or state.reset != asked:
                return
            self._log.info("Starting %s at offset %d (%s)", tp, position.offset, asked.policy)
            state.seek(position)

    def redirect_reset(self, tp: TopicPartition, asked: AutoOffsetReset, instead: AutoOffsetReset) -> None:
        """Reset `instead`, because what was `asked` led nowhere; not if something else is wanted by now."""
        with self._lock:
            state = self._assignment.get(tp)
            if state is not None and state.state is FetchState.AWAIT_RESET and state.reset == asked:
                state.await_reset(instead)

    def refuse_position(self, tp: TopicPartition, refused: FetchPosition, error: KafkaError) -> bool:
        """A broker refused the position: reset it, or with the policy none stand still with `error`.

        Returns False if the partition is somewhere else by now.
        """
        with self._lock:
            state = self._assignment.get(tp)
            if state is None or state.position is None or state.position.offset != refused.offset:
                return False
            if self.default_reset.is_none:
                state.transition_to(FetchState.AWAIT_RESET)
                state.fail(error)
            else:
                state.await_reset(self.default_reset)
            return True

    def finish_validation(
        self, tp: TopicPartition, validated: FetchPosition, diverged: FetchPosition | None
    ) -> bool:
        """A broker confirmed `validated`, or names in `diverged` where the log differs from what was read.

        Returns False if the partition is somewhere else by now.
        """
        with self._lock:
            state = self._assignment.get(tp)
            if state is None or state.state is not FetchState.AWAIT_VALIDATION:
                return False
            if state.position != validated:
                return False
            state.seek(diverged or validated)
            return True

    def abandon_validation(self, tp: TopicPartition, refused: FetchPosition) -> None:
        """The log was cut below the position nobody knows where: reset it."""
        with self._lock:
            state = self._assignment.get(tp)
            if state is not None and state.position == refused and not state.has_valid_position:
                state.await_reset(self.default_reset)

    def fail_validation(self, tp: TopicPartition, validated: FetchPosition, error: KafkaError) -> None:
        """The log was cut below the position and the application has to decide."""
        with self._lock:
            state = self._assignment.get(tp)
            if state is not None and state.position == validated and not state.has_valid_position:
                state.fail(error)

    def fail(self, partitions: Iterable[TopicPartition], error: KafkaError) -> None:
        """Partitions without a valid position cannot get one: let the application know."""
        with self._lock:
            for tp in partitions:
                state = self._assignment.get(tp)
                if state is not None and not state.has_valid_position:
                    state.fail(error)

    def update_leaders(
        self,
        leader_of: Callable[[TopicPartition], LeaderAndEpoch],
        can_validate: Callable[[Node], bool],
    ) -> None:
        """New metadata: positions that know their epoch are validated where the leader's epoch moved on."""
        with self._lock:
            for state in self._turns:
                position, leader = state.position, leader_of(state.tp)
                if position is None or leader.leader is None or leader == position.leader:
                    continue
                known = -1 if position.leader.epoch is None else position.leader.epoch
                newer = leader.epoch is not None and leader.epoch > known
                validate = newer and position.offset_epoch is not None and can_validate(leader.leader)
                if state.has_valid_position and validate:
                    state.transition_to(FetchState.AWAIT_VALIDATION)
                    state.clear_preferred_replica()
                state.position = FetchPosition(position.offset, position.offset_epoch, leader)

    def raise_error(self) -> None:
        """Raise what keeps partitions from having a position and only the application can decide.

        An error is raised at every call until the application seeks. One that cannot be mended by seeking,
        such as a missing authorization, is raised once and the partition tried again.
        """
        with self._lock:
            for state in self._turns:
                if state.error is not None:
                    break
            else:
                return
            failed = [state for state in self._turns if state.error is not None]
            error = failed[0].error
            assert error is not None
            if isinstance(error, NoOffsetForPartitionError):
                without = frozenset(
                    state.tp for state in failed if isinstance(state.error, NoOffsetForPartitionError)
                )
                raise NoOffsetForPartitionError(
                    f"No offset is committed for {', '.join(map(str, sorted(without)))} and "
                    "auto.offset.reset is none; seek() to an offset",
                    topic_partitions=without,
                )
            if not isinstance(error, InvalidOffsetError):
                for state in failed:
                    if state.error is error:
                        state.error = None
            raise error

    # Pausing, and what brokers say about the log.

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Hand nothing out of these until `resume`. Raises if one is not assigned."""
        self._set_paused(partitions, True)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Read these again. Raises if one is not assigned."""
        self._set_paused(partitions, False)

    def paused(self) -> frozenset[TopicPartition]:
        """The paused partitions."""
        with self._lock:
            return frozenset(state.tp for state in self._turns if state.paused)

    def _set_paused(self, partitions: Collection[TopicPartition], paused: bool) -> None:
        with self._lock:
            for state in [self._state(tp) for tp in partitions]:
                state.paused = paused

    def update_log_ends(
        self, tp: TopicPartition, high_watermark: int, last_stable_offset: int, log_start_offset: int
    ) -> None:
        """Take over the offsets that a fetch told of the log; negative values are unknown."""
        with self._lock:
            state = self._assignment.get(tp)
            if state is None:
                return
            if high_watermark >= 0:
                state.high_watermark = high_watermark
            if last_stable_offset >= 0:
                state.last_stable_offset = last_stable_offset
            if log_start_offset >= 0:
                state.log_start_offset = log_start_offset

    def lag(self, tp: TopicPartition, read_committed: bool) -> int | None:
        """Records between the position and the end of what can be read; None while either is unknown."""
        with self._lock:
            state = self._state(tp)
            end = state.last_stable_offset if read_committed else state.high_watermark
            if end is None or state.position is None or not state.has_valid_position:
                return None
            return max(end - state.position.offset, 0)

    def max_lag(self, read_committed: bool) -> int:
        """The largest lag of any partition, as far as they are known."""
        with self._lock:
            return max((self.lag(state.tp, read_committed) or 0 for state in self._turns), default=0)

    def prefer_replica(self, tp: TopicPartition, node_id: int, until_ms: int) -> None:
        """Fetch `tp` from this follower (KIP-392) until it fails or `until_ms`, when the leader is asked again."""
        with self._lock:
            state = self._assignment.get(tp)
            if state is not None:
                state.preferred_replica = node_id
                state.preferred_until_ms = until_ms

    def preferred_replica(self, tp: TopicPartition, now_ms: int) -> int | None:
        """The follower to fetch `tp` from, None for the leader."""
        with self._lock:
            state = self._assignment.get(tp)
            if state is None or state.preferred_replica is None:
                return None
            if now_ms >= state.preferred_until_ms:
                state.clear_preferred_replica()
            return state.preferred_replica

    def clear_preferred_replica(self, tp: TopicPartition) -> int | None:
        """Go back to the leader of `tp`; returns the follower it was fetched from, if any."""
        with self._lock:
            state = self._assignment.get(tp)
            return None if state is None else state.clear_preferred_replica()

    def _state(self, tp: TopicPartition) -> PartitionState:
        state = self._assignment.get(tp)
        if state is None:
            raise IllegalStateError(f"{tp} is not assigned to this consumer")
        return state
