"""One assigned partition: where it is read from, and whether it can be read at all.

Both threads use it under one lock. The rule that keeps positions right: a position that is valid
(`FetchState.FETCHING`) is moved by the application's thread alone, when records are handed out or the application
seeks. The I/O thread only gives positions to partitions that have none, and takes them from partitions whose
position a broker refused; it names the position it worked with, and nothing happens if that is no longer the one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from typing import Any

import attrs

from kclient.client.metadata_snapshot import LeaderAndEpoch
from kclient.common.node import Node
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.fetch_position import AutoOffsetReset, FetchPosition
from kclient.errors import KafkaError, NoOffsetForPartitionError


class FetchState(Enum):
    """The state of a partition's position: whether there is one, and whether it can be trusted."""

    INITIALIZING = "initializing"
    FETCHING = "fetching"
    AWAIT_RESET = "await reset"
    AWAIT_VALIDATION = "await validation"


@attrs.define(eq=False)
class PartitionChanges:
    """The changes of all partitions since somebody looked. Their lock guards it, as it does what it tells of.

    So the cost of a round is that of the few partitions which have changed, and not that of all.
    """

    partitions: set[TopicPartition] = attrs.Factory(set)
    """Those that may have to be fetched, or not to be, or otherwise."""
    states: int = 0
    """The number of times that a state or an error has changed."""


def _fetching_changes(state: TopicPartitionState, _field: object, value: Any) -> Any:
    state.changes.partitions.add(state.tp)
    return value


def _state_changes(state: TopicPartitionState, _field: object, value: Any) -> Any:
    state.changes.partitions.add(state.tp)
    state.changes.states += 1
    return value


