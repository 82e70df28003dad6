"""The calls of a consumer that may have to wait, as steps, and what they do meanwhile: rebalances, commits, errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeVar

from kclient._accel import Columns
from kclient.common.offsets import OffsetAndMetadata, OffsetAndTimestamp
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.columns import RecordColumns
from kclient.consumer.group_membership_operation import GroupMembershipOperation
from kclient.consumer.internals.arguments import checked_timeout
from kclient.consumer.internals.arrow import ArrowBatches
from kclient.consumer.internals.committer import OnCommit
from kclient.consumer.internals.completed_fetch import COLUMN_VIEWS, COLUMNS, RECORDS, Form
from kclient.consumer.internals.consumer_core import ConsumerCore
from kclient.consumer.internals.rebalance_callback import RebalanceCallback, RebalanceKind
from kclient.consumer.internals.requests import Request
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.consumer.types import ConsumerRecord, ConsumerRecords
from kclient.errors import IllegalStateError, InvalidGroupIdError, KafkaError, KafkaTimeoutError
from kclient.utils.steps import Pause, Steps
from kclient.utils.time import NS_PER_MS, Timer

T = TypeVar("T")

log = logging.getLogger(__name__)

_GRACE_MS = 250
"""The time after the deadline in which the I/O thread may still say why something did not happen in time."""
_FOR_EVER_MS = 2**31 - 1


class ConsumerCalls:
    """All of a consumer that waits, for a face that takes the steps in its own way. Used by one caller at a time.

    A face is what the application calls: `KafkaConsumer` waits on the calling thread. It lets one caller in at a time,
    says `begin_poll` before the steps that read, and takes back (`ConsumerCore.undo_last`) what such steps have handed
    out if its caller does not get it.
    """

    def __init__(self, core: ConsumerCore) -> None:
        self._core = core
        self.in_callback = False

    # Reading.

    def begin_poll(self, now_ms: int) -> None:
        """Treat what was handed out before as processed. Raises IllegalStateError where poll() makes no sense."""
        if self.in_callback:
            raise IllegalStateError("poll() cannot be called from a rebalance listener")
        core = self._core
        if core.subscription.has_nothing():
            raise IllegalStateError("There is nothing to poll: call subscribe() or assign() first")
        core.begin_poll(now_ms)
        core.metrics.polled(now_ms)

    def records(self, timer: Timer) -> Steps[ConsumerRecords[Any, Any]]:
        """The records that can be handed out, as soon as there are any; no records when `timer` has expired."""
        return self._look(timer, self._core.next_records, _no_records)

    def columns(self, timer: Timer, max_records: int | None) -> Steps[dict[TopicPartition, RecordColumns]]:
        """The same as columns of raw bytes."""
        self._check_columns()

        def look() -> dict[TopicPartition, RecordColumns] | None:
            found = self._core.next_columns(COLUMNS, max_records, None)
            if found is None:
                return None
            columns, positions = found
            return {
                tp: RecordColumns.of(tp, each, positions[tp])
                for tp, each in columns.items()
                if each is not None
            }

        return self._look(timer, look, dict)

    def arrow(self, timer: Timer, max_records: int | None, batches: ArrowBatches) -> Steps[Any]:
        """The same as a batch of Arrow, of one partition."""
        self._check_columns()
        form: Form[Columns | None] = COLUMN_VIEWS if batches.views else COLUMNS

        def look() -> Any:
            found = self._core.next_columns(form, max_records, 1)
            if found is None:
                return None
            for tp, each in found[0].items():
                if each is not None:
                    return batches.batch(tp, each)
            return batches.empty()

        return self._look(timer, look, batches.empty)

    def _check_columns(self) -> None:
        if self._core.intercepts:
            raise IllegalStateError(
                "The interceptors of interceptor.classes see records, of which poll_columns() and poll_arrow() have "
                "none: use poll(), or no interceptors"
            )

    def _look(self, timer: Timer, look: Callable[[], T | None], nothing: Callable[[], T]) -> Steps[T]:
        """Return what `look` finds, as soon as it finds anything; `nothing()` when `timer` has expired."""
        core = self._core
        while True:
            seen = core.changes.count
            if core.wakeup.pending or core.queue:
                yield from self._do_what_is_due()
            core.metadata.raise_any_error()
            core.assigned.raise_error()
            found = look()
            if found is not None:
                return found
            if timer.is_expired():
                return nothing()
            began_ms = timer.now_ms()
            yield self._next_change(seen, timer)
            core.metrics.waited(timer.now_ms() - began_ms)

    def next_record(self) -> Steps[ConsumerRecord[Any, Any]]:
        """The next record; waits as long as it takes. Those behind it are given out by the core's cursor."""
        core = self._core
        timer = core.time.timer(_FOR_EVER_MS)
        while True:
            seen = core.changes.count
            if core.wakeup.pending or core.queue:
                yield from self._do_what_is_due()
            core.metadata.raise_any_error()
            core.assigned.raise_error()
            for portion in core.collect(RECORDS, core.config.max_poll_records):
                record = core.next_record(portion)
                if record is not None:
                    core.metrics.consumed(((portion.fetch.tp, 1),))
                    core.give_out(portion, seen)
                    return record
            # Who waits inside poll() is alive, however long there is nothing to read.
            timer.reset(min(_FOR_EVER_MS, core.config.max_poll_interval_ms // 2))
            yield self._next_change(seen, timer)
            core.begin_poll(core.time.monotonic_ms())

    def _next_change(self, seen: int, timer: Timer) -> Pause:
        """A wait until something has changed since `seen`.

        Data that is there but must not be handed out (a paused partition) therefore does not end it.
        """
        core = self._core
        # It knows of the room in the buffer, unless a Ctrl-C came between.
        core.buffer.ask_for_more()
        return Pause(core.changes.next(seen), timer)

    def _do_what_is_due(self) -> Steps[None]:
        """Do the things that come before anything is handed out."""
        core = self._core
        core.wakeup.raise_if_pending()
        core.queue.run_calls()
        yield from self._run_callbacks()
        core.queue.raise_error()

    # Committing and leaving.

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, timer: Timer) -> Steps[None]:
        """Commit `offsets`, or for None all positions, and wait until that is done."""
        commits = self._core.commits
        began_ms = timer.now_ms()
        request = commits.commit(offsets, timer.deadline_ms)
        try:
            yield from self._answer(request, timer, "The offsets were not committed")
        finally:
            self._core.metrics.commit_sync.record((timer.now_ms() - began_ms) * NS_PER_MS)
            self._core.queue.run_calls()  # commits made before this one are through as well
        commits.committed(request.offsets)

    def commit_in_background(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, on_commit: OnCommit | None
    ) -> None:
        """Commit `offsets`, or for None all positions, once and without waiting."""
        self._core.queue.run_calls()
        self._core.commits.commit_in_background(offsets, on_commit)

    def _commit_positions(self, timer: Timer) -> Steps[None]:
        core = self._core
        if not core.commits.automatic or not core.assigned.consumed():
            return
        request = core.commits.commit(None, timer.deadline_ms, automatic=True)
        try:
            yield from self._outcome(request, timer.remaining_ms())
            core.commits.committed(request.offsets)
        except KafkaError as error:
            log.warning(
                "[Consumer clientId=%s] The automatic commit failed: %s", core.config.client_id, error
            )

    def _finish_commits(self, timer: Timer) -> Steps[None]:
        """Wait until nothing that was asked for is under way and tell of it; then also for what callbacks ask for."""
        commits = self._core.commits
        finished = 0
        for _ in range(2):  # no more, for a callback may commit again whenever it is called
            if commits.asked == finished:
                return
            finished = commits.asked
            try:
                yield from self._outcome(commits.finish(timer.deadline_ms), timer.remaining_ms() + _GRACE_MS)
            except KafkaError as error:
                log.info(
                    "[Consumer clientId=%s] Commits are under way still: %s",
                    self._core.config.client_id,
                    error,
                )
            self._core.queue.run_calls()

    def unsubscribe(
        self,
        timer: Timer,
        reason: str = "the consumer unsubscribed from all topics",
        operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT,
    ) -> Steps[None]:
        """Give up what is held and leave the group, after the commits that were asked for."""
        commits = self._core.commits
        commits.leaving = True
        try:
            yield from self._commit_positions(timer)
            leave = self._leave(timer, reason, operation)
            yield from _then(self._give_up_all(), _then(self._finish_commits(timer), leave))
        finally:
            commits.leaving = False

    def _give_up_all(self) -> Steps[None]:
        core = self._core
        held = core.assigned.partitions()
        membership = core.membership
        if membership is not None and held and core.subscription.has_auto_assigned_partitions():
            lost = membership.generation_for_last_commit() is None
            yield from self._tell_listener(RebalanceKind.LOST if lost else RebalanceKind.REVOKED, held)

    def _leave(self, timer: Timer, reason: str, operation: GroupMembershipOperation) -> Steps[None]:
        core = self._core
        core.unsubscribe()
        request = core.leave_group(reason, timer.deadline_ms, operation)
        try:
            yield from self._outcome(request, min(timer.remaining_ms(), core.config.request_timeout_ms))
        except KafkaError as error:
            log.info("[Consumer clientId=%s] Not left the group: %s", core.config.client_id, error)

    def close(
        self, timer: Timer, operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT
    ) -> Steps[BaseException | None]:
        """Leave as `unsubscribe` does, whatever a wakeup says; returns what the application's own code raised.

        The face ends the I/O thread then, also if these steps did not come to their end.
        """
        self._core.wakeup.closing = True
        try:
            yield from self.unsubscribe(timer, "the consumer is being closed", operation)
        except Exception as error:
            return error
        return None

    # Rebalancing, and waiting.

    def _run_callbacks(self) -> Steps[None]:
        core = self._core
        while (due := core.next_callback()) is not None:
            callback, kind = due
            try:
                yield from self._run_callback(callback, kind)
            finally:
                core.finish_callback(callback)

    def _run_callback(self, callback: RebalanceCallback, kind: RebalanceKind) -> Steps[None]:
        core = self._core
        if kind is RebalanceKind.ASSIGNED:
            yield from self._tell_listener(kind, core.take_assignment(callback))
            return
        try:
            yield from self._tell_listener(kind, callback.partitions)
        finally:
            core.drop_assignment(callback)

    def _tell_listener(self, kind: RebalanceKind, partitions: frozenset[TopicPartition]) -> Steps[None]:
        core = self._core
        listener = core.listener
        if listener is None:
            return
        self.in_callback = True
        began_ms = core.time.monotonic_ms()
        try:
            yield from self.call_listener(listener, kind, partitions)
        finally:
            self.in_callback = False
            if core.metrics.group is not None:
                core.metrics.group.listener_called(kind, core.time.monotonic_ms() - began_ms)

    def call_listener(
        self, listener: ConsumerRebalanceListener, kind: RebalanceKind, partitions: frozenset[TopicPartition]
    ) -> Steps[None]:
        """Call the application's `listener`. For a face with listeners to be awaited to override: the only place."""
        if kind is RebalanceKind.ASSIGNED:
            listener.on_partitions_assigned(partitions)
        elif kind is RebalanceKind.REVOKED:
            listener.on_partitions_revoked(partitions)
        else:
            listener.on_partitions_lost(partitions)
        yield from ()  # nothing to wait for here

    def timer(self, timeout_ms: int | None) -> Timer:
        """The deadline of a call: its own, or that of default.api.timeout.ms."""
        return self._core.time.timer(checked_timeout(timeout_ms, self._core.config.default_api_timeout_ms))

    def _answer(self, request: Request[T], timer: Timer, failure: str) -> Steps[T]:
        """Return what `request` is completed with, unless a wakeup ends it; `failure` says what a timeout means."""
        wakeup = self._core.wakeup
        wakeup.begin_wait(request)
        try:
            return (yield from self._outcome(request, timer.remaining_ms() + _GRACE_MS))
        except KafkaTimeoutError as error:
            if request.done():
                raise
            raise KafkaTimeoutError(f"{failure} within {timer.timeout_ms} ms") from error
        finally:
            wakeup.end_wait()

    def _outcome(self, request: Request[T], timeout_ms: int) -> Steps[T]:
        """Return what `request` is completed with. Raises KafkaTimeoutError, too, if it is not by then."""
        yield Pause(request, self._core.time.timer(timeout_ms))
        if not request.done():
            raise KafkaTimeoutError(
                f"The operation did not finish within {timeout_ms / 1000} s; it goes on in the background"
            )
        return request.result()

    # Questions to the cluster and the group.

    def committed(
        self, partitions: Sequence[TopicPartition], timer: Timer
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """The offsets that the group has committed; None where none is."""
        began_ms = timer.now_ms()
        request = self._core.questions.committed(partitions, timer.deadline_ms)
        try:
            found = yield from self._answer(request, timer, "The committed offsets were not found")
        finally:
            self._core.metrics.committed.record((timer.now_ms() - began_ms) * NS_PER_MS)
        return {tp: found[tp] for tp in partitions}

    def offsets(
        self, timestamps: Mapping[TopicPartition, int], timer: Timer
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """The first records at or after times, or the codes of the log's ends; None where there is none."""
        if not timestamps:
            return {}
        request = self._core.questions.offsets(timestamps, timer.deadline_ms)
        found = yield from self._answer(request, timer, "The offsets were not found")
        return {tp: found[tp] for tp in timestamps}

    def log_ends(
        self, partitions: Sequence[TopicPartition], which: int, timer: Timer
    ) -> Steps[dict[TopicPartition, int]]:
        """The offsets where the logs begin or end, as the code `which` says."""
        found = yield from self.offsets(dict.fromkeys(partitions, which), timer)
        return {tp: offset.offset for tp, offset in found.items() if offset is not None}

    def partitions_of(self, topic: str, timer: Timer) -> Steps[list[PartitionInfo]]:
        """The partitions of `topic`, empty if there is no such topic."""
        request = self._core.questions.topics((topic,), timer.deadline_ms)
        found = yield from self._answer(request, timer, f"Topic {topic} was not found")
        return list(found.get(topic, ()))

    def topics(self, timer: Timer) -> Steps[dict[str, list[PartitionInfo]]]:
        """All topics that the consumer may see, with their partitions."""
        request = self._core.questions.topics(None, timer.deadline_ms)
        return (yield from self._answer(request, timer, "The topics were not found"))

    def position(self, tp: TopicPartition, timer: Timer) -> Steps[int]:
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
            core.metadata.raise_fatal_error()
            if timer.is_expired():
                cause = core.network.connection_failure()
                raise KafkaTimeoutError(
                    f"The position of {tp} was not found in {timer.timeout_ms} ms"
                    + (f": {cause}" if cause is not None else "")
                ).because_of(cause)
            yield self._next_change(seen, timer)

    def need_group(self, what: str) -> None:
        """Raise InvalidGroupIdError for a consumer without a group."""
        if self._core.config.group_id is None:
            raise InvalidGroupIdError(f"{what} needs a group; set group.id")


def _no_records() -> ConsumerRecords[Any, Any]:
    return ConsumerRecords({})


def _then(first: Steps[None], second: Steps[None]) -> Steps[None]:
    """Take `first` and then `second`, also if `first` fails.

    Where nobody goes on after a wait of the first, the second is begun and comes as far as its own first wait.
    """
    try:
        yield from first
    except GeneratorExit:
        with closing(second):
            next(second, None)
        raise
    except BaseException:
        yield from second
        raise
    yield from second
