"""One assigned partition: where it is read from, and whether it can be read at all."""

from __future__ import annotations

from enum import Enum
from typing import Final

import attrs

from kclient.client.metadata_snapshot import NO_LEADER, LeaderAndEpoch
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import IllegalStateError, KafkaError, NoOffsetForPartitionError

EARLIEST: Final = -2
LATEST: Final = -1


@attrs.frozen
class AutoOffsetReset:
    """The policy for a start without a valid offset (KIP-1106). Immutable."""

    policy: str
    duration_ms: int | None = None

    @property
    def is_none(self) -> bool:
        """True if the application has to decide by itself."""
        return self.policy == "none"

    def timestamp(self, wall_ms: int) -> int:
        """The value that ListOffsets is asked for: a time in ms since the epoch, or the code of an end of the log."""
        if self.duration_ms is not None:
            return wall_ms - self.duration_ms
        return EARLIEST if self.policy == "earliest" else LATEST


RESET_TO_EARLIEST: Final = AutoOffsetReset("earliest")
RESET_TO_LATEST: Final = AutoOffsetReset("latest")


@attrs.define
class FetchPosition:
    """The next offset to read. Never changed once made; not frozen, because iteration makes one for each record and
    the constructor of a frozen class takes three times as long.

    `offset_epoch` is the leader epoch of the record before it, with which a truncated log is found out (KIP-320);
    `leader` says whom to ask, and under which epoch.
    """

    offset: int
    offset_epoch: int | None = None
    leader: LeaderAndEpoch = NO_LEADER

    def __str__(self) -> str:
        return str(self.offset) if self.offset_epoch is None else f"{self.offset} (epoch {self.offset_epoch})"


class FetchState(Enum):
    """The state of a partition's position: whether there is one, and whether it can be trusted."""

    INITIALIZING = "initializing"
    FETCHING = "fetching"
    AWAIT_RESET = "await reset"
    AWAIT_VALIDATION = "await validation"


_VALID_NEXT = {
    FetchState.INITIALIZING: {FetchState.FETCHING, FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION},
    FetchState.FETCHING: {FetchState.FETCHING, FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION},
    FetchState.AWAIT_RESET: {FetchState.FETCHING, FetchState.AWAIT_RESET, FetchState.AWAIT_VALIDATION},
    FetchState.AWAIT_VALIDATION: {
        FetchState.FETCHING,
        FetchState.AWAIT_RESET,
        FetchState.AWAIT_VALIDATION,
    },
}


class PartitionState:
    """The state of one assigned partition. Guarded by the lock of the `SubscriptionState` that owns it."""

    __slots__ = (
        "awaiting_callback",
        "error",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "may_go_back",
        "next_retry_ms",
        "paused",
        "position",
        "preferred_replica",
        "preferred_until_ms",
        "reset",
        "state",
        "tp",
    )

    def __init__(self, tp: TopicPartition, *, awaiting_callback: bool = False) -> None:
        self.tp = tp
        self.state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.reset: AutoOffsetReset | None = None
        self.paused = False
        self.error: KafkaError | None = None
        self.next_retry_ms = 0
        self.awaiting_callback = awaiting_callback
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.may_go_back = False
        """True if what was handed out last can be handed out again: not after the position was given up."""
        self.preferred_replica: int | None = None
        self.preferred_until_ms = 0

    def transition_to(self, state: FetchState) -> None:
        """Move to `state`; what was known of the old one (an error, a backoff) is forgotten."""
        if state not in _VALID_NEXT[self.state]:
            raise IllegalStateError(f"{self.tp} cannot go from {self.state.value} to {state.value}")
        self.state = state
        self.error = None
        self.next_retry_ms = 0

    @property
    def has_valid_position(self) -> bool:
        """True if records may be read and returned from the position."""
        return self.state is FetchState.FETCHING

    def is_fetchable(self) -> bool:
        """Return True if the position may be fetched from now."""
        return self.state is FetchState.FETCHING and not self.paused and not self.awaiting_callback

    def seek(self, position: FetchPosition, *, validate: bool = False) -> None:
        """Read from `position` on; with `validate`, only after a broker confirmed its epoch."""
        self.transition_to(FetchState.AWAIT_VALIDATION if validate else FetchState.FETCHING)
        self.position = position
        self.reset = None
        self.clear_preferred_replica()

    def await_reset(self, reset: AutoOffsetReset) -> None:
        """Give the position up until ListOffsets says where `reset` leads."""
        self.transition_to(FetchState.AWAIT_RESET)
        self.position = None
        self.reset = reset
        self.may_go_back = False
        self.clear_preferred_replica()

    def start_over(self, reset: AutoOffsetReset) -> None:
        """It is a partition of another topic by now: forget what is known of it, and start where `reset` says."""
        self.high_watermark = self.last_stable_offset = self.log_start_offset = None
        self.await_reset(reset)
        if reset.is_none:
            self.fail_without_offset()

    def fail_without_offset(self) -> None:
        """Stand still until the application seeks: nothing else says where to start."""
        self.fail(
            NoOffsetForPartitionError(
                f"{self.tp} has no committed offset and auto.offset.reset is none; seek() to an offset",
                topic_partitions=frozenset((self.tp,)),
            )
        )

    def fail(self, error: KafkaError) -> None:
        """Stand still, with `error` for the application, until it seeks."""
        self.error = error

    def clear_preferred_replica(self) -> int | None:
        """Go back to the leader; returns the replica that was read from, None if it was the leader."""
        replica, self.preferred_replica = self.preferred_replica, None
        return replica

    def consumed(self) -> OffsetAndMetadata | None:
        """The offset, with its epoch, that a commit of this partition would name; None if it has no valid position."""
        if self.position is None or self.state is not FetchState.FETCHING:
            return None
        return OffsetAndMetadata(self.position.offset, "", self.position.offset_epoch)
