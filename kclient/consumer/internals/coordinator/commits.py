"""Committed offsets: writing them and reading them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from kclient.client.connection_ids import without_coordination
from kclient.client.coordinators import CoordinatorFinder
from kclient.client.request_sender import NEVER, Reply, RequestSender
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.coordinator.commit_requests import (
    LAST_VERSION_WITH_NAMES,
    commit_request,
    lookup_request,
)
from kclient.consumer.internals.coordinator.generation import Generation, commit_while_rebalancing
from kclient.consumer.internals.coordinator.membership import Membership
from kclient.consumer.internals.group_metrics import GroupMetrics
from kclient.consumer.internals.metadata import ConsumerMetadata
from kclient.consumer.internals.requests import CommitRequest, Offsets, PendingRequest, Request
from kclient.errors import (
    ClientClosedError,
    CommitFailedError,
    Errors,
    FencedInstanceIdError,
    GroupAuthorizationError,
    KafkaError,
    KafkaTimeoutError,
    RetriableCommitFailedError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import offset_commit, offset_fetch
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext, Logger

_LEADER_MS = 5000
"""The time that the last commit of a member gives the group's leader to assign. One that lives does it at once."""

CommittedOffsets: TypeAlias = dict[TopicPartition, OffsetAndMetadata | None]

_OTHER_COORDINATOR = frozenset(
    {Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR, Errors.REQUEST_TIMED_OUT}
)
_OTHER_PLACE = frozenset({Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION, Errors.STALE_MEMBER_EPOCH})
_NO_SUCH_TOPIC = frozenset({Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.UNKNOWN_TOPIC_ID})
_TRY_AGAIN = frozenset(
    {
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.UNSTABLE_OFFSET_COMMIT,
        *_NO_SUCH_TOPIC,
        *_OTHER_COORDINATOR,
    }
)


@attrs.define(eq=False)
class _Commit(PendingRequest[Offsets]):
    request: CommitRequest
    left: dict[TopicPartition, OffsetAndMetadata] | None = attrs.field(default=None, init=False)
    """Offsets that the coordinator has not confirmed, once it was asked."""
    gone: set[TopicPartition] = attrs.field(factory=set, init=False)
    """Partitions of topics that do not exist any more."""
    delayed: bool = attrs.field(default=False, init=False)
    """True if it has waited for the answer to another one."""

    def may_go_with(self, others: list[_Commit]) -> bool:
        """True if it may be in one request with `others`."""
        return not others or (self.delayed and others[0].request.generation == self.request.generation)


@attrs.define(eq=False)
class _Lookup(PendingRequest[CommittedOffsets]):
    partitions: frozenset[TopicPartition]
    generation: Generation | None = attrs.field(default=None, init=False)
    """The member's place in the group as of the last request, where the coordinator is told of it."""


