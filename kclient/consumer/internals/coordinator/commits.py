"""Committed offsets: writing them and reading them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.coordinator.coordinator_finder import CoordinatorFinder
from kclient.consumer.internals.coordinator.member_requests import Generation
from kclient.consumer.internals.coordinator.membership import Membership
from kclient.consumer.internals.events import ApplicationEvent, CommitEvent, FetchCommittedEvent
from kclient.consumer.internals.request_manager import NEVER, Reply, RequestSender
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.errors import (
    CommitFailedError,
    Errors,
    FencedInstanceIdError,
    GroupAuthorizationError,
    KafkaError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    RetriableCommitFailedError,
    TopicAuthorizationError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import offset_commit, offset_fetch
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext

_LAST_VERSION_WITH_NAMES: Final = 9
_FIRST_FETCH_VERSION_WITH_GROUPS: Final = 8
_FIRST_FETCH_VERSION_WITH_STABLE: Final = 7

_OTHER_COORDINATOR = frozenset(
    {Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR, Errors.REQUEST_TIMED_OUT}
)
_TRY_AGAIN = frozenset(
    {
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.UNSTABLE_OFFSET_COMMIT,
        *_OTHER_COORDINATOR,
    }
)


@attrs.define(eq=False)
class _Waiting:
    event: ApplicationEvent[Any]
    send: Callable[[int], None]
    retry_ms: int = 0
    attempts: int = 0
    last_error: KafkaError | None = None


class CommitManager:
    """Sends OffsetCommit and OffsetFetch requests to the coordinator. Belongs to the I/O thread.

    Requests go out in the order in which they were asked for, on one connection, so an older commit never
    overwrites a newer one. Which offsets are committed is the application thread's decision alone.
    """

    def __init__(
        self,
        group_id: str,
        group_instance_id: str | None,
        *,
        finder: CoordinatorFinder,
        membership: Membership,
        sender: RequestSender,
        subscriptions: SubscriptionState,
        backoff: ExponentialBackoff,
        log_context: LogContext,
    ) -> None:
        self._group_id = group_id
        self._group_instance_id = group_instance_id
        self._finder = finder
        self._membership = membership
        self._sender = sender
        self._subscriptions = subscriptions
        self._backoff = backoff
        self._log = log_context.logger(__name__)
        self._waiting: list[_Waiting] = []

    def commit(self, event: CommitEvent) -> None:
        """Commit `event.offsets`; the future fails with what Java's commitSync raises."""
        if not event.offsets:
            event.future.complete(event.offsets)
            return
        waiting = _Waiting(event, lambda now_ms: self._send_commit(waiting, event, now_ms))
        self._waiting.append(waiting)

    def fetch(self, event: FetchCommittedEvent) -> None:
        """Look up the committed offsets of `event.partitions`."""
        if not event.partitions:
            event.future.complete({})
            return
        waiting = _Waiting(event, lambda now_ms: self._send_fetch(waiting, event, now_ms))
        self._waiting.append(waiting)

    def fail_all(self, error: KafkaError) -> None:
        """Nothing that waits for the coordinator can succeed."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.event.future.fail(error)

    def poll(self, now_ms: int) -> int:
        """Send what waits, in order, once the coordinator is known."""
        wait_ms = NEVER
        kept = []
        for waiting in self._waiting:
            if waiting.event.future.done():
                continue  # the application gave up
            if now_ms >= waiting.event.deadline_ms:
                self._expire(waiting)
            elif now_ms < waiting.retry_ms or self._finder.coordinator is None:
                kept.append(waiting)
                next_ms = waiting.event.deadline_ms
                if now_ms < waiting.retry_ms:
                    next_ms = min(next_ms, waiting.retry_ms)
                wait_ms = min(wait_ms, next_ms - now_ms)
            else:
                waiting.send(now_ms)
        self._waiting = kept
        return wait_ms

    def _expire(self, waiting: _Waiting) -> None:
        what = "commit offsets" if isinstance(waiting.event, CommitEvent) else "look up committed offsets"
        reason = f": {waiting.last_error}" if waiting.last_error is not None else ""
        if not reason and not self._finder.known:
            reason = ": the group's coordinator was not found"
        waiting.event.future.fail(
            KafkaTimeoutError(f"Could not {what} of group {self._group_id!r} in time{reason}")
        )

    def _retry(self, waiting: _Waiting, error: KafkaError, now_ms: int) -> None:
        waiting.last_error = error
        waiting.retry_ms = now_ms + self._backoff.backoff_ms(waiting.attempts)
        waiting.attempts += 1
        self._waiting.append(waiting)

    def _no_answer(self, waiting: _Waiting, error: KafkaError, now_ms: int) -> None:
        if not error.retriable:
            waiting.event.future.fail(error)
            return
        self._finder.mark_unknown(str(error))
        self._retry_commit_or_fail(waiting, error, now_ms)

    def _retry_commit_or_fail(self, waiting: _Waiting, error: KafkaError, now_ms: int) -> None:
        event = waiting.event
        if isinstance(event, CommitEvent) and not event.retry:
            failed = RetriableCommitFailedError(f"The offsets were not committed, commit again: {error}")
            failed.__cause__ = error
            event.future.fail(failed)
        else:
            self._retry(waiting, error, now_ms)

    # Committing.

    def _send_commit(self, waiting: _Waiting, event: CommitEvent, now_ms: int) -> None:
        generation = self._generation_for_commit()
        if isinstance(generation, KafkaError):
            event.future.fail(generation)
            return
        topics: dict[str, offset_commit.OffsetCommitRequestTopic] = {}
        for tp, offset in event.offsets.items():
            topic = topics.get(tp.topic)
            if topic is None:
                topic = topics[tp.topic] = offset_commit.OffsetCommitRequestTopic(name=tp.topic)
            topic.partitions.append(
                offset_commit.OffsetCommitRequestPartition(
                    partition_index=tp.partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                    committed_metadata=offset.metadata,
                )
            )
        request = offset_commit.OffsetCommitRequest(
            group_id=self._group_id,
            generation_id_or_member_epoch=generation.id,
            member_id=generation.member_id,
            group_instance_id=self._group_instance_id,
            topics=list(topics.values()),
        )
        self._sender.send(
            self._finder.coordinator,
            ApiKeys.OFFSET_COMMIT,
            lambda _version: request,
            lambda reply: self._on_commit(waiting, event, generation, reply),
            now_ms,
            max_version=_LAST_VERSION_WITH_NAMES,
        )

    def _generation_for_commit(self) -> Generation | KafkaError:
        if not self._subscriptions.has_auto_assigned_partitions():
            return Generation()  # the group only keeps the offsets
        generation = self._membership.generation_for_commit()
        if generation is not None:
            return generation
        if self._membership.rebalancing:
            return RebalanceInProgressError(
                "Offsets cannot be committed while the group rebalances; call poll() and commit again"
            )
        return CommitFailedError()

    def _on_commit(self, waiting: _Waiting, event: CommitEvent, sent: Generation, reply: Reply) -> None:
        if reply.error is not None:
            self._no_answer(waiting, reply.error, reply.now_ms)
            return
        unauthorized: set[str] = set()
        again: KafkaError | None = None
        response: offset_commit.OffsetCommitResponse = reply.message
        for topic in response.topics:
            for partition in topic.partitions:
                code = partition.error_code
                if not code:
                    continue
                tp = TopicPartition(topic.name, partition.partition_index)
                if code == Errors.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(topic.name)
                elif code in _TRY_AGAIN:
                    if code in _OTHER_COORDINATOR:
                        self._finder.mark_unknown(Errors.name_of(code))
                    again = Errors.for_code(code, f"{tp}: {Errors.name_of(code)}")
                else:
                    event.future.fail(self._commit_error(code, tp, sent))
                    return
        if unauthorized:
            names = ", ".join(sorted(unauthorized))
            event.future.fail(TopicAuthorizationError(f"Not authorized to commit offsets of: {names}"))
        elif again is not None:
            self._retry_commit_or_fail(waiting, again, reply.now_ms)
        else:
            event.future.complete(event.offsets)

    def _commit_error(self, code: int, tp: TopicPartition, sent: Generation) -> KafkaError:
        name = Errors.name_of(code)
        if code == Errors.GROUP_AUTHORIZATION_FAILED:
            return GroupAuthorizationError(f"Not authorized to use group {self._group_id!r}")
        if code == Errors.REBALANCE_IN_PROGRESS:
            self._membership.request_rejoin("a commit was refused because the group is rebalancing")
            return RebalanceInProgressError(
                "Offsets cannot be committed while the group rebalances; call poll() and commit again"
            )
        if code == Errors.FENCED_INSTANCE_ID:
            error = FencedInstanceIdError(
                f"Another consumer has joined with group.instance.id {self._group_instance_id!r}"
            )
            self._membership.fenced(error)
            return error
        if code in (Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION, Errors.STALE_MEMBER_EPOCH):
            if sent.is_valid and sent == self._membership.generation and not self._membership.rebalancing:
                self._membership.lose(f"a commit was refused with {name}")
            return CommitFailedError()
        error_of_code = Errors.for_code(code, f"The offset of {tp} was not committed: {name}")
        assert error_of_code is not None
        return error_of_code

    # Looking up.

    def _send_fetch(self, waiting: _Waiting, event: FetchCommittedEvent, now_ms: int) -> None:
        by_topic: dict[str, list[int]] = {}
        for tp in sorted(event.partitions):
            by_topic.setdefault(tp.topic, []).append(tp.partition)

        def build(version: int) -> offset_fetch.OffsetFetchRequest:
            # Offsets that a transaction may still change are waited for (KIP-447), where the broker can tell.
            stable = version >= _FIRST_FETCH_VERSION_WITH_STABLE
            if version < _FIRST_FETCH_VERSION_WITH_GROUPS:
                return offset_fetch.OffsetFetchRequest(
                    group_id=self._group_id,
                    topics=[
                        offset_fetch.OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                        for name, numbers in by_topic.items()
                    ],
                    require_stable=stable,
                )
            topics = [
                offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                for name, numbers in by_topic.items()
            ]
            group = offset_fetch.OffsetFetchRequestGroup(group_id=self._group_id, topics=topics)
            return offset_fetch.OffsetFetchRequest(groups=[group], require_stable=stable)

        self._sender.send(
            self._finder.coordinator,
            ApiKeys.OFFSET_FETCH,
            build,
            lambda reply: self._on_fetch(waiting, event, reply),
            now_ms,
            max_version=_LAST_VERSION_WITH_NAMES,
        )

    def _on_fetch(self, waiting: _Waiting, event: FetchCommittedEvent, reply: Reply) -> None:
        if reply.error is not None:
            self._no_answer(waiting, reply.error, reply.now_ms)
            return
        response: offset_fetch.OffsetFetchResponse = reply.message
        code, topics = response.error_code, list[Any](response.topics)
        if response.groups:
            code, topics = response.groups[0].error_code, list[Any](response.groups[0].topics)
        if code:
            self._fetch_error(waiting, code, reply.now_ms)
            return
        found: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(event.partitions)
        unauthorized: set[str] = set()
        for topic in topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                code = partition.error_code
                if code == Errors.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(topic.name)
                elif code == Errors.UNKNOWN_TOPIC_OR_PARTITION:
                    continue  # it may be about to appear; nothing is committed for it
                elif code:
                    self._fetch_error(waiting, code, reply.now_ms)
                    return
                elif tp in found and partition.committed_offset >= 0:
                    found[tp] = _offset(partition)
        if unauthorized:
            names = ", ".join(sorted(unauthorized))
            event.future.fail(TopicAuthorizationError(f"Not authorized to read offsets of: {names}"))
        else:
            event.future.complete(found)

    def _fetch_error(self, waiting: _Waiting, code: int, now_ms: int) -> None:
        error = Errors.for_code(code)
        assert error is not None
        if code == Errors.GROUP_AUTHORIZATION_FAILED:
            error = GroupAuthorizationError(f"Not authorized to use group {self._group_id!r}")
        if code in _OTHER_COORDINATOR:
            self._finder.mark_unknown(Errors.name_of(code))
        if code in _TRY_AGAIN or error.retriable:
            self._retry(waiting, error, now_ms)
        else:
            waiting.event.future.fail(error)


def _offset(partition: Any) -> OffsetAndMetadata:
    epoch = partition.committed_leader_epoch
    return OffsetAndMetadata(
        partition.committed_offset, partition.metadata or "", None if epoch < 0 else epoch
    )
