"""What the application's thread and the I/O thread tell each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Generic, TypeVar

import attrs

from kclient.common.offsets import OffsetAndMetadata, OffsetAndTimestamp
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.utils.futures import CompletableFuture

T = TypeVar("T")


@attrs.define(eq=False)
class ApplicationEvent(Generic[T]):
    """Something the application wants done on the I/O thread, which completes `future`.

    `deadline_ms` is on the monotonic clock; what is not done by then fails with a KafkaTimeoutError.
    """

    deadline_ms: int
    future: CompletableFuture[T] = attrs.field(factory=CompletableFuture, kw_only=True)


@attrs.define(eq=False)
class CommitEvent(ApplicationEvent[Mapping[TopicPartition, OffsetAndMetadata]]):
    """Commit `offsets`; with `retry` until the deadline, else once."""

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    retry: bool


@attrs.define(eq=False)
class FetchCommittedEvent(ApplicationEvent[dict[TopicPartition, OffsetAndMetadata | None]]):
    """Look up the committed offsets of `partitions`; None where there is none."""

    partitions: frozenset[TopicPartition]


@attrs.define(eq=False)
class ListOffsetsEvent(ApplicationEvent[dict[TopicPartition, OffsetAndTimestamp | None]]):
    """Look up offsets by timestamp, or by the codes of the log's ends; None where there is none."""

    timestamps: Mapping[TopicPartition, int]


@attrs.define(eq=False)
class TopicMetadataEvent(ApplicationEvent[dict[str, list[PartitionInfo]]]):
    """Ask for the partitions of `topics`, or of all topics for None."""

    topics: tuple[str, ...] | None


@attrs.define(eq=False)
class SubscriptionChangedEvent(ApplicationEvent[None]):
    """The subscription or the user's own assignment is another one."""


@attrs.define(eq=False)
class RejoinEvent(ApplicationEvent[None]):
    """Start a rebalance because of `reason`."""

    reason: str


@attrs.define(eq=False)
class LeaveGroupEvent(ApplicationEvent[None]):
    """Leave the group because of `reason`, if in it."""

    reason: str


@attrs.define(eq=False)
class CallbackDoneEvent(ApplicationEvent[None]):
    """The application has carried out `callback`."""

    callback: RebalanceCallback


@attrs.define(eq=False)
class WakeupEvent(ApplicationEvent[None]):
    """End the call that the application's thread waits in, by calling `deliver`."""

    deliver: Callable[[], None]


class RebalanceKind(Enum):
    """What happens to the partitions of a `RebalanceCallback`."""

    REVOKED = "revoked"
    LOST = "lost"
    ASSIGNED = "assigned"


class RebalanceCallback:
    """A change of the assignment that the application's thread has to carry out before the membership goes on.

    Thread-safe: either it is started or it is cancelled, never both.
    """

    __slots__ = ("_cancelled", "_lock", "_started", "kind", "partitions")

    def __init__(self, kind: RebalanceKind, partitions: frozenset[TopicPartition]) -> None:
        self.kind = kind
        self.partitions = partitions
        self._lock = threading.Lock()
        self._started = self._cancelled = False

    def start(self) -> bool:
        """Begin to carry it out, or go on with it; False if it is cancelled."""
        with self._lock:
            self._started = not self._cancelled
            return self._started

    def cancel(self) -> bool:
        """Make it not happen; False if it has begun."""
        with self._lock:
            self._cancelled = not self._started
            return self._cancelled

    def __repr__(self) -> str:
        return f"RebalanceCallback({self.kind.value}, {sorted(self.partitions)})"


AnyEvent = ApplicationEvent[Any]
