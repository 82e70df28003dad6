"""Carries out on the I/O thread what the application asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kclient.common.cluster import Cluster
from kclient.consumer.internals.coordinator.commits import CommitManager
from kclient.consumer.internals.coordinator.membership import Membership
from kclient.consumer.internals.events import (
    AnyEvent,
    CallbackDoneEvent,
    CommitEvent,
    FetchCommittedEvent,
    FinishCommitsEvent,
    LeaveGroupEvent,
    ListOffsetsEvent,
    RejoinEvent,
    SubscriptionChangedEvent,
    TopicMetadataEvent,
    WakeupEvent,
)
from kclient.consumer.internals.fetch_buffer import FetchBuffer
from kclient.consumer.internals.metadata import ConsumerMetadata
from kclient.consumer.internals.offset_fetcher import OffsetFetcher
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.consumer.internals.topic_metadata import TopicMetadataManager
from kclient.errors import IllegalStateError, KafkaError


class EventProcessor:
    """Hands each event to the part of the consumer that it is for. Belongs to the I/O thread."""

    def __init__(
        self,
        *,
        subscriptions: SubscriptionState,
        metadata: ConsumerMetadata,
        buffer: FetchBuffer,
        offsets: OffsetFetcher,
        topics: TopicMetadataManager,
        membership: Membership | None,
        commits: CommitManager | None,
    ) -> None:
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._buffer = buffer
        self._offsets = offsets
        self._topics = topics
        self._membership = membership
        self._commits = commits
        self._handlers: dict[type[AnyEvent], Callable[[Any, int], None]] = {
            CallbackDoneEvent: self._callback_done,
            CommitEvent: self._commit,
            FetchCommittedEvent: self._fetch_committed,
            FinishCommitsEvent: self._finish_commits,
            LeaveGroupEvent: self._leave,
            ListOffsetsEvent: self._list_offsets,
            RejoinEvent: self._rejoin,
            SubscriptionChangedEvent: self._subscription_changed,
            TopicMetadataEvent: self._topic_metadata,
            WakeupEvent: self._wakeup,
        }

    def process(self, event: AnyEvent, now_ms: int) -> None:
        """Carry `event` out, or set it going; its future is completed in either case, sooner or later."""
        try:
            self._handlers[type(event)](event, now_ms)
        except BaseException as error:
            event.future.fail(error)
            raise

    def end(self, error: KafkaError) -> None:
        """Nothing more happens on the I/O thread: fail what is under way with `error`."""
        if self._commits is not None:
            self._commits.end(error)

    def metadata_updated(self, cluster: Cluster) -> None:
        """Take over what new metadata means for the subscription, the positions and the membership."""
        if self._subscriptions.pattern is not None:
            internal = cluster.internal_topics if self._metadata.exclude_internal_topics else frozenset()
            topics = (topic for topic in cluster.topics if self._subscriptions.matches(topic))
            self._subscriptions.subscribe_from_pattern(topic for topic in topics if topic not in internal)
        for tp in self._subscriptions.follow_topics(self._metadata.topic_id):
            self._buffer.discard(tp)
        self._subscriptions.update_leaders(self._metadata.leader_and_epoch, self._offsets.can_validate)
        self._offsets.metadata_updated()
        if self._membership is not None:
            self._membership.metadata_updated(cluster)

    def _subscription_changed(self, event: SubscriptionChangedEvent, now_ms: int) -> None:  # noqa: ARG002
        if self._subscriptions.pattern is not None:
            self._metadata.request_update(reset_backoff=True)
        elif not self._metadata.fetch().topics >= self._subscriptions.metadata_topics():
            self._metadata.request_update_for_new_topics()
        if self._membership is not None:
            self._membership.subscription_changed()
        event.future.complete(None)

    def _callback_done(self, event: CallbackDoneEvent, now_ms: int) -> None:  # noqa: ARG002
        if self._membership is not None:
            self._membership.callback_done(event.callback)
        event.future.complete(None)

    def _rejoin(self, event: RejoinEvent, now_ms: int) -> None:  # noqa: ARG002
        if self._membership is not None:
            self._membership.request_rejoin(event.reason)
        event.future.complete(None)

    def _leave(self, event: LeaveGroupEvent, now_ms: int) -> None:
        if self._membership is None:
            event.future.complete(None)
        else:
            self._membership.leave(event.reason, event.future, now_ms)

    def _commit(self, event: CommitEvent, now_ms: int) -> None:  # noqa: ARG002
        self._need_commits().commit(event)

    def _finish_commits(self, event: FinishCommitsEvent, now_ms: int) -> None:  # noqa: ARG002
        if self._membership is not None:
            self._membership.stop_joining()
        self._need_commits().finish(event)

    def _fetch_committed(self, event: FetchCommittedEvent, now_ms: int) -> None:  # noqa: ARG002
        self._need_commits().fetch(event)

    def _list_offsets(self, event: ListOffsetsEvent, now_ms: int) -> None:  # noqa: ARG002
        self._offsets.search(event)

    def _topic_metadata(self, event: TopicMetadataEvent, now_ms: int) -> None:  # noqa: ARG002
        self._topics.fetch(event)

    def _wakeup(self, event: WakeupEvent, now_ms: int) -> None:  # noqa: ARG002
        event.deliver()
        event.future.complete(None)

    def _need_commits(self) -> CommitManager:
        if self._commits is None:
            raise IllegalStateError("a consumer without group.id has no committed offsets")
        return self._commits
