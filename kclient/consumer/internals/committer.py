"""Committing as the application's thread sees it: what is committed, and who hears of the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from kclient.consumer.config import ConsumerConfig
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.consumer.internals.application_queue import ApplicationQueue
from kclient.consumer.internals.assigned_partitions import AssignedPartitions, TopicIdOf
from kclient.consumer.internals.coordinator.generation import Generation, commit_while_rebalancing
from kclient.consumer.internals.network_thread import NetworkThread
from kclient.consumer.internals.requests import CommitRequest, Offsets, Request
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaError,
    RetriableCommitFailedError,
)
from kclient.utils.log_context import Logger, RepeatedWarning
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.consumer.internals.coordinator.commits import CommitManager
    from kclient.consumer.internals.coordinator.membership import Membership

OnCommit = Callable[[Offsets, "KafkaError | None"], object]

# A time that no clock reaches. A month is not enough: the monotonic clock begins when the machine does.
_NEVER_MS = 2**63 - 1
_AUTOMATIC_COMMIT = "the automatic commit"  # the cause of a warning that may repeat


@attrs.define(kw_only=True, eq=False, repr=False)
class Committer:
    """Asks the I/O thread for commits without waiting for them. Used by one thread at a time.

    Commits are carried out in the order in which they are asked for. Of those that wait for their turn and have
    nobody who wants to hear of them there is one at most: newer offsets are added to it. So it costs no memory to
    commit more often than the coordinator answers.
    """

    _config: ConsumerConfig
    _subscription: SubscriptionState
    _assigned: AssignedPartitions
    _membership: Membership | None
    _manager: CommitManager | None
    _queue: ApplicationQueue
    _network: NetworkThread
    _topic_id: TopicIdOf
    _interceptors: Sequence[ConsumerInterceptor]
    _time: Time
    _log: Logger = attrs.field(init=False)
    _warning: RepeatedWarning = attrs.field(init=False)
    automatic: bool = attrs.field(init=False)
    """True if the application leaves committing to the consumer."""
    next_auto_ms: int = attrs.field(init=False)
    """The time when poll() has to call `auto_commit` next."""
    polled: bool = attrs.field(default=False, init=False)
    """True if the application has polled or sought since it assigned its partitions.

    Before that it has read nothing, and the positions are those to begin with: to commit them by itself would undo
    what it commits explicitly.
    """
    leaving: bool = attrs.field(default=False, init=False)
    """True while the application closes or unsubscribes: it cannot poll any more, and commit again."""
    asked: int = attrs.field(default=0, init=False)
    """Number of commits the I/O thread was asked for."""
    _last_automatic: CommitRequest | None = attrs.field(default=None, init=False)
    # What the next offsets may be added to
    _growing: CommitRequest | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._config.log_context().logger(__name__)
        self._warning = RepeatedWarning(self._log)
        self.automatic = self._config.enable_auto_commit
        self.next_auto_ms = (
            self._time.monotonic_ms() + self._config.auto_commit_interval_ms if self.automatic else _NEVER_MS
        )

    # Asking.

    def commit(self, offsets: Offsets | None, deadline_ms: int, *, automatic: bool = False) -> CommitRequest:
        """Commit `offsets`, or for None the positions, trying again until the deadline.

        The request fails with what keeps it from happening.
        """
        request, error = self._request(offsets, deadline_ms, retry=True, automatic=automatic)
        self._ask(request, error)
        return request

    def auto_commit(self, now_ms: int) -> None:
        """Commit the positions in the background; not while the last such commit is under way, but then soon."""
        last = self._last_automatic
        if self._membership is not None and self._membership.rebalancing:
            # Nothing can be committed now. With cooperative rebalancing the member has partitions, and goes on.
            self.next_auto_ms = now_ms + self._config.retry_backoff_ms
        elif last is None or last.done():
            self.next_auto_ms = now_ms + self._config.auto_commit_interval_ms
            self.auto_commit_now()

    def auto_commit_now(self) -> None:
        """Commit the positions in the background, whatever is under way."""
        self._last_automatic = self.commit_in_background(None, None, automatic=True)

    def commit_in_background(
        self, offsets: Offsets | None, on_commit: OnCommit | None, *, automatic: bool = False
    ) -> CommitRequest:
        """Commit `offsets`, or for None the positions, once; `on_commit` is called with the outcome."""
        deadline_ms = self._time.monotonic_ms() + self._config.default_api_timeout_ms
        request, error = self._request(offsets, deadline_ms, retry=False, automatic=automatic)
        if automatic and not request.offsets:
            request.complete(request.offsets)  # there is nothing to tell of, either
            return request
        if on_commit is None and error is None and self._growing is not None and self._growing.add(request):
            return self._growing
        request.add_done_callback(lambda _: self._queue.call(lambda: self._finished(request, on_commit)))
        self._ask(request, error)
        if on_commit is None:
            self._growing = request
        return request

    def _request(
        self, offsets: Offsets | None, deadline_ms: int, *, retry: bool, automatic: bool
    ) -> tuple[CommitRequest, KafkaError | None]:
        """A commit by the member as it is now, or with the error that keeps it from committing."""
        # The ids first: a topic that is created again in between then has a commit refused, and never a wrong one.
        held = self._assigned.topic_ids()
        if offsets is None:
            offsets = self._assigned.consumed() if self.polled or not automatic else {}
        ids = {tp: held.get(tp.topic) or self._topic_id(tp.topic) for tp in offsets}
        topic_ids = {tp: topic_id for tp, topic_id in ids.items() if topic_id is not None}
        error: KafkaError | None = None
        generation = Generation()  # without a subscription the group only keeps the offsets
        membership = self._membership
        last = self.leaving and offsets.keys() <= self._assigned.partitions()
        if offsets and membership is not None and self._subscription.has_auto_assigned_partitions():
            known = membership.generation_for_last_commit() if last else membership.generation_for_commit()
            if known is not None:
                generation = known
            elif membership.rebalancing:
                error = commit_while_rebalancing()
            else:
                error = CommitFailedError()
        made = CommitRequest(
            deadline_ms, offsets, generation, retry=retry, automatic=automatic, last=last, topic_ids=topic_ids
        )
        return made, error

    def _ask(self, request: CommitRequest, error: KafkaError | None) -> None:
        self._growing = None
        manager = self._manager
        if error is not None:
            request.fail(error)
        elif not request.offsets:
            request.complete(request.offsets)
        elif manager is None:
            request.fail(IllegalStateError("a consumer without group.id has no committed offsets"))
        else:
            self.asked += 1
            self._network.submit(lambda _: manager.commit(request), request)

    def finish(self, deadline_ms: int) -> Request[None]:
        """Wait for all that was asked for before; at the deadline, what is not through fails."""
        manager = self._manager
        assert manager is not None
        request = Request[None](deadline_ms)
        self._network.submit(lambda _: manager.finish(request), request)
        return request

    # The outcome.

    def _finished(self, request: CommitRequest, on_commit: OnCommit | None) -> None:
        """A commit that nobody waited for is through. For the application's thread."""
        failure = request.exception()
        error = failure if failure is None or isinstance(failure, KafkaError) else KafkaError(str(failure))
        if error is None:
            self._warning.clear(_AUTOMATIC_COMMIT)
            self.committed(request.offsets)
        elif request.automatic:
            now_ms = self._time.monotonic_ms()
            self._warning.warn(_AUTOMATIC_COMMIT, f"The automatic commit failed: {error}", now_ms)
            if isinstance(error, RetriableCommitFailedError):
                self.next_auto_ms = min(self.next_auto_ms, now_ms + self._config.retry_backoff_ms)
        if on_commit is not None:
            on_commit(request.offsets, error)

    def committed(self, offsets: Offsets) -> None:
        """`offsets` were committed: tell the interceptors."""
        for interceptor in self._interceptors:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                self._log.exception("The interceptor %r failed", interceptor)