@attrs.define(eq=False, repr=False)
class TopicPartitionState:
    """The state of a partition for as long as it is assigned; assigned once more it has a new one. Thread-safe.

    So what the I/O thread finds out for one that was given up meanwhile has no effect. `lock` is that of all
    partitions, for who looks at several.
    """

    tp: TopicPartition
    _lock: threading.RLock
    awaiting_callback: bool = attrs.field(default=False, on_setattr=_fetching_changes)
    changes: PartitionChanges = attrs.Factory(PartitionChanges)
    """Told of what is assigned below, under the lock and before it is."""
    turn: int = 0
    """Its place among the partitions that are fetched."""
    state: FetchState = attrs.field(default=FetchState.INITIALIZING, init=False, on_setattr=_state_changes)
    position: FetchPosition | None = attrs.field(default=None, init=False, on_setattr=_fetching_changes)
    reset: AutoOffsetReset | None = attrs.field(default=None, init=False)
    paused: bool = attrs.field(default=False, init=False, on_setattr=_fetching_changes)
    error: KafkaError | None = attrs.field(default=None, init=False, on_setattr=_state_changes)
    next_retry_ms: int = attrs.field(default=0, init=False)
    high_watermark: int | None = attrs.field(default=None, init=False)
    last_stable_offset: int | None = attrs.field(default=None, init=False)
    log_start_offset: int | None = attrs.field(default=None, init=False)
    end_requested: bool = attrs.field(default=False, init=False)
    """True while `end` is looked up; for who asks for that."""
    # Not after the position was given up: whether what was handed out last can be handed out again.
    _may_go_back: bool = attrs.field(default=False, init=False)
    preferred_replica: int | None = attrs.field(default=None, init=False, on_setattr=_fetching_changes)
    """The follower to fetch from, as far as `replica_to_read` agrees."""
    _preferred_until_ms: int = attrs.field(default=0, init=False)

    @property
    def has_valid_position(self) -> bool:
        """True if records may be read and returned from the position."""
        return self.state is FetchState.FETCHING

    def is_fetchable(self) -> bool:
        """Return True if the position may be fetched from now."""
        return self.state is FetchState.FETCHING and not self.paused and not self.awaiting_callback

    def fetch_position(self) -> FetchPosition | None:
        """The position, if it may be fetched from now."""
        with self._lock:
            return self.position if self.is_fetchable() else None

    def valid_position(self) -> FetchPosition | None:
        """The position; None if there is none that can be trusted."""
        with self._lock:
            return self.position if self.has_valid_position else None

    def consumed(self) -> OffsetAndMetadata | None:
        """The offset, with its epoch, that a commit of this partition would name; None without a valid position."""
        position = self.valid_position()
        return None if position is None else OffsetAndMetadata(position.offset, "", position.offset_epoch)

    def end(self, read_committed: bool) -> int | None:
        """The offset behind what can be read, as of the last answer of a broker; None before there was one."""
        return self.last_stable_offset if read_committed else self.high_watermark

    def lag(self, read_committed: bool) -> int | None:
        """Records between the position and the end of what can be read; None while either is unknown."""
        end = self.end(read_committed)
        position = self.valid_position()
        return None if end is None or position is None else max(end - position.offset, 0)

    def lead(self) -> int | None:
        """Records between the start of the log and the position; None while either is unknown."""
        start = self.log_start_offset
        position = self.valid_position()
        return None if start is None or position is None else max(position.offset - start, 0)

    # The application's side.

    def seek(self, position: FetchPosition, *, validate: bool = False) -> None:
        """Read from `position` on; with `validate`, only after a broker confirmed its epoch."""
        with self._lock:
            self._transition_to(FetchState.AWAIT_VALIDATION if validate else FetchState.FETCHING)
            self.position = position
            self.reset = None
            self.preferred_replica = None

    def set_paused(self, paused: bool) -> None:
        """Read nothing from it, or read it again."""
        with self._lock:
            self.paused = paused

    def begin_callback(self) -> None:
        """The listener is about to hear that it goes, so it must not be read any more."""
        with self._lock:
            self.awaiting_callback = True

    def finish_callback(self) -> None:
        """The listener has heard of it, so it may be read."""
        with self._lock:
            self.awaiting_callback = False

    def await_reset(self, reset: AutoOffsetReset) -> None:
        """Give the position up until ListOffsets says where `reset` leads."""
        with self._lock:
            self._transition_to(FetchState.AWAIT_RESET)
            self.position = None
            self.reset = reset
            self._may_go_back = False
            self.preferred_replica = None

    def advance(
        self,
        expected: int,
        offset: int,
        offset_epoch: int | None,
        undo: dict[TopicPartition, FetchPosition] | None = None,
    ) -> bool:
        """Move on to `offset` if it may be read and still is at offset `expected`; returns whether it moved.

        `undo` gets the position before, for `take_back`.
        """
        with self._lock:
            before = self.position
            if before is None or before.offset != expected:
                return False
            if self.state is not FetchState.FETCHING or self.paused or self.awaiting_callback:
                return False
            self._move(before, offset, offset_epoch, undo)
            return True

    def catch_up(
        self,
        expected: int,
        last: tuple[int, int | None] | None,
        to: tuple[int, int | None],
        undo: dict[TopicPartition, FetchPosition],
    ) -> bool:
        """Move on from offset `expected` past records that the application has already, whatever has begun meanwhile.

        `last` and `to` are offset and epoch before (None: where it is now) and behind the last of them. Returns False
        if the partition is somewhere else by now. May be called again where an exception ended it.
        """
        with self._lock:
            now = self.position
            if now is None or now.offset not in (expected, to[0]):
                return False
            if now.offset == expected:
                before = now if last is None else FetchPosition(*last, now.leader)
                self._move(before, *to, undo)
            return True

    def _move(
        self,
        before: FetchPosition,
        offset: int,
        offset_epoch: int | None,
        undo: dict[TopicPartition, FetchPosition] | None,
    ) -> None:
        if undo is not None:
            undo[self.tp] = before  # first, so that there is no moment at which a Ctrl-C could not be undone
            self._may_go_back = True
        # The leader known here may be newer than the one the records came from.
        self.position = FetchPosition(offset, offset_epoch, before.leader)

    def take_back(self, position: FetchPosition) -> None:
        """Undo `advance`: what was handed out did not reach the application."""
        with self._lock:
            # Also where validating the position has begun since; that starts again with this one.
            if self.position is not None and self._may_go_back:
                self.position = FetchPosition(position.offset, position.offset_epoch, self.position.leader)

    def is_readable_at(self, offset: int) -> bool | None:
        """Return True if records from `offset` on may be handed out now; None: they never will be."""
        with self._lock:
            if self.position is None or self.position.offset != offset:
                return None
            return self.is_fetchable()

    # The I/O thread's side: partitions without a valid position.

    def back_off(self, until_ms: int) -> None:
        """Try nothing for it before `until_ms`."""
        with self._lock:
            if not self.has_valid_position:
                self.next_retry_ms = until_ms

    def fail(self, error: KafkaError) -> None:
        """It cannot get a valid position: stand still, with `error` for the application, until it seeks."""
        with self._lock:
            if not self.has_valid_position:
                self.error = error

    def initialize(self, position: FetchPosition, *, validate: bool) -> None:
        """Start at the committed offset, unless something else was decided meanwhile."""
        with self._lock:
            if self.state is FetchState.INITIALIZING:
                self.seek(position, validate=validate)

    def initialize_by_policy(self, policy: AutoOffsetReset) -> None:
        """There is no committed offset: reset it, or with the policy none let the application know."""
        with self._lock:
            if self.state is not FetchState.INITIALIZING:
                return
            if policy.is_none:
                self._fail_without_offset()
            else:
                self.await_reset(policy)

    def start_over(self, policy: AutoOffsetReset) -> None:
        """It is a partition of another topic by now: forget what is known of it, and start where `policy` says."""
        with self._lock:
            self.high_watermark = self.last_stable_offset = self.log_start_offset = None
            self.await_reset(policy)
            if policy.is_none:
                self._fail_without_offset()

    def finish_reset(self, asked: AutoOffsetReset, position: FetchPosition) -> bool:
        """ListOffsets answered what was `asked`; False if something else is wanted by now."""
        with self._lock:
            if self.state is not FetchState.AWAIT_RESET or self.reset != asked:
                return False
            self.seek(position)
            return True

    def redirect_reset(self, asked: AutoOffsetReset, instead: AutoOffsetReset) -> None:
        """Reset `instead`, because what was `asked` led nowhere; not if something else is wanted by now."""
        with self._lock:
            if self.state is FetchState.AWAIT_RESET and self.reset == asked:
                self.await_reset(instead)

    def refuse_position(self, refused: FetchPosition, policy: AutoOffsetReset, error: KafkaError) -> bool:
        """A broker refused the position: reset it, or with the policy none stand still with `error`.

        Returns False if the partition is somewhere else by now.
        """
        with self._lock:
            if self.position is None or self.position.offset != refused.offset:
                return False
            if policy.is_none:
                self._transition_to(FetchState.AWAIT_RESET)
                self.error = error
            else:
                self.await_reset(policy)
            return True

    def finish_validation(self, validated: FetchPosition, diverged: FetchPosition | None) -> None:
        """A broker confirmed `validated`, or names in `diverged` where the log differs from what was read."""
        with self._lock:
            if self.state is FetchState.AWAIT_VALIDATION and self.position == validated:
                self.seek(diverged or validated)

    def abandon_validation(self, refused: FetchPosition, policy: AutoOffsetReset) -> None:
        """The log was cut below the position nobody knows where: reset it."""
        with self._lock:
            if self.position == refused and not self.has_valid_position:
                self.await_reset(policy)

    def fail_validation(self, validated: FetchPosition, error: KafkaError) -> None:
        """The log was cut below the position and the application has to decide."""
        with self._lock:
            if self.position == validated:
                self.fail(error)

    def update_leader(self, leader: LeaderAndEpoch, can_validate: Callable[[Node], bool]) -> None:
        """New metadata: a position that knows its epoch is validated where the leader's epoch moved on."""
        with self._lock:
            if self.preferred_replica is not None:
                self.changes.partitions.add(self.tp)  # its broker may be gone
            position = self.position
            if position is None or leader.leader is None or leader == position.leader:
                return
            known = -1 if position.leader.epoch is None else position.leader.epoch
            newer = leader.epoch is not None and leader.epoch > known
            validate = newer and position.offset_epoch is not None and can_validate(leader.leader)
            if self.has_valid_position and validate:
                self._transition_to(FetchState.AWAIT_VALIDATION)
                self.preferred_replica = None
            self.position = FetchPosition(position.offset, position.offset_epoch, leader)

    # The I/O thread's side: what brokers say about the log and its replicas.

    def update_log_ends(self, high_watermark: int, last_stable_offset: int, log_start_offset: int) -> None:
        """Take over the offsets that came with a fetch; negative values are unknown."""
        with self._lock:
            if high_watermark >= 0:
                self.high_watermark = high_watermark
            if last_stable_offset >= 0:
                self.last_stable_offset = last_stable_offset
            if log_start_offset >= 0:
                self.log_start_offset = log_start_offset

    def update_end(self, offset: int, read_committed: bool) -> None:
        """Take over an end that was asked for, unless a fetch has told of a later one since."""
        with self._lock:
            known = self.end(read_committed)
            if offset >= 0 and (known is None or known < offset):
                if read_committed:
                    self.last_stable_offset = offset
                else:
                    self.high_watermark = offset

    def prefer_replica(self, node_id: int, until_ms: int) -> None:
        """Fetch from this follower (KIP-392) until it fails or `until_ms`, when the leader is asked again."""
        with self._lock:
            self.preferred_replica = node_id
            self._preferred_until_ms = until_ms

    def replica_to_read(self, now_ms: int) -> int | None:
        """The follower to fetch from, None for the leader."""
        with self._lock:
            if self.preferred_replica is not None and now_ms >= self._preferred_until_ms:
                self.preferred_replica = None
            return self.preferred_replica

    def clear_preferred_replica(self) -> int | None:
        """Go back to the leader; returns the follower it was fetched from, if any."""
        with self._lock:
            replica, self.preferred_replica = self.preferred_replica, None
            return replica

    def _transition_to(self, state: FetchState) -> None:
        """Move to `state`; what was known of the old one (an error, a backoff) is forgotten."""
        self.state = state
        self.error = None
        self.next_retry_ms = 0

    def _fail_without_offset(self) -> None:
        """Stand still until the application seeks: nothing else says where to start."""
        self.error = NoOffsetForPartitionError(
            f"{self.tp} has no committed offset and auto.offset.reset is none; seek() to an offset",
            topic_partitions=frozenset((self.tp,)),
        )
