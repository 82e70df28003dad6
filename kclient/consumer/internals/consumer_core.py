"""The application's side of a consumer without its waiting: what both facades, blocking and asyncio, are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from kclient._accel import Columns, RecordCursor, yield_gil
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.group_membership_operation import GroupMembershipOperation
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.consumer.internals.application_queue import ApplicationQueue
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.consumer.internals.changes import Changes
from kclient.consumer.internals.committer import Committer
from kclient.consumer.internals.completed_fetch import RECORDS, Form, Portion
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.fetch_buffer import FetchBuffer
from kclient.consumer.internals.fetch_collector import FetchCollector
from kclient.consumer.internals.fetch_position import LATEST, AutoOffsetReset, FetchPosition
from kclient.consumer.internals.metadata import ConsumerMetadata
from kclient.consumer.internals.metrics import ConsumerMetrics
from kclient.consumer.internals.network_thread import NetworkThread
from kclient.consumer.internals.questions import Questions
from kclient.consumer.internals.rebalance_callback import RebalanceCallback, RebalanceKind
from kclient.consumer.internals.requests import CommitRequest, Request
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.consumer.internals.wakeup import WakeupTrigger
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.consumer.subscription_pattern import SubscriptionPattern
from kclient.consumer.types import ConsumerRecord, ConsumerRecords
from kclient.errors import IllegalStateError, InvalidGroupIdError, UnsupportedVersionError
from kclient.utils.log_context import Logger
from kclient.utils.text import counted
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.consumer.internals.coordinator.commits import CommitManager
    from kclient.consumer.internals.coordinator.membership import Membership

T = TypeVar("T")


@attrs.define(kw_only=True, eq=False, repr=False)
class ConsumerCore:
    """Polling, committing and rebalancing as steps that never wait. Used by one thread at a time.

    Commits follow one rule: they say the positions. So what a call of poll() returned is committed when the next one
    begins, or when the consumer is closed; not if it is taken back, as what the application did not get is, or did not
    get done with. `_before_last_poll` holds the positions that the last hand-out moved, as they were before it.
    """

    config: ConsumerConfig
    subscription: SubscriptionState
    assigned: AssignedPartitions
    metadata: ConsumerMetadata
    changes: Changes
    cursor: RecordCursor
    """Gives out records one at a time, between calls; see `give_out`."""
    buffer: FetchBuffer
    queue: ApplicationQueue
    membership: Membership | None
    _commit_manager: CommitManager | None = attrs.field(alias="commits")
    questions: Questions
    network: NetworkThread
    _interceptors: Sequence[ConsumerInterceptor]
    metrics: ConsumerMetrics
    telemetry: ClientTelemetry
    time: Time
    collector: FetchCollector = attrs.field(init=False)
    wakeup: WakeupTrigger = attrs.field(init=False)
    listener: ConsumerRebalanceListener | None = attrs.field(default=None, init=False)
    commits: Committer = attrs.field(init=False)
    _log: Logger = attrs.field(init=False)
    _before_last_poll: dict[TopicPartition, FetchPosition] = attrs.field(factory=dict, init=False)
    _given_out: Portion[list[ConsumerRecord[Any, Any]]] | None = attrs.field(default=None, init=False)
    assigned_ms: int = attrs.field(default=0, init=False)
    """The time when the assignment changed last; to be read."""
    _generation: Generation = attrs.field(factory=Generation, init=False)
    undo_last: bool = attrs.field(default=False, init=False)
    """True if the application did not get what was handed out last, or did not get done with it."""
    _revoking: tuple[RebalanceCallback, CommitRequest | None] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        log_context = self.config.log_context()
        self.collector = FetchCollector(self.buffer, self.assigned, log_context)
        network = self.network
        self.wakeup = WakeupTrigger(self.changes.notify, lambda deliver: network.submit(lambda _: deliver()))
        self.commits = Committer(
            config=self.config,
            subscription=self.subscription,
            assigned=self.assigned,
            membership=self.membership,
            manager=self._commit_manager,
            queue=self.queue,
            network=self.network,
            topic_id=self.metadata.topic_id,
            interceptors=self._interceptors,
            time=self.time,
        )
        self._log = log_context.logger(__name__)

    # Subscribing.

    def subscribe(self, topics: Iterable[str], listener: ConsumerRebalanceListener | None) -> None:
        """Subscribe to topics; takes effect with the next poll."""
        self._need_group()
        self.subscription.subscribe(topics)
        self._subscribed(listener)

    def subscribe_pattern(
        self, pattern: re.Pattern[str] | SubscriptionPattern, listener: ConsumerRebalanceListener | None
    ) -> None:
        """Subscribe to what matches a pattern; takes effect with the next poll."""
        self._need_group()
        if isinstance(pattern, re.Pattern):
            self.subscription.subscribe_pattern(pattern)
        elif self.config.group_protocol == "consumer":
            self.subscription.subscribe_broker_pattern(pattern)
        else:
            raise UnsupportedVersionError(
                "subscribe() to a SubscriptionPattern needs group.protocol=consumer: the classic protocol has no "
                "patterns that the broker evaluates; subscribe to a compiled re.Pattern instead"
            )
        self._subscribed(listener)

    def _subscribed(self, listener: ConsumerRebalanceListener | None) -> None:
        self.listener = listener
        self.network.submit(self._subscription_changed)

    def _subscription_changed(self, _: int) -> None:
        """Take note of the new subscription or assignment; for the I/O thread."""
        self.metadata.subscription_changed()
        if self.membership is not None:
            self.membership.subscription_changed()

    def assign(
        self, partitions: Sequence[TopicPartition], topic_ids: Mapping[str, Uuid] = MappingProxyType({})
    ) -> None:
        """Read exactly `partitions`, of the topics with these ids where they are given, without a group's help."""
        if self.commits.automatic:
            self.commits.auto_commit_now()
        self.subscription.assign()
        if not self.assigned.is_exactly(partitions, topic_ids):
            before = self.assigned.by_partition
            self._take(partitions, topic_ids)
            self.commits.polled = False
            # What was fetched of a topic with another id is not of these partitions.
            now = self.assigned.by_partition
            self.buffer.retain(frozenset(tp for tp in partitions if now[tp] is before.get(tp)))
            self.network.submit(self._subscription_changed)

    def unsubscribe(self) -> None:
        """Forget subscription and assignment; the group was left before."""
        self.subscription.unsubscribe()  # first: without it the I/O thread does not join again
        self._take((), {})
        self.listener = None
        self._generation = Generation()
        self._revoking = None
        self._before_last_poll.clear()
        self.buffer.retain(())

    def _need_group(self) -> None:
        if self.config.group_id is None:
            raise InvalidGroupIdError("subscribe() needs a group; set group.id, or use assign()")

    # Polling.

    def begin_poll(self, now_ms: int) -> None:
        """Treat the records handed out before as processed from here on."""
        # The I/O thread may have an answer and wait for the interpreter, which a busy application gives up only after
        # 5 ms: by then the fetch before it is used up.
        yield_gil()
        self._before_last_poll.clear()
        self.commits.polled = True
        membership = self.membership
        if membership is not None:
            if membership.polled(now_ms):
                self.network.wakeup()
            if now_ms >= self.commits.next_auto_ms:
                self.commits.auto_commit(now_ms)

    @property
    def intercepts(self) -> bool:
        """True if there are interceptors."""
        return bool(self._interceptors)

    def collect(
        self, form: Form[T], max_records: int | None, partitions: int | None = None
    ) -> list[Portion[T]]:
        """Decode what can be handed out."""
        return self.collector.collect(form, max_records, partitions)

    def hand_out(
        self, portions: list[Portion[T]], max_records: int | None
    ) -> tuple[dict[TopicPartition, T], dict[TopicPartition, int]]:
        """Return what is in `portions`, by partition, and the positions, which move past it; `take_back` undoes that.

        Without what must not be handed out any more, because the I/O thread began to validate its position.
        """
        handed_out: dict[TopicPartition, T] = {}
        positions: dict[TopicPartition, int] = {}
        for portion in portions:
            count = portion.left if max_records is None else min(portion.left, max_records)
            records = portion.first(count)
            if self.collector.hand_out(portion, count, self._before_last_poll):
                tp = portion.fetch.tp
                handed_out[tp] = records
                positions[tp] = portion.position
                if max_records is not None:
                    max_records -= count
        return handed_out, positions

    def next_records(self) -> ConsumerRecords[Any, Any] | None:
        """Up to max.poll.records records, as interceptors return them; None if there are none now."""
        most = self.config.max_poll_records
        portions = self.collect(RECORDS, most)
        if not portions:
            return None
        handed_out, positions = self.hand_out(portions, most)
        if not handed_out:
            return None
        records: ConsumerRecords[Any, Any] = ConsumerRecords(handed_out, positions)
        if self._interceptors:
            records = self._intercept(records)
        self.metrics.consumed([(tp, len(given)) for tp, given in handed_out.items()])
        return records

    def next_columns(
        self, form: Form[Columns | None], max_records: int | None, partitions: int | None
    ) -> tuple[dict[TopicPartition, Columns | None], dict[TopicPartition, int]] | None:
        """The same as columns of at most so many partitions, where max.poll.records does not apply."""
        handed_out, positions = self.hand_out(self.collect(form, max_records, partitions), max_records)
        if not handed_out:
            return None
        self.metrics.consumed([(tp, form.count(given)) for tp, given in handed_out.items()])
        return handed_out, positions

    def next_record(
        self, portion: Portion[list[ConsumerRecord[Any, Any]]]
    ) -> ConsumerRecord[Any, Any] | None:
        """The next record of `portion`, as interceptors return it; None if it has none to hand out."""
        given: ConsumerRecord[Any, Any] | None = None
        while given is None and portion.left:
            record = portion.data[portion.taken]
            if not self.collector.hand_out(portion, 1, self._before_last_poll):
                return None
            given = record
            if self._interceptors:
                tp = portion.fetch.tp
                records = self._intercept(ConsumerRecords({tp: [record]}, {tp: portion.position}))
                given = next(iter(records), None)
        return given

    def give_out(self, portion: Portion[list[ConsumerRecord[Any, Any]]], seen: int) -> None:
        """Let `cursor` give out what is left of `portion`, until something has changed since `seen` or is due.

        The position stays where it is. `settle` moves it, and comes before whatever else the application does.
        """
        if self._interceptors:
            return
        self._given_out = portion
        self.cursor.start(portion.data, portion.taken, self.commits.next_auto_ms)
        if self.changes.count != seen:
            self.cursor.stop()

    def settle(self) -> None:
        """Move positions to where the application is. Where an exception ended it, the next call goes on."""
        portion = self._given_out
        if portion is not None:
            self.cursor.stop()
            count = self.cursor.index - portion.taken
            if count > 0:
                self.collector.settle(portion, count, self._before_last_poll)
                self.metrics.consumed(((portion.fetch.tp, count),))
            self._given_out = None
        if self.undo_last:
            self.take_back()
            self.undo_last = False

    def take_back(self) -> None:
        """Undo what was handed out since `begin_poll`: the application did not get it, or did not get done with it."""
        for tp, before in list(self._before_last_poll.items()):
            self.collector.take_back(tp, before)
            self._before_last_poll.pop(tp, None)
        # Always: what was interrupted may have made room in the buffer, and the I/O thread not have heard of it.
        self.network.wakeup()

    def _intercept(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        for interceptor in self._interceptors:
            try:
                records = interceptor.on_consume(records)
            except Exception:
                self._log.exception("The interceptor %r failed", interceptor)
        return records

    # Rebalancing.

    def next_callback(self) -> tuple[RebalanceCallback, RebalanceKind] | None:
        """The next change of the assignment that can be carried out now, and what it is by now.

        Partitions that are revoked are first committed, if that is automatic; until it is done nothing of them is
        handed out, and this returns None. If the group removes the member meanwhile they are lost instead.
        """
        if self._revoking is None:
            callback = self.queue.next_rebalance()
            if callback is None:
                return None
            if not self.subscription.has_auto_assigned_partitions():
                self.finish_callback(callback)  # it is about a subscription that is over
                return None
            if callback.kind is not RebalanceKind.REVOKED:
                return callback, callback.kind
            self.assigned.hold(callback.partitions)
            self._revoking = callback, self._commit_before_revocation()
        callback, commit = self._revoking
        if commit is not None:
            if not commit.done():
                return None
            error = commit.exception()
            if error is not None:
                self._log.warning("The offsets were not committed before a rebalance: %s", error)
        self._revoking = None
        if self.membership is not None and self.membership.generation_for_commit() is None:
            return callback, RebalanceKind.LOST
        return callback, callback.kind

    def _commit_before_revocation(self) -> CommitRequest | None:
        if not self.commits.automatic:
            return None
        timeout_ms = min(self.config.default_api_timeout_ms, self.config.max_poll_interval_ms)
        request = self.commits.commit(None, self.time.monotonic_ms() + timeout_ms, automatic=True)
        request.add_done_callback(lambda _: self.changes.notify())
        return request

    def take_assignment(self, callback: RebalanceCallback) -> frozenset[TopicPartition]:
        """Before the listener hears of an assignment: take it. Returns the partitions that are new."""
        held = self.assigned.partitions()
        self._assign_from_group(callback.partitions)
        self._generation = callback.generation
        return callback.partitions - held

    def drop_assignment(self, callback: RebalanceCallback) -> None:
        """After the listener has heard that partitions go: let go of them."""
        self._assign_from_group(self.assigned.partitions() - callback.partitions)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the member's place in the group as of the assignment that the application has.

        Not as of now: a member that was removed meanwhile has no place any more, and offsets without one are taken.
        """
        assert self.membership is not None
        subscribed = self.subscription.has_auto_assigned_partitions()
        return self.membership.metadata_of(self._generation if subscribed else Generation())

    def _take(
        self, taken: Iterable[TopicPartition], ids: Mapping[str, Uuid], *, awaiting_callback: bool = False
    ) -> None:
        self.assigned.replace(
            taken, self.metadata.topic_id, expected=ids, awaiting_callback=awaiting_callback
        )
        self.assigned_ms = self.time.monotonic_ms()

    def _assign_from_group(self, partitions: frozenset[TopicPartition]) -> None:
        if not self.subscription.has_auto_assigned_partitions():
            raise IllegalStateError("the group assigned partitions to a consumer that is not subscribed")
        self._take(partitions, {}, awaiting_callback=True)
        self.buffer.retain(partitions)

    def finish_callback(self, callback: RebalanceCallback) -> None:
        """The listener is through with `callback`, whether it failed or not."""
        if callback.kind is RebalanceKind.ASSIGNED:
            self.assigned.finish_callback()
        self.queue.finish_rebalance(callback)
        membership = self.membership
        if membership is not None:
            self.network.submit(lambda _: membership.callback_done(callback))

    def rejoin(self, reason: str) -> None:
        """Have the group rebalance, with the next poll. Raises IllegalStateError without a subscription."""
        membership = self.membership
        if membership is None or not self.subscription.has_auto_assigned_partitions():
            raise IllegalStateError("enforce_rebalance() needs a subscription")
        self.network.submit(lambda _: membership.request_rejoin(reason))

    def leave_group(
        self, reason: str, deadline_ms: int, operation: GroupMembershipOperation
    ) -> Request[None]:
        """Leave the group, if in one; nothing is under way any more when that is done."""
        request, membership = Request[None](deadline_ms), self.membership
        if membership is None:
            request.complete(None)
        else:

            def leave(now_ms: int) -> None:
                membership.leave(reason, request, now_ms, operation)
                # The listener has heard of everything that was held. What had begun is not to go on later.
                for begun in self.queue.drop_rebalances():
                    membership.callback_done(begun)

            self.network.submit(leave, request)
        return request

    # Positions.

    def seek(self, tp: TopicPartition, to: OffsetAndMetadata) -> None:
        """Read `tp` from an offset on; with a leader epoch, after it was checked that the log still has it."""
        if to.leader_epoch is not None:
            self.metadata.update_last_seen_epoch_if_newer(tp, to.leader_epoch)
        position = FetchPosition(to.offset, to.leader_epoch, self.metadata.leader_and_epoch(tp))
        self.assigned.state(tp).seek(position, validate=to.leader_epoch is not None)
        self._moved(tp)

    def request_reset(self, partitions: Iterable[TopicPartition], reset: AutoOffsetReset) -> None:
        """Read from one end of the log on."""
        for tp in partitions:
            self.assigned.state(tp).await_reset(reset)
            self._moved(tp)

    def set_paused(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        """Read nothing from these, or read them again. Raises IllegalStateError if one is not assigned."""
        for state in [self.assigned.state(tp) for tp in partitions]:
            state.set_paused(paused)
        if not paused:
            self.network.wakeup()

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions of which nothing is read for now."""
        return frozenset(tp for tp, state in self.assigned.by_partition.items() if state.paused)

    def lag(self, tp: TopicPartition) -> int | None:
        """Records between the position and the end of what can be read; None while either is unknown.

        An unknown end is looked up in the background.
        """
        state = self.assigned.state(tp)
        read_committed = self.config.isolation_level == "read_committed"
        lag = state.lag(read_committed)
        if lag is None and state.end(read_committed) is None and not state.end_requested:
            state.end_requested = True
            request = self.questions.offsets(
                {tp: LATEST}, self.time.monotonic_ms() + self.config.default_api_timeout_ms
            )
            request.add_done_callback(lambda _: setattr(state, "end_requested", False))
        return lag

    def _moved(self, tp: TopicPartition) -> None:
        self.commits.polled = True
        self._before_last_poll.pop(tp, None)
        self.buffer.discard(tp)
        self.network.wakeup()

    # The end.

    def describe(self, state: str) -> str:
        """Name the consumer, in the given state, with what it reads from where. For any thread."""
        config = self.config
        group = "" if config.group_id is None else f" in group {config.group_id}"
        topics = ", ".join(sorted(self.subscription.subscription()))
        reads = f" subscribed to {topics}" if topics else ""
        held = counted(len(self.assigned.by_partition), "partition")
        return f"{self.config.client_id}{state} to {', '.join(config.bootstrap_servers)}{group}{reads} with {held}"

    def close_parts(self) -> None:
        """Close the metadata and what the application gave, when the I/O thread has ended."""
        self.metadata.close()
        parts = [*self._interceptors, self.config.key_deserializer, self.config.value_deserializer]
        for part in parts:
            close = getattr(part, "close", None)
            if callable(close) and not isinstance(part, type):
                try:
                    close()
                except Exception:
                    self._log.exception("%r could not be closed", part)
