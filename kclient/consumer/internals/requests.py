"""The requests of the application to the I/O thread that have a result, and a time by which it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import attrs

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.errors import KafkaError, KafkaTimeoutError
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.futures import CompletableFuture

T = TypeVar("T")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class Request(CompletableFuture[T]):
    """A future that the I/O thread completes.

    `deadline_ms` is on the monotonic clock; what is not done by then fails with a KafkaTimeoutError.
    """

    __slots__ = ("deadline_ms",)

    def __init__(self, deadline_ms: int) -> None:
        super().__init__()
        self.deadline_ms = deadline_ms


@attrs.define(eq=False)
class PendingRequest(Generic[T]):
    """A request that the I/O thread works on, in as many attempts as there is time for."""

    request: Request[T]
    retry_ms: int = attrs.field(default=0, init=False)
    attempts: int = attrs.field(default=0, init=False)
    last_error: KafkaError | None = attrs.field(default=None, init=False)

    def back_off(self, backoff: ExponentialBackoff, now_ms: int) -> None:
        """Make the next attempt later, and later with each."""
        self.retry_ms = now_ms + backoff.backoff_ms(self.attempts)
        self.attempts += 1

    def expire(self, what: str, unreachable: KafkaError | None) -> None:
        """Fail it: its time is over, of which `what` says what that means.

        `unreachable` is why a connection ended last, which is the reason if no answer said another one.
        """
        reasons = [each for each in (self.last_error, unreachable) if each is not None]
        if reasons and reasons[0].connection is not None:
            del reasons[1:]
        reason = f": {'; '.join(map(str, reasons))}" if reasons else ""
        cause = reasons[-1] if reasons else None
        self.request.fail(KafkaTimeoutError(what + reason).because_of(cause))


class CommitRequest(Request[Offsets]):
    """Commit `offsets` as the member of one `generation`; with `retry` until the deadline, else once.

    Both are those of the moment at which the commit is asked for, whatever becomes of the member until it is sent. But
    the `last` commit of a member, which has what it is about until it leaves, goes again under its next place.

    The application's thread may add newer offsets until the I/O thread seals it. `topic_ids` are the topics that the
    offsets belong to, as far as they are known.
    """

    __slots__ = ("_sealed", "automatic", "generation", "last", "offsets", "retry", "topic_ids")

    def __init__(
        self,
        deadline_ms: int,
        offsets: Offsets,
        generation: Generation,
        *,
        retry: bool,
        automatic: bool = False,
        last: bool = False,
        topic_ids: Mapping[TopicPartition, Uuid] | None = None,
    ) -> None:
        super().__init__(deadline_ms)
        self.offsets = offsets
        self.generation = generation
        self.retry = retry
        self.automatic = automatic
        self.last = last
        self.topic_ids = topic_ids or {}
        self._sealed = False

    def add(self, newer: CommitRequest) -> bool:
        """Commit what `newer` has along with it; False if it is too late for that, or it is not alike."""
        with self._lock:
            alike = (newer.generation, newer.last) == (self.generation, self.last)
            if self._sealed or self.done() or not alike:
                return False
            self.offsets = {**self.offsets, **newer.offsets}
            self.topic_ids = {**self.topic_ids, **newer.topic_ids}
            self.automatic |= newer.automatic
            return True

    def seal(self) -> None:
        """Let nothing be added any more: a request is made of it, or it has failed."""
        with self._lock:
            self._sealed = True