@attrs.define(kw_only=True, eq=False, repr=False)
class CommitManager:
    """Sends OffsetCommit and OffsetFetch requests to the coordinator. Belongs to the I/O thread.

    Commits go out in the order in which they were asked for, one request at a time: those that wait for its answer
    go into the next one together, as far as they are of one generation. So an older commit never overwrites a newer
    one. Which offsets are committed, and as which member, is the application thread's decision alone.
    """

    _group_id: str
    _group_instance_id: str | None
    _metadata: ConsumerMetadata
    _finder: CoordinatorFinder
    _membership: Membership
    _sender: RequestSender
    _backoff: ExponentialBackoff
    _metrics: GroupMetrics
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _waiting: list[_Commit | _Lookup] = attrs.field(factory=list, init=False)
    _in_flight: list[_Commit] = attrs.field(factory=list, init=False)
    _finishing: list[Request[None]] = attrs.field(factory=list, init=False)
    # The generation whose leader has not assigned yet, and since when commits were refused for that.
    _unassigned: tuple[Generation, int] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)

    def commit(self, request: CommitRequest) -> None:
        """Commit its offsets; it fails with what Java's commitSync raises."""
        self._waiting.append(_Commit(request))

    def fetch(self, partitions: frozenset[TopicPartition], request: Request[CommittedOffsets]) -> None:
        """Look up the committed offsets of `partitions`; None where there is none."""
        if not partitions:
            request.complete({})
            return
        self._waiting.append(_Lookup(request, partitions))

    def finish(self, request: Request[None]) -> None:
        """Complete `request` when no commit is under way any more, at its deadline by failing those that are."""
        self._finishing.append(request)

    def fail_all(self, error: KafkaError) -> None:
        """Nothing that waits for the coordinator can succeed."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self._fail(each, error)

    def end(self, error: KafkaError) -> None:
        """Nothing more is sent, and no answer comes."""
        in_flight, self._in_flight = self._in_flight, []
        for each in in_flight:
            self._fail(each, ClientClosedError(f"{error}; the offsets may have been committed"))
        self.fail_all(error)
        self._finished()

    def poll(self, now_ms: int) -> int:
        """Send what waits, in order, once the coordinator is known."""
        wait_ms = NEVER
        waiting, self._waiting = self._waiting, []
        commits: list[_Commit] = []
        lookups: list[_Lookup] = []
        overtaking = False  # whether what comes now would overtake a commit that has to wait
        for each in waiting:
            request = each.request
            if request.done():
                continue  # the application gave up
            if now_ms >= request.deadline_ms:
                self._expire(each)
                continue
            ready = now_ms >= each.retry_ms and self._finder.coordinator is not None and not overtaking
            if isinstance(each, _Lookup):
                if ready:
                    lookups.append(each)
                    continue
            else:
                if ready and not self._in_flight and each.may_go_with(commits):
                    commits.append(each)
                    continue
                each.delayed = each.delayed or bool(self._in_flight or commits)
                overtaking = True
            self._waiting.append(each)
            next_ms = request.deadline_ms
            if now_ms < each.retry_ms:
                next_ms = min(next_ms, each.retry_ms)
            wait_ms = min(wait_ms, next_ms - now_ms)
        if commits:
            self._send_commits(commits, now_ms)
        for lookup in lookups:
            self._send_fetch(lookup, now_ms)
        if self._finishing:
            wait_ms = min(wait_ms, self._poll_finishing(now_ms))
        return wait_ms

    def _poll_finishing(self, now_ms: int) -> int:
        commits = [*self._in_flight, *(each for each in self._waiting if isinstance(each, _Commit))]
        late = [each for each in commits if not each.request.done()]
        wait_ms = min(request.deadline_ms for request in self._finishing) - now_ms
        if late and wait_ms > 0:
            return wait_ms
        for each in late:
            self._expire(each)
        self._finished()
        return NEVER

    def _finished(self) -> None:
        finishing, self._finishing = self._finishing, []
        for request in finishing:
            request.complete(None)

    def _expire(self, waiting: _Commit | _Lookup) -> None:
        what = "commit offsets" if isinstance(waiting, _Commit) else "look up committed offsets"
        cause = waiting.last_error
        reason = f": {cause}" if cause is not None else ""
        if waiting in self._in_flight:
            reason = ": the coordinator has not answered, so they may have been committed"
        elif not reason and not self._finder.known:
            cause = self._sender.client.connection_failure()
            reason = ": the group's coordinator was not found" + (f": {cause}" if cause is not None else "")
        error = KafkaTimeoutError(f"Could not {what} of group {self._group_id!r} in time{reason}")
        self._fail(waiting, error.because_of(cause))

    def _fail(self, waiting: _Commit | _Lookup, error: KafkaError) -> None:
        if isinstance(waiting, _Commit):
            waiting.request.seal()
        waiting.request.fail(error)

    def _back_off(self, waiting: _Commit | _Lookup, error: KafkaError, now_ms: int) -> None:
        waiting.last_error = error
        waiting.back_off(self._backoff, now_ms)

    # Committing.

    def _send_commits(self, commits: list[_Commit], now_ms: int) -> None:
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        ids: dict[str, Uuid | None] = {}
        for commit in commits:
            commit.request.seal()
            left = self._what_is_left(commit)
            offsets.update(left)
            for tp in left:
                ids[tp.topic] = commit.request.topic_ids.get(tp) or self._metadata.topic_id(tp.topic)
        for commit in commits:
            # Whatever of it has to be sent again must not undo a newer commit that was sent with it.
            commit.left = {tp: offsets[tp] for tp in self._what_is_left(commit)}
        self._in_flight = [commit for commit in commits if commit.left]
        for commit in commits:
            if not commit.left:
                self._complete(commit)
        if not offsets:
            return
        generation = commits[0].request.generation
        request = commit_request(self._group_id, self._group_instance_id, generation, offsets, ids)
        coordinator = self._finder.coordinator
        if coordinator is not None and self._membership.rebalancing:
            # What comes behind a JoinGroup on its connection is looked at when all members have joined.
            coordinator = without_coordination(coordinator)
        self._sender.send(
            coordinator,
            ApiKeys.OFFSET_COMMIT,
            lambda _version: request,
            lambda reply: self._on_commit(ids, reply, reply.now_ms - now_ms),
            now_ms,
            max_version=None if all(ids.values()) else LAST_VERSION_WITH_NAMES,
        )

    def _what_is_left(self, commit: _Commit) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what is to be committed still, without partitions whose topic was deleted and created again."""
        left = commit.request.offsets if commit.left is None else commit.left
        ids = commit.request.topic_ids
        for tp in left:
            known = self._metadata.topic_id(tp.topic)
            if known is not None and ids.get(tp, known) != known:
                commit.gone.add(tp)
        return {tp: offset for tp, offset in left.items() if tp not in commit.gone}

    def _complete(self, commit: _Commit) -> None:
        """All is committed but for what cannot be."""
        request = commit.request
        if not commit.gone:
            request.complete(request.offsets)
            return
        names = ", ".join(f"{tp} ({request.offsets[tp].offset})" for tp in sorted(commit.gone))
        reason = f"These offsets were not committed, as their topics do not exist any more: {names}"
        if request.automatic:
            self._log.warning("%s", reason)
            request.offsets = {tp: offset for tp, offset in request.offsets.items() if tp not in commit.gone}
            request.complete(request.offsets)
        else:
            self._fail(commit, UnknownTopicOrPartitionError(f"{reason}; all others were"))

    def _on_commit(self, ids: Mapping[str, Uuid | None], reply: Reply, latency_ms: int) -> None:
        commits, self._in_flight = self._in_flight, []
        again: list[_Commit | _Lookup] = []
        if reply.error is not None:
            if reply.error.retriable:
                self._finder.mark_unknown(str(reply.error))
            for commit in commits:
                if self._failed_for_good(commit, reply.error):
                    continue
                self._back_off(commit, reply.error, reply.now_ms)
                again.append(commit)
        else:
            self._metrics.committed(latency_ms)
            response: offset_commit.OffsetCommitResponse = reply.message
            names = {topic_id: name for name, topic_id in ids.items()}
            # A topic that was not asked for has no name here, and concerns nobody.
            codes = {
                TopicPartition(
                    topic.name or names.get(topic.topic_id, ""), partition.partition_index
                ): partition.error_code
                for topic in response.topics
                for partition in topic.partitions
            }
            moved = _OTHER_COORDINATOR.intersection(codes.values())
            if moved:
                self._finder.mark_unknown(Errors.name_of(min(moved)))
            again.extend(commit for commit in commits if self._has_to_go_again(commit, codes, reply.now_ms))
        # In front of those that were asked for later, so that none of them is undone.
        self._waiting[:0] = again

    def _failed_for_good(self, commit: _Commit, error: KafkaError) -> bool:
        """True if there is no other attempt after `error`; its future has failed then."""
        if not error.retriable:
            self._fail(commit, error)
        elif not commit.request.retry:
            failed = RetriableCommitFailedError(f"The offsets were not committed, commit again: {error}")
            failed.__cause__ = error
            self._fail(commit, failed)
        return commit.request.done()

    def _has_to_go_again(self, commit: _Commit, codes: Mapping[TopicPartition, int], now_ms: int) -> bool:
        """Complete `commit` as the answer says, unless it is to be tried again."""
        assert commit.left is not None
        left = {tp: offset for tp, offset in commit.left.items() if codes.get(tp) != 0}
        unauthorized: set[str] = set()
        error: KafkaError | None = None
        for tp in left:
            code = codes.get(tp)
            if code is None:
                self._fail(
                    commit,
                    KafkaError(f"The answer says nothing of the offset of {tp}; it may have been committed"),
                )
                return False
            if code == Errors.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.add(tp.topic)
            elif code in _NO_SUCH_TOPIC and self._metadata.is_gone(
                tp.topic, commit.request.topic_ids.get(tp)
            ):
                commit.gone.add(tp)
            elif code in _TRY_AGAIN:
                if code in _NO_SUCH_TOPIC:
                    self._metadata.request_update()  # which says whether it is gone, or the coordinator lags behind
                error = Errors.for_code(code, f"{tp}: {Errors.name_of(code)}")
            else:
                renewed, refusal = self._refused(code, tp, commit.request)
                if renewed is None or self._leader_is_gone(code, renewed, now_ms):
                    self._fail(commit, refusal)
                    return False
                if renewed == commit.request.generation:
                    self._back_off(commit, refusal, now_ms)
                commit.request.generation = renewed
                commit.left = left
                return True
        if unauthorized:
            names = ", ".join(sorted(unauthorized))
            self._fail(commit, TopicAuthorizationError(f"Not authorized to commit offsets of: {names}"))
        elif error is None:
            self._complete(commit)
        elif not self._failed_for_good(commit, error):
            commit.left = {tp: offset for tp, offset in left.items() if tp not in commit.gone}
            self._back_off(commit, error, now_ms)
            return True
        return False

    def _refused(
        self, code: int, tp: TopicPartition, request: CommitRequest
    ) -> tuple[Generation | None, KafkaError]:
        """The place in the group with which to try again, if there is one, and the error otherwise."""
        name = Errors.name_of(code)
        if code == Errors.GROUP_AUTHORIZATION_FAILED:
            return None, GroupAuthorizationError(f"Not authorized to use group {self._group_id!r}")
        if code == Errors.REBALANCE_IN_PROGRESS:
            return self._other_place(code, request), commit_while_rebalancing()
        if code == Errors.FENCED_INSTANCE_ID:
            error = FencedInstanceIdError(
                f"Another consumer has joined with group.instance.id {self._group_instance_id!r}"
            )
            self._membership.fenced(error)
            return None, error
        if code in _OTHER_PLACE:
            return self._other_place(code, request), CommitFailedError()
        error_of_code = Errors.for_code(code, f"The offset of {tp} was not committed: {name}")
        assert error_of_code is not None
        return None, error_of_code

    def _other_place(self, code: int, request: CommitRequest) -> Generation | None:
        return self._membership.commit_refused(code, request.generation, last=request.last)

    def _leader_is_gone(self, code: int, generation: Generation, now_ms: int) -> bool:
        """True if the group waits for its leader for so long that who leaves should not wait along with it."""
        if code != Errors.REBALANCE_IN_PROGRESS:
            return False
        if self._unassigned is None or self._unassigned[0] != generation:
            self._unassigned = generation, now_ms
        return now_ms - self._unassigned[1] >= _LEADER_MS

    # Looking up.

    def _send_fetch(self, lookup: _Lookup, now_ms: int) -> None:
        ids = {topic: self._metadata.topic_id(topic) for topic in {tp.topic for tp in lookup.partitions}}
        lookup.generation = generation = self._membership.generation_for_lookup()
        self._sender.send(
            self._finder.coordinator,
            ApiKeys.OFFSET_FETCH,
            lambda version: lookup_request(self._group_id, generation, lookup.partitions, ids, version),
            lambda reply: self._on_fetch(lookup, ids, reply),
            now_ms,
            max_version=None if all(ids.values()) else LAST_VERSION_WITH_NAMES,
        )

    def _on_fetch(self, lookup: _Lookup, ids: Mapping[str, Uuid | None], reply: Reply) -> None:
        if reply.error is not None:
            if reply.error.retriable:
                self._finder.mark_unknown(str(reply.error))
                self._retry_fetch(lookup, reply.error, reply.now_ms)
            else:
                lookup.request.fail(reply.error)
            return
        response: offset_fetch.OffsetFetchResponse = reply.message
        code, topics = response.error_code, list[Any](response.topics)
        if response.groups:
            code, topics = response.groups[0].error_code, list[Any](response.groups[0].topics)
        if code:
            self._fetch_error(lookup, code, reply.now_ms)
            return
        found: CommittedOffsets = dict.fromkeys(lookup.partitions)
        unauthorized: set[str] = set()
        by_id = {topic_id: name for name, topic_id in ids.items()}
        for topic in topics:
            name = topic.name or by_id.get(topic.topic_id, "")  # as for commits
            for partition in topic.partitions:
                tp = TopicPartition(name, partition.partition_index)
                code = partition.error_code
                if code == Errors.TOPIC_AUTHORIZATION_FAILED:
                    unauthorized.add(name)
                elif code == Errors.UNKNOWN_TOPIC_OR_PARTITION or (
                    code == Errors.UNKNOWN_TOPIC_ID and self._metadata.topic_id(name) is None
                ):
                    continue  # it may be about to appear; nothing is committed for it
                elif code:
                    self._fetch_error(lookup, code, reply.now_ms)
                    return
                elif tp in found and partition.committed_offset >= 0:
                    found[tp] = _offset(partition)
        if unauthorized:
            names = ", ".join(sorted(unauthorized))
            lookup.request.fail(TopicAuthorizationError(f"Not authorized to read offsets of: {names}"))
        else:
            lookup.request.complete(found)

    def _fetch_error(self, lookup: _Lookup, code: int, now_ms: int) -> None:
        error = Errors.for_code(code)
        assert error is not None
        if code == Errors.GROUP_AUTHORIZATION_FAILED:
            error = GroupAuthorizationError(f"Not authorized to use group {self._group_id!r}")
        if code in _OTHER_COORDINATOR:
            self._finder.mark_unknown(Errors.name_of(code))
        if code in _NO_SUCH_TOPIC:
            self._metadata.request_update()  # it has another id, or the coordinator lags behind
        if code in _OTHER_PLACE and lookup.generation is not None:
            # The next heartbeat says which place it is, or that there is none: then nobody asks for it.
            self._membership.commit_refused(code, lookup.generation)
        elif not error.retriable:
            lookup.request.fail(error)
            return
        self._retry_fetch(lookup, error, now_ms)

    def _retry_fetch(self, lookup: _Lookup, error: KafkaError, now_ms: int) -> None:
        self._back_off(lookup, error, now_ms)
        self._waiting.append(lookup)


def _offset(partition: Any) -> OffsetAndMetadata:
    epoch = partition.committed_leader_epoch
    return OffsetAndMetadata(
        partition.committed_offset, partition.metadata or "", None if epoch < 0 else epoch
    )
