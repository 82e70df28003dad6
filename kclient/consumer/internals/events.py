"""The messages that the application's thread and the I/O thread send each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Generic, TypeVar

import attrs

from kclient.common.offsets import OffsetAndMetadata, OffsetAndTimestamp
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.coordinator.member_requests import Generation
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
    """Commit `offsets` as the member of one `generation`; with `retry` until the deadline, else once.

    Both are those of the moment at which the commit is asked for, whatever becomes of the member until it is sent.
    The application's thread may add newer offsets until the I/O thread seals it.
    """

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    generation: Generation
    retry: bool
    automatic: bool = False
    topic_ids: Mapping[TopicPartition, Uuid] = attrs.field(factory=dict)
    """The topics that the offsets belong to, as far as they are known."""
    _sealed: bool = attrs.field(default=False, init=False)
    # Reentrant: a signal handler may commit in a thread that is in here.
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)

    def add(self, newer: CommitEvent) -> bool:
        """Commit what `newer` has along with it; False if it is too late for that, or another generation's."""
        with self._lock:
            if self._sealed or self.future.done() or newer.generation != self.generation:
                return False
            self.offsets = {**self.offsets, **newer.offsets}
            self.topic_ids = {**self.topic_ids, **newer.topic_ids}
            self.automatic |= newer.automatic
            return True

    def seal(self) -> None:
        """Let nothing be added any more: a request is made of it, or it has failed."""
        with self._lock:
            self._sealed = True


@attrs.define(eq=False)
class FinishCommitsEvent(ApplicationEvent[None]):
    """Wait for the commits that were asked for before; at the deadline those that are not through fail."""


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
    """The change that happens to the partitions of a `RebalanceCallback`."""

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
