"""Finds out where to read: positions of new partitions, resets, validation, and offsets by time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs

from kclient.client.request_sender import NEVER
from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.offsets import OffsetAndMetadata, OffsetAndTimestamp
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.consumer.internals.fetch_position import (
    LATEST,
    RESET_TO_LATEST,
    AutoOffsetReset,
    FetchPosition,
)
from kclient.consumer.internals.leader_offsets import Answer, LeaderOffsets
from kclient.consumer.internals.metadata import ConsumerMetadata
from kclient.consumer.internals.requests import PendingRequest, Request
from kclient.consumer.internals.topic_partition_state import FetchState, TopicPartitionState
from kclient.errors import (
    Errors,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    LogTruncationError,
)
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import Logger
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.consumer.internals.coordinator.commits import CommitManager, CommittedOffsets

FoundOffsets: TypeAlias = dict[TopicPartition, OffsetAndTimestamp | None]


@attrs.define(eq=False)
class _Search(PendingRequest[FoundOffsets]):
    """One ListOffsets call of the application, which may take several rounds."""

    timestamps: Mapping[TopicPartition, int]
    missing: set[TopicPartition]
    found: FoundOffsets = attrs.field(factory=dict)
    waiting_for: int = 0


@attrs.define(kw_only=True, eq=False, repr=False)
class OffsetFetcher:
    """Gives positions to partitions that have none, checks those whose leader changed, answers offset queries.

    Belongs to the I/O thread. A valid position is never touched; see `TopicPartitionState`.
    """

    _leaders: LeaderOffsets
    _metadata: ConsumerMetadata
    _assigned: AssignedPartitions
    _commits: CommitManager | None
    _backoff: ExponentialBackoff
    _time: Time
    _config: ConsumerConfig
    _on_change: Callable[[], None]
    _discard: Callable[[TopicPartition], None]
    _log: Logger = attrs.field(init=False)
    _committed_in_flight: frozenset[TopicPartition] = attrs.field(default=frozenset(), init=False)
    _busy: set[TopicPartition] = attrs.field(factory=set, init=False)
    _searches: list[_Search] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._config.log_context().logger(__name__)

    def search(self, timestamps: Mapping[TopicPartition, int], request: Request[FoundOffsets]) -> None:
        """Look up offsets by timestamp, or by the codes of the log's ends; None where there is none."""
        topics = {tp.topic for tp in timestamps}
        self._metadata.add_transient_topics(topics)
        request.add_done_callback(lambda _: self._metadata.remove_transient_topics(topics))
        self._searches.append(_Search(request, timestamps, set(timestamps)))

    def poll(self, now_ms: int) -> int:
        """Ask for what is missing."""
        wait_ms: int | None = None
        if not self._assigned.all_valid():
            self._initialize(now_ms)
            self._reset(now_ms)
            self._validate(now_ms)
            wait_ms = self._assigned.next_retry_delay_ms(now_ms)
        searched_ms = self._poll_searches(now_ms) if self._searches else NEVER
        return searched_ms if wait_ms is None else min(wait_ms, searched_ms)

    def metadata_updated(self, cluster: Cluster) -> None:  # noqa: ARG002 - it is for listeners
        """Take over what new metadata means for positions; queries that miss a leader are continued at once."""
        for tp in self._assigned.follow_topics(self._metadata.topic_id):
            self._discard(tp)
        self._assigned.update_leaders(self._metadata.leader_and_epoch, self._leaders.can_validate)
        for search in self._searches:
            if isinstance(search.last_error, LeaderNotAvailableError):
                search.retry_ms = 0

    # Committed offsets.

    def _initialize(self, now_ms: int) -> None:
        needing = self._assigned.in_state(FetchState.INITIALIZING, now_ms)
        if not needing:
            return
        if self._commits is None:
            for state in needing.values():
                state.initialize_by_policy(self._assigned.default_reset)
            self._on_change()
            return
        if self._committed_in_flight.issuperset(needing):
            return
        request: Request[CommittedOffsets] = Request(now_ms + self._config.default_api_timeout_ms)
        self._committed_in_flight = partitions = frozenset(needing)
        request.add_done_callback(lambda _: self._on_committed(needing, partitions, request))
        self._commits.fetch(partitions, request)
        self._commits.poll(now_ms)

    def _on_committed(
        self,
        states: Mapping[TopicPartition, TopicPartitionState],
        partitions: frozenset[TopicPartition],
        request: Request[CommittedOffsets],
    ) -> None:
        if self._committed_in_flight is partitions:
            self._committed_in_flight = frozenset()
        error = request.exception()
        if isinstance(error, KafkaError):
            self._back_off(*states.values())
            if not isinstance(error, KafkaTimeoutError):
                self._fail(error, *states.values())
            return
        for tp, committed in request.result().items():
            if committed is None:
                states[tp].initialize_by_policy(self._assigned.default_reset)
            else:
                self._start_at(states[tp], committed)
        self._on_change()

    def _start_at(self, state: TopicPartitionState, committed: OffsetAndMetadata) -> None:
        tp, epoch = state.tp, committed.leader_epoch
        self._log.info("Starting %s at the committed offset %d", tp, committed.offset)
        if epoch is not None:
            self._metadata.update_last_seen_epoch_if_newer(tp, epoch)
        position = FetchPosition(committed.offset, epoch, self._metadata.leader_and_epoch(tp))
        # The log may have been cut below it since its records were read.
        state.initialize(
            position, validate=epoch is not None and self._leaders.can_validate(position.leader.leader)
        )

    # Resets.

    def _reset(self, now_ms: int) -> None:
        states = self._assigned.in_state(FetchState.AWAIT_RESET, now_ms)
        if not states:
            return
        wall_ms = self._time.wall_ms()
        asked = {
            tp: reset
            for tp, state in states.items()
            if tp not in self._busy and (reset := state.reset) is not None
        }
        wanted = {tp: reset.timestamp(wall_ms) for tp, reset in asked.items()}

        def on_answers(answers: Mapping[TopicPartition, Answer]) -> None:
            for tp, answer in answers.items():
                self._busy.discard(tp)
                self._finish_reset(states[tp], asked[tp], answer)

        self._busy.update(wanted)
        self._leaders.find_offsets(wanted, on_answers, now_ms)

    def _finish_reset(self, state: TopicPartitionState, asked: AutoOffsetReset, answer: Answer) -> None:
        tp = state.tp
        if isinstance(answer.error, LeaderNotAvailableError):
            return  # new metadata is on its way and gives another turn
        if answer.error is not None:
            self._back_off(state)
            if not answer.error.retriable:
                self._fail(answer.error, state)
        elif answer.offset >= 0:
            if answer.leader_epoch is not None:
                self._metadata.update_last_seen_epoch_if_newer(tp, answer.leader_epoch)
            # No epoch goes into the position: nothing was read before it that could have been truncated.
            position = FetchPosition(answer.offset, None, self._metadata.leader_and_epoch(tp))
            if state.finish_reset(asked, position):
                self._log.info("Starting %s at offset %d (%s)", tp, position.offset, asked.policy)
            self._on_change()
        elif asked.duration_ms is not None:
            # Nothing is younger than that, so all there is to read is what comes next.
            state.redirect_reset(asked, RESET_TO_LATEST)
        else:
            self._log.warning("The broker gave the impossible offset %d for %s", answer.offset, tp)
            self._back_off(state)

    # Queries of the application.

    def _poll_searches(self, now_ms: int) -> int:
        wait_ms = NEVER
        self._searches = [each for each in self._searches if not each.request.done()]
        for search in self._searches:
            if now_ms >= search.request.deadline_ms:
                missing = ", ".join(map(str, sorted(search.missing)))
                search.expire(
                    f"No offsets were found in time for {missing}", self._leaders.connection_failure()
                )
                continue
            if search.waiting_for == 0 and now_ms >= search.retry_ms:
                self._continue_search(search, now_ms)
            next_ms = search.request.deadline_ms
            if search.waiting_for == 0:
                next_ms = min(next_ms, search.retry_ms)
            wait_ms = min(wait_ms, next_ms - now_ms)
        return max(wait_ms, 0)

    def _continue_search(self, search: _Search, now_ms: int) -> None:
        wanted = {tp: time for tp, time in search.timestamps.items() if tp in search.missing}
        try:
            self._metadata.raise_fatal_error()
        except KafkaError as error:
            search.request.fail(error)
            return
        search.back_off(self._backoff, now_ms)
        search.waiting_for = len(wanted)

        def on_answers(answers: Mapping[TopicPartition, Answer]) -> None:
            search.waiting_for -= len(answers)
            for tp, answer in answers.items():
                self._take_answer(search, tp, answer)
            if not search.missing:
                search.request.complete(search.found)

        self._leaders.find_offsets(wanted, on_answers, now_ms)

    def _take_answer(self, search: _Search, tp: TopicPartition, answer: Answer) -> None:
        error = answer.error
        if error is None:
            search.missing.discard(tp)
            state = self._assigned.by_partition.get(tp)
            if search.timestamps[tp] == LATEST and state is not None:
                state.update_end(answer.offset, self._config.isolation_level == "read_committed")
            search.found[tp] = (
                OffsetAndTimestamp(answer.offset, answer.timestamp_ms, answer.leader_epoch)
                if answer.offset >= 0
                else None
            )
        elif error.code == Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT:
            search.missing.discard(tp)
            search.found[tp] = None  # the log is older than timestamps
        elif error.retriable:
            search.last_error = error
        else:
            search.request.fail(error)

    # Validation (KIP-320).

    def _validate(self, now_ms: int) -> None:
        needing = {
            tp: (state, position)
            for tp, state in self._assigned.in_state(FetchState.AWAIT_VALIDATION, now_ms).items()
            if tp not in self._busy and (position := state.position) is not None
        }
        if not needing:
            return
        leaders, _ = self._leaders.by_leader(needing)
        for node, partitions in leaders.items():
            if self._leaders.can_validate(node):
                self._ask_for_epochs(node, {tp: needing[tp] for tp in partitions}, now_ms)
                continue
            for tp in partitions:
                state, position = needing[tp]
                state.finish_validation(position, None)

    def _ask_for_epochs(
        self,
        node: Node,
        asked: Mapping[TopicPartition, tuple[TopicPartitionState, FetchPosition]],
        now_ms: int,
    ) -> None:
        def on_answers(answers: Mapping[TopicPartition, Answer]) -> None:
            self._busy.difference_update(asked)
            for tp, (state, position) in asked.items():
                end = answers.get(tp)
                if end is None:
                    self._back_off(state)
                else:
                    self._finish_validation(state, position, end)

        self._busy.update(asked)
        positions = {tp: position for tp, (_, position) in asked.items()}
        self._leaders.find_epoch_ends(node, positions, on_answers, now_ms)

    def _finish_validation(self, state: TopicPartitionState, position: FetchPosition, end: Answer) -> None:
        tp = state.tp
        if end.error is not None:
            self._back_off(state)
            if not end.error.retriable:
                self._fail(end.error, state)
            return
        if end.leader_epoch is not None and end.offset >= position.offset:
            state.finish_validation(position, None)
            self._on_change()
            return
        known = end.leader_epoch is not None and end.offset >= 0
        diverged = end.offset if known else -1
        self._log.warning(
            "The log of %s was truncated: position %s, but the epoch ends at %s", tp, position, diverged
        )
        if self._assigned.default_reset.is_none:
            error = LogTruncationError(
                f"The log of {tp} was truncated below the position {position}; records read from "
                f"{diverged if known else 'an unknown offset'} on are gone. Seek to an offset to go on",
                divergent_offsets={tp: diverged},
            )
            state.fail_validation(position, error)
            self._on_change()
        elif known:
            moved = FetchPosition(end.offset, end.leader_epoch, position.leader)
            state.finish_validation(position, moved)
            self._on_change()
        else:
            state.abandon_validation(position, self._assigned.default_reset)

    # Common.

    def _back_off(self, *states: TopicPartitionState) -> None:
        until_ms = self._time.monotonic_ms() + self._backoff.backoff_ms(0)
        for state in states:
            state.back_off(until_ms)

    def _fail(self, error: KafkaError, *states: TopicPartitionState) -> None:
        for state in states:
            state.fail(error)
        self._on_change()
