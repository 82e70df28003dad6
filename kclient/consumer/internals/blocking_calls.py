"""The calls of the blocking consumer that wait, and what they do meanwhile: rebalances, commits, errors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kclient._accel import Columns
from kclient.common.offsets import OffsetAndMetadata, OffsetAndTimestamp
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.internals.arguments import checked_timeout
from kclient.consumer.internals.committer import OnCommit
from kclient.consumer.internals.completed_fetch import COLUMN_VIEWS, COLUMNS, RECORDS
from kclient.consumer.internals.consumer_core import ConsumerCore
from kclient.consumer.internals.rebalance_callback import RebalanceCallback, RebalanceKind
from kclient.consumer.internals.requests import Request
from kclient.consumer.types import ConsumerRecord, ConsumerRecords
from kclient.errors import IllegalStateError, InvalidGroupIdError, KafkaError, KafkaTimeoutError
from kclient.utils.time import Timer

T = TypeVar("T")

log = logging.getLogger(__name__)

_GRACE_MS = 250
"""The time after the deadline in which the I/O thread may still say why something did not happen in time."""
_FOR_EVER_MS = 2**31 - 1


class BlockingCalls:
    """The waiting half of `KafkaConsumer`; the other half is its interface. Used by one thread at a time."""

    def __init__(self, core: ConsumerCore) -> None:
        self._core = core
        self.in_callback = False

    def _do_what_is_due(self) -> None:
        """Do the things that come before anything is handed out."""
        core = self._core
        if core.wakeup.pending:
            core.wakeup.raise_if_pending()
        if core.queue:
            core.queue.run_calls()
            self._run_callbacks()
            core.queue.raise_error()
        core.metadata.raise_any_error()
        core.assigned.raise_error()

    def check_can_poll(self) -> None:
        """Raise IllegalStateError where poll() makes no sense."""
        if self.in_callback:
            raise IllegalStateError("poll() cannot be called from a rebalance listener")
        if self._core.subscription.has_nothing():
            raise IllegalStateError("There is nothing to poll: call subscribe() or assign() first")

    def wait_for_records(self, timer: Timer) -> ConsumerRecords[Any, Any]:
        """The records that can be handed out, as soon as there are any; no records when `timer` has expired."""
        self._core.metrics.polled(timer.started_ms)
        records = self._look(timer, self._core.next_records)
        return ConsumerRecords({}) if records is None else records

    def wait_for_columns(
        self, timer: Timer, max_records: int | None, *, view: bool = False, partitions: int | None = None
    ) -> dict[TopicPartition, tuple[Columns, int]]:
        """As `wait_for_records`, as columns of at most so many partitions, and where each is read on."""
        core = self._core
        if core.intercepts:
            raise IllegalStateError(
                "The interceptors of interceptor.classes see records, of which poll_columns() and poll_arrow() have "
                "none: use poll(), or no interceptors"
            )
        core.metrics.polled(timer.started_ms)
        form = COLUMN_VIEWS if view else COLUMNS
        found, positions = self._look(timer, lambda: core.next_columns(form, max_records, partitions)) or (
            {},
            {},
        )
        return {tp: (columns, positions[tp]) for tp, columns in found.items() if columns is not None}

    def _look(self, timer: Timer, look: Callable[[], T | None]) -> T | None:
        """Return what `look` finds, as soon as it finds anything; None when `timer` has expired."""
        while True:
            seen = self._core.changes.count
            self._do_what_is_due()
            found = look()
            if found is not None or timer.is_expired():
                return found
            self.wait_for_change(seen, timer)

    def wait_for_one(self, now_ms: int) -> ConsumerRecord[Any, Any]:
        """The next record; waits as long as it takes. Those behind it are given out by the core's cursor."""
        self.check_can_poll()
        core = self._core
        timer = core.time.timer(_FOR_EVER_MS)
        core.metrics.polled(now_ms)
        while True:
            seen = core.changes.count
            self._do_what_is_due()
            for portion in core.collect(RECORDS, core.config.max_poll_records):
                record = core.next_record(portion)
                if record is not None:
                    core.metrics.consumed(1)
                    core.give_out(portion, seen)
                    return record
            # A thread that waits inside poll() is alive, however long there is nothing to read.
            timer.reset(min(_FOR_EVER_MS, core.config.max_poll_interval_ms // 2))
            self.wait_for_change(seen, timer)
            core.begin_poll(core.time.monotonic_ms())

    def wait_for_change(self, seen: int, timer: Timer) -> None:
        """Wait until something has changed since `seen`, or the timer expires.

        Data that is there but must not be handed out (a paused partition) therefore does not end the wait.
        """
        core = self._core
        # It knows of the room in the buffer, unless a Ctrl-C came between.
        core.buffer.ask_for_more()
        # A lock costs both threads far less than a Condition.
        waiter = threading.Lock()
        waiter.acquire()
        if core.changes.call_at_next(seen, waiter.release):
            core.time.wait_for_lock(waiter, timer.remaining_ms())

    # Committing and leaving.

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, timer: Timer) -> None:
        """Commit `offsets`, or for None all positions, and wait until that is done."""
        commits = self._core.commits
        request = commits.commit(offsets, timer.deadline_ms)
        try:
            self._wait_for(request, timer, "The offsets were not committed")
        finally:
            self._core.queue.run_calls()  # commits made before this one are through as well
        commits.committed(request.offsets)

    def commit_in_background(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, on_commit: OnCommit | None
    ) -> None:
        """Commit `offsets`, or for None all positions, once and without waiting."""
        self._core.queue.run_calls()
        self._core.commits.commit_in_background(offsets, on_commit)

    def _commit_positions(self, timer: Timer) -> None:
        core = self._core
        if not core.commits.automatic or not core.commits.positions():
            return
        request = core.commits.commit(None, timer.deadline_ms, automatic=True)
        try:
            request.result(timer.remaining_ms() / 1000)
            core.commits.committed(request.offsets)
        except KafkaError as error:
            log.warning("[Consumer clientId=%s] The automatic commit failed: %s", core.client_id, error)

    def _finish_commits(self, timer: Timer) -> None:
        """Wait until nothing that was asked for is under way and tell of it; then also for what callbacks ask for."""
        commits = self._core.commits
        finished = 0
        for _ in range(2):  # no more, for a callback may commit again whenever it is called
            if commits.asked == finished:
                return
            finished = commits.asked
            try:
                commits.finish(timer.deadline_ms).result((timer.remaining_ms() + _GRACE_MS) / 1000)
            except KafkaError as error:
                log.info(
                    "[Consumer clientId=%s] Commits are under way still: %s", self._core.client_id, error
                )
            self._core.queue.run_calls()

    def unsubscribe(self, timer: Timer, reason: str = "the consumer unsubscribed from all topics") -> None:
        """Give up what is held and leave the group, after the commits that were asked for."""
        core = self._core
        self._commit_positions(timer)
        try:
            held = core.assigned.partitions()
            membership = core.membership
            if membership is not None and held and core.subscription.has_auto_assigned_partitions():
                lost = membership.generation_for_commit() is None and not membership.rebalancing
                self._tell_listener(RebalanceKind.LOST if lost else RebalanceKind.REVOKED, held)
        finally:
            try:
                self._finish_commits(timer)
            finally:
                self._leave(timer, reason)

    def _leave(self, timer: Timer, reason: str) -> None:
        core = self._core
        core.unsubscribe()
        request = core.leave_group(reason, timer.deadline_ms)
        try:
            request.result(min(timer.remaining_ms(), core.config.request_timeout_ms) / 1000)
        except KafkaError as error:
            log.info("[Consumer clientId=%s] Not left the group: %s", core.client_id, error)

    def close(self, timer: Timer, closed: Callable[[], None]) -> BaseException | None:
        """End it all, and call `closed` then; returns what the application's own code raised, the first of it."""
        core = self._core
        core.wakeup.closing = True
        failure: BaseException | None = None
        try:
            self.unsubscribe(timer, "the consumer is being closed")
        except Exception as error:
            failure = error
        finally:
            core.network.close(timer.remaining_ms())
            core.network.join(timer.remaining_ms())
            core.metadata.close()
            core.close_parts()
            closed()
        last = core.queue.run_all_calls()
        return failure or last

    # Rebalancing, and waiting.

    def _run_callbacks(self) -> None:
        core = self._core
        while (due := core.next_callback()) is not None:
            callback, kind = due
            try:
                self._run_callback(callback, kind)
            finally:
                core.finish_callback(callback)

    def _run_callback(self, callback: RebalanceCallback, kind: RebalanceKind) -> None:
        core = self._core
        if kind is RebalanceKind.ASSIGNED:
            self._tell_listener(kind, core.take_assignment(callback))
            return
        try:
            self._tell_listener(kind, callback.partitions)
        finally:
            core.drop_assignment(callback)

    def _tell_listener(self, kind: RebalanceKind, partitions: frozenset[TopicPartition]) -> None:
        listener = self._core.listener
        if listener is None:
            return
        self.in_callback = True
        try:
            if kind is RebalanceKind.ASSIGNED:
                listener.on_partitions_assigned(partitions)
            elif kind is RebalanceKind.REVOKED:
                listener.on_partitions_revoked(partitions)
            else:
                listener.on_partitions_lost(partitions)
        finally:
            self.in_callback = False

    def timer(self, timeout_ms: int | None) -> Timer:
        """The deadline of a call: its own, or that of default.api.timeout.ms."""
        return self._core.time.timer(checked_timeout(timeout_ms, self._core.config.default_api_timeout_ms))

    def _wait_for(self, request: Request[T], timer: Timer, failure: str) -> T:
        """Return what `request` is completed with; `failure` says what a timeout means."""
        wakeup = self._core.wakeup
        wakeup.begin_wait(request)
        try:
            return request.result((timer.remaining_ms() + _GRACE_MS) / 1000)
        except KafkaTimeoutError as error:
            if request.done():
                raise
            raise KafkaTimeoutError(f"{failure} within {timer.timeout_ms} ms") from error
        finally:
            wakeup.end_wait()

    # Questions to the cluster and the group.

    def committed(
        self, partitions: Sequence[TopicPartition], timer: Timer
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The offsets that the group has committed; None where none is."""
        request = self._core.committed(partitions, timer.deadline_ms)
        found = self._wait_for(request, timer, "The committed offsets were not found")
        return {tp: found[tp] for tp in partitions}

    def offsets(
        self, timestamps: Mapping[TopicPartition, int], timer: Timer
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first records at or after times, or the codes of the log's ends; None where there is none."""
        if not timestamps:
            return {}
        request = self._core.list_offsets(timestamps, timer.deadline_ms)
        found = self._wait_for(request, timer, "The offsets were not found")
        return {tp: found[tp] for tp in timestamps}

    def log_ends(
        self, partitions: Sequence[TopicPartition], which: int, timer: Timer
    ) -> dict[TopicPartition, int]:
        """The offsets where the logs begin or end, as the code `which` says."""
        found = self.offsets(dict.fromkeys(partitions, which), timer)
        return {tp: offset.offset for tp, offset in found.items() if offset is not None}

    def partitions_of(self, topic: str, timer: Timer) -> list[PartitionInfo]:
        """The partitions of `topic`, empty if there is no such topic."""
        request = self._core.topics((topic,), timer.deadline_ms)
        return list(self._wait_for(request, timer, f"Topic {topic} was not found").get(topic, ()))

    def topics(self, timer: Timer) -> dict[str, list[PartitionInfo]]:
        """All topics that the consumer may see, with their partitions."""
        request = self._core.topics(None, timer.deadline_ms)
        return self._wait_for(request, timer, "The topics were not found")

    def position(self, tp: TopicPartition, timer: Timer) -> int:
        """The offset of the next record, waited for until it is known; raises what keeps it from being known."""
        core = self._core
        while True:
            seen = core.changes.count
            position = core.assigned.state(tp).valid_position()
            if position is not None:
                return position.offset
            core.wakeup.raise_if_pending()
            core.queue.raise_error()
            core.assigned.raise_error()
            if timer.is_expired():
                raise KafkaTimeoutError(f"The position of {tp} was not found in {timer.timeout_ms} ms")
            self.wait_for_change(seen, timer)

    def need_group(self, what: str) -> None:
        """Raise InvalidGroupIdError for a consumer without a group."""
        if self._core.config.group_id is None:
            raise InvalidGroupIdError(f"{what} needs a group; set group.id")
