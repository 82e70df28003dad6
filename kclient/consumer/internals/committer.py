"""Committing as the application's thread sees it: what is committed, and how it is told of the outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kclient.client.request_sender import NEVER
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.consumer.internals.coordinator.member_requests import Generation, commit_while_rebalancing
from kclient.consumer.internals.coordinator.membership import Membership
from kclient.consumer.internals.events import AnyEvent, CommitEvent
from kclient.consumer.internals.mailbox import FinishedCommit, Mailbox, OnCommit
from kclient.consumer.internals.metrics import ConsumerMetrics
from kclient.consumer.internals.subscription_state import SubscriptionState, TopicIdOf
from kclient.errors import (
    CommitFailedError,
    KafkaError,
    RetriableCommitFailedError,
)
from kclient.utils.futures import CompletableFuture
from kclient.utils.log_context import LogContext, RepeatedWarning
from kclient.utils.time import Time

Offsets = Mapping[TopicPartition, OffsetAndMetadata]

_AUTOMATIC_COMMIT = "the automatic commit"  # the cause of a warning that may repeat


class Committer:
    """Asks the I/O thread for commits without waiting for them. Used by one thread at a time.

    Commits are carried out in the order in which they are asked for. Of those that wait for their turn and have
    nobody who wants to hear of them there is one at most: newer offsets are added to it. So it costs no memory to
    commit more often than the coordinator answers.
    """

    def __init__(
        self,
        *,
        config: ConsumerConfig,
        subscriptions: SubscriptionState,
        membership: Membership | None,
        mailbox: Mailbox,
        submit: Callable[[AnyEvent], None],
        topic_id: TopicIdOf,
        interceptors: Sequence[ConsumerInterceptor],
        metrics: ConsumerMetrics,
        time: Time,
        log_context: LogContext,
    ) -> None:
        self._config = config
        self._subscriptions = subscriptions
        self._membership = membership
        self._mailbox = mailbox
        self._submit = submit
        self._topic_id = topic_id
        self._interceptors = interceptors
        self._metrics = metrics
        self._time = time
        self._log = log_context.logger(__name__)
        self._warning = RepeatedWarning(self._log)
        self.automatic = config.enable_auto_commit
        """True if the application leaves committing to the consumer."""
        self.next_auto_ms = time.monotonic_ms() + config.auto_commit_interval_ms if self.automatic else NEVER
        """The time when poll() has to call `auto_commit` next."""
        self.polled = False
        """True if the application has polled or sought since it assigned its partitions.

        Before that it has read nothing, and the positions are those to begin with: to commit them by itself would undo
        what it commits explicitly.
        """
        self.asked = 0
        """Number of commits the I/O thread was asked for."""
        self._last_automatic: CommitEvent | None = None
        self._growing: CommitEvent | None = None  # what the next offsets may be added to

    def positions(self) -> Offsets:
        """The positions of all partitions: everything that was handed out."""
        return self._subscriptions.all_consumed()

    # Asking.

    def commit(self, offsets: Offsets | None, deadline_ms: int, *, automatic: bool = False) -> CommitEvent:
        """Commit `offsets`, or for None the positions, trying again until the deadline.

        The event's future fails with what keeps it from happening.
        """
        event, error = self._event(offsets, deadline_ms, retry=True, automatic=automatic)
        self._ask(event, error)
        return event

    def commit_in_background(self, offsets: Offsets | None, on_commit: OnCommit | None) -> None:
        """Commit `offsets`, or for None the positions, once; `tell` tells the outcome."""
        self._in_background(offsets, on_commit, automatic=False)

    def auto_commit(self, now_ms: int) -> None:
        """Commit the positions in the background; not while the last such commit is under way, but then soon."""
        last = self._last_automatic
        if last is None or last.future.done():
            self.next_auto_ms = now_ms + self._config.auto_commit_interval_ms
            self.auto_commit_now()

    def auto_commit_now(self) -> None:
        """Commit the positions in the background, whatever is under way."""
        self._last_automatic = self._in_background(None, None, automatic=True)

    def _in_background(
        self, offsets: Offsets | None, on_commit: OnCommit | None, *, automatic: bool
    ) -> CommitEvent:
        deadline_ms = self._time.monotonic_ms() + self._config.default_api_timeout_ms
        event, error = self._event(offsets, deadline_ms, retry=False, automatic=automatic)
        if automatic and not event.offsets:
            event.future.complete(event.offsets)  # there is nothing to tell of, either
            return event
        if on_commit is None and error is None and self._growing is not None and self._growing.add(event):
            return self._growing
        mailbox = self._mailbox

        def finished(future: CompletableFuture[Offsets]) -> None:
            failure = future.exception()
            known = (
                failure if failure is None or isinstance(failure, KafkaError) else KafkaError(str(failure))
            )
            mailbox.post_commit(FinishedCommit(event.offsets, known, on_commit, event.automatic))

        event.future.add_done_callback(finished)
        self._ask(event, error)
        if on_commit is None:
            self._growing = event
        return event

    def _event(
        self, offsets: Offsets | None, deadline_ms: int, *, retry: bool, automatic: bool
    ) -> tuple[CommitEvent, KafkaError | None]:
        """A commit by the member as it is now, or with the error that keeps it from committing."""
        # The ids first: a topic that is created again in between then has a commit refused, and never a wrong one.
        held = self._subscriptions.topic_ids()
        if offsets is None:
            offsets = self.positions() if self.polled or not automatic else {}
        ids = {tp: held.get(tp.topic) or self._topic_id(tp.topic) for tp in offsets}
        topic_ids = {tp: topic_id for tp, topic_id in ids.items() if topic_id is not None}
        error: KafkaError | None = None
        generation = Generation()  # without a subscription the group only keeps the offsets
        membership = self._membership
        if offsets and membership is not None and self._subscriptions.has_auto_assigned_partitions():
            known = membership.generation_for_commit()
            if known is not None:
                generation = known
            elif membership.rebalancing:
                error = commit_while_rebalancing()
            else:
                error = CommitFailedError()
        return CommitEvent(deadline_ms, offsets, generation, retry, automatic, topic_ids), error

    def _ask(self, event: CommitEvent, error: KafkaError | None) -> None:
        self._growing = None
        if error is not None:
            event.future.fail(error)
        elif not event.offsets:
            event.future.complete(event.offsets)
        else:
            self.asked += 1
            self._submit(event)

    # Telling.

    def tell(self) -> None:
        """Call the callbacks of the commits that are through. An error of a callback is raised."""
        for _ in range(self._mailbox.finished_commits):
            commit = self._mailbox.next_commit()
            if commit is not None:
                self._tell_of(commit)

    def tell_all(self) -> BaseException | None:
        """The same for the last time: returns the first error, and goes on after it."""
        first: BaseException | None = None
        for _ in range(self._mailbox.finished_commits):
            try:
                commit = self._mailbox.next_commit()
                if commit is not None:
                    self._tell_of(commit)
            except Exception as error:
                first = first or error
        return first

    def _tell_of(self, commit: FinishedCommit) -> None:
        if commit.error is None:
            self._warning.clear(_AUTOMATIC_COMMIT)
            self.committed(commit.offsets)
        elif commit.automatic:
            now_ms = self._time.monotonic_ms()
            self._warning.warn(_AUTOMATIC_COMMIT, f"The automatic commit failed: {commit.error}", now_ms)
            if isinstance(commit.error, RetriableCommitFailedError):
                self.next_auto_ms = min(self.next_auto_ms, now_ms + self._config.retry_backoff_ms)
        if commit.on_commit is not None:
            commit.on_commit(commit.offsets, commit.error)

    def committed(self, offsets: Offsets) -> None:
        """`offsets` were committed: count it and tell the interceptors."""
        self._metrics.committed()
        for interceptor in self._interceptors:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                self._log.exception("The interceptor %r failed", interceptor)
