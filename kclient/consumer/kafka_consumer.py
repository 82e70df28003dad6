"""KafkaConsumer: reads records from Kafka.

Positions and the ends of logs are in `internals/position_methods.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, Unpack

from kclient._accel import RecordIterator
from kclient.common.offset_arguments import OffsetLike, checked_offsets
from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.topic_partition import TopicPartition
from kclient.config.declare import ConfigSource
from kclient.consumer.columns import RecordColumns
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.group_membership_operation import GroupMembershipOperation
from kclient.consumer.health import ConsumerHealth, health_of
from kclient.consumer.internals import arguments
from kclient.consumer.internals.arrow import ArrowBatches
from kclient.consumer.internals.assembly import build_consumer
from kclient.consumer.internals.committer import OnCommit
from kclient.consumer.internals.consumer_calls import ConsumerCalls
from kclient.consumer.internals.consumer_core import ConsumerCore
from kclient.consumer.internals.position_methods import PositionMethods
from kclient.consumer.internals.single_user import SingleUser
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.consumer.subscription_pattern import SubscriptionPattern, TopicsLike
from kclient.consumer.types import ConsumerRecord, ConsumerRecords
from kclient.errors import IllegalStateError
from kclient.serialization.typed import DeserializerLike, K, V
from kclient.utils.steps import Steps, run
from kclient.utils.time import Timer

if TYPE_CHECKING:
    from kclient.consumer.settings import ConsumerSettings

T = TypeVar("T")


class KafkaConsumer(PositionMethods, Generic[K, V]):
    """Reads records, alone (`assign`) or sharing topics with the other members of a group (`subscribe`).

    `config` is a mapping with Java's dotted names or the path of a `.properties` file; settings may also be keywords
    with underscores (`group_id="billing"`). Without a deserializer, keys and values are bytes. Raises ConfigError.

    One thread uses the consumer; a second one gets ConcurrentModificationError, except from `wakeup`. Records and
    rebalances are handled inside `poll`; heartbeats are sent by a thread of the consumer's own, so that processing
    may take up to max.poll.interval.ms between two calls.

    Positions move when `poll` returns, and never for records that it did not return. With enable.auto.commit a record
    counts as processed once more is asked for: `poll` (every auto.commit.interval.ms) and a rebalance commit what
    *earlier* polls returned. `close`, the end of a `with` block, `unsubscribe` and `assign` commit everything that was
    returned. Leaving the `with` block by an exception, Ctrl-C included, does not commit what the last poll returned,
    so that it is read again. A `finally: consumer.close()` cannot tell an error from success and commits what was
    returned, processed or not: use the `with` block, or commit_sync() without enable.auto.commit.
    """

    _NAME: ClassVar[str] = "KafkaConsumer"

    def __init__(
        self,
        config: ConfigSource = None,
        *,
        key_deserializer: DeserializerLike[K] | None = None,
        value_deserializer: DeserializerLike[V] | None = None,
        **settings: Unpack[ConsumerSettings],
    ) -> None:
        parsed = ConsumerConfig.parse(
            config, settings, key_deserializer=key_deserializer, value_deserializer=value_deserializer
        )
        self._begin(build_consumer(parsed))

    def _begin(self, core: ConsumerCore) -> None:
        self._core = core
        self._use = SingleUser("This KafkaConsumer", core.settle)
        self._calls = ConsumerCalls(core)

    # Subscribing and assigning.

    def subscribe(self, topics: TopicsLike, listener: ConsumerRebalanceListener | None = None) -> None:
        """Share `topics`, or all topics whose whole name matches a pattern, with the group.

        The broker matches a `SubscriptionPattern`. Replaces the subscription before; no topics at all is `unsubscribe`.
        Takes effect in the next `poll`. Raises InvalidGroupIdError without group.id, IllegalStateError after `assign`,
        UnsupportedVersionError for a SubscriptionPattern with group.protocol=classic.
        """
        with self._use:
            arguments.check_listener(listener)
            if isinstance(topics, (re.Pattern, SubscriptionPattern)):
                self._core.subscribe_pattern(topics, listener)
            elif names := arguments.checked_topics(topics):
                self._core.subscribe(names, listener)
            else:
                self._run(self._calls.unsubscribe(self._calls.timer(None)))

    def unsubscribe(self) -> None:
        """Leave the group and forget subscription or assignment. The listener hears of the revocation first.

        With enable.auto.commit, everything that was returned is committed before. What `commit_async` was asked for
        is waited for and told, for default.api.timeout.ms at most.
        """
        with self._use:
            self._run(self._calls.unsubscribe(self._calls.timer(None)))

    def assign(self, partitions: Iterable[TopicPartition | TopicIdPartition]) -> None:
        """Read exactly `partitions`, without a group. Replaces the assignment before; none at all is `unsubscribe`.

        A `TopicIdPartition` is of the topic with that id alone: if another one has its name by now, the topic was
        created again, and auto.offset.reset decides. With enable.auto.commit, everything that was returned is committed
        in the background before. Raises IllegalStateError after `subscribe`, ValueError for two ids of one name.
        """
        with self._use:
            chosen, topic_ids = arguments.checked_assignment(partitions)
            if chosen:
                self._core.assign(chosen, topic_ids)
            else:
                self._run(self._calls.unsubscribe(self._calls.timer(None)))

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now."""
        with self._use:
            return self._core.assigned.partitions()

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; for a pattern those that match it, for a SubscriptionPattern those assigned."""
        with self._use:
            return self._core.subscription.subscription()

    # Reading.

    def poll(self, timeout_ms: int) -> ConsumerRecords[K, V]:
        """Up to max.poll.records records, as soon as there are any; none after `timeout_ms`.

        With enable.auto.commit, what the poll before returned counts as processed from here on. What this one returns
        does with the next poll, and at `close`: also at one in a `finally`, whatever the error that led there.

        Here rebalances happen and their listener is called. Raises, each time it is the turn of what is wrong,
        RecordDeserializationError (unless kclient.on.deserialization.error says otherwise) or CorruptRecordError (with
        positions unmoved, so that `seek` can go past them), NoOffsetForPartitionError, OffsetOutOfRangeError and
        LogTruncationError with auto.offset.reset=none, authorization errors, FencedInstanceIdError, WakeupError, and
        what the listener raises. IllegalStateError without a subscription or assignment.
        """
        return self._poll(timeout_ms, self._calls.records)

    def poll_columns(
        self, timeout_ms: int, max_records: int | None = None
    ) -> dict[TopicPartition, RecordColumns]:
        """As `poll`, with the records of each partition as columns of raw bytes; empty after `timeout_ms`.

        For many times the speed: there is no object for each record. Deserializers are not applied, so that what they
        fail for can be read here. max.poll.records does not apply: without `max_records` it is all that one fetch of
        each partition holds, unless that is more than 2 GiB or decompressed more than kclient.decompress.max.bytes.
        Calls of `poll` may come between. Raises what `poll` raises, and IllegalStateError with interceptors, which
        would see none of it.
        """
        most = arguments.checked_max_records(max_records)
        return self._poll(timeout_ms, lambda timer: self._calls.columns(timer, most))

    def poll_arrow(
        self, timeout_ms: int, *, binary: Literal["copy", "view"] = "copy", max_records: int | None = None
    ) -> Any:
        """As `poll_columns`, as a `pyarrow.RecordBatch` of one partition's records; without rows after `timeout_ms`.

        The columns are topic (dictionary of string by int32), partition (int32), offset (int64), timestamp
        (timestamp[ms, UTC], a millisecond before 1970 if there is none), timestamp_type (int8), key and value, and
        headers (list of struct of key, a string, and value, binary). Partitions take turns. With `binary="copy"` key
        and value are `binary`; with "view" they are `binary_view` and refer to the memory of the fetch they came with,
        which is kept for as long as the batch. Raises ImportError without pyarrow (`kclient-kafka[arrow]`), which for
        views has to be 19 or newer.
        """
        most = arguments.checked_max_records(max_records)
        batches = ArrowBatches(binary)
        return self._poll(timeout_ms, lambda timer: self._calls.arrow(timer, most, batches))

    def _poll(self, timeout_ms: int, steps: Callable[[Timer], Steps[T]]) -> T:
        begun = False
        try:
            with self._use:
                timer = Timer(self._core.time, arguments.checked_timeout(timeout_ms, 0))
                self._calls.begin_poll(timer.started_ms)
                begun = True
                return run(steps(timer), timer.time)
        except BaseException:
            # The positions may have moved, and the caller gets nothing.
            if begun:
                self._undo_last()
            raise

    def _undo_last(self) -> None:
        """Take back what was handed out last; what a second Ctrl-C ends, the next call does."""
        self._core.undo_last = True
        self._use.unsettled = True
        self._use.settle()

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Iterate over the records, each of which counts as a poll of its own.

        With enable.auto.commit, a loop that ends by `break` or `return` has its last record committed when the consumer
        is closed. One that ends by an exception has not, if that leaves the consumer's `with` block too; but a
        `finally: close()` commits that record.
        """
        return RecordIterator(self._core.cursor, self.__next__)

    def __next__(self) -> ConsumerRecord[K, V]:
        """The next record, waiting for it as long as it takes. A `for` loop is several times as fast.

        The position moves past the record that was given out and no further, so leaving the loop skips nothing, and
        `commit_sync()` in its body commits that record and those before it. Iteration ends when the consumer is closed;
        `wakeup` makes it raise WakeupError.
        """
        if self._use.closed:
            raise StopIteration
        begun = False
        try:
            with self._use:
                now_ms = self._core.time.monotonic_ms()
                self._calls.begin_poll(now_ms)
                begun = True
                record: ConsumerRecord[K, V] = self._run(self._calls.next_record())
                # The next call begins with what the cursor has given out until then.
                self._use.unsettled = True
                return record
        except BaseException:
            if begun:
                self._undo_last()
            raise

    # Committing.

    def commit_sync(
        self, offsets: Mapping[TopicPartition, OffsetLike] | None = None, *, timeout_ms: int | None = None
    ) -> None:
        """Commit `offsets` (the next ones to read), or the positions of all partitions.

        Retries what can be retried for `timeout_ms`, or default.api.timeout.ms. Raises CommitFailedError if the group
        has given the partitions to others, RebalanceInProgressError (poll, then commit again), KafkaTimeoutError,
        authorization errors, WakeupError, InvalidGroupIdError without group.id.
        """
        with self._use:
            self._calls.need_group("commit_sync()")
            chosen = None if offsets is None else checked_offsets(offsets)
            self._run(self._calls.commit(chosen, self._calls.timer(timeout_ms)))

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetLike] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit as `commit_sync` does, but in the background and without retries.

        `on_commit(offsets, error)` is called inside a later call of `poll`, a commit, `unsubscribe` or `close`, on this
        thread and in the order of the calls. Offsets and the member's generation are those of this moment. While one
        commit is on its way, those after it wait and go together, the newest offset of each partition.
        """
        with self._use:
            self._calls.need_group("commit_async()")
            arguments.check_callback(on_commit)
            chosen = None if offsets is None else checked_offsets(offsets)
            self._calls.commit_in_background(chosen, on_commit)

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The offsets that the group has committed for `partitions`; None where none is. Raises KafkaTimeoutError."""
        with self._use:
            self._calls.need_group("committed()")
            chosen = arguments.checked_partitions(partitions)
            return self._run(self._calls.committed(chosen, self._calls.timer(timeout_ms)))

    # The cluster and the group.

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return the consumer's place in its group, as of the partitions that it has, for transactions (KIP-447)."""
        with self._use:
            self._calls.need_group("group_metadata()")
            return self._core.group_metadata()

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Have the group rebalance with the next `poll`; `reason` is told to the coordinator (KIP-568, KIP-800).

        With group.protocol=consumer this only logs a warning: there the coordinator decides.
        """
        with self._use:
            self._core.rejoin(arguments.checked_reason(reason))

    def health(self) -> ConsumerHealth:
        """Return how the consumer stands: what is wrong, connections, membership, lag. Waits for nothing.

        For any thread, also while another one polls.
        """
        self._use.guard.check()
        return health_of(self._core, closed=self._use.closed)

    # Ending.

    def close(
        self,
        timeout_ms: int | None = None,
        *,
        group_membership_operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT,
    ) -> None:
        """Commit (if automatic), tell the listener, leave the group and end; takes at most `timeout_ms` (30,000).

        With enable.auto.commit it commits everything that was returned, as Java does. In a `finally` that includes
        records whose processing has just failed; a `with` block knows the difference. What `commit_async` was asked
        for is waited for before the group is left; what is not through in time fails, and `on_commit` hears of it.

        A static member does not leave, unless `group_membership_operation` says so, which can also have a dynamic one
        stay (KIP-1092). May be called again. An error of the listener or of an `on_commit` is raised
        when all is closed. A pending `wakeup` does not keep it from closing.
        """
        if self._use.closed or self._use.guard.forked:
            return
        with self._use:
            if self._calls.in_callback:
                raise IllegalStateError("close() cannot be called from a rebalance listener")
            operation = arguments.checked_operation(group_membership_operation)
            failure = self._end(timeout_ms, lambda timer: self._calls.close(timer, operation))
            last = self._core.queue.run_all_calls()
            failure = failure or last
            if failure is not None:
                raise failure

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close; after an exception without committing what the last poll returned, as `finally: close()` would."""
        if exc is None:
            self.close()
            return
        if self._core.commits.automatic:
            # Whoever closes next takes back what was handed out last.
            self._core.undo_last = True
            self._use.unsettled = True
        self._close_after_error()
