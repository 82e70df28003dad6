"""KafkaShareConsumer: reads records that a share group delivers, each to one of its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Generic, Unpack, overload

from kclient.common.topic_id_partition import TopicIdPartition
from kclient.config.declare import ConfigSource
from kclient.consumer.acknowledge import AcknowledgementCommitCallback, AcknowledgeType
from kclient.consumer.internals import arguments
from kclient.consumer.internals.consumer_life import ConsumerLife
from kclient.consumer.internals.share.arguments import (
    check_commit_callback,
    checked_place,
    checked_record,
    checked_type,
)
from kclient.consumer.internals.share.assembly import build_share_consumer
from kclient.consumer.internals.share.calls import ShareCalls
from kclient.consumer.internals.share.core import ShareCore
from kclient.consumer.internals.single_user import SingleUser
from kclient.consumer.share_config import ShareConsumerConfig
from kclient.consumer.types import ConsumerRecord, ConsumerRecords
from kclient.errors import KafkaError
from kclient.serialization.typed import DeserializerLike, K, V
from kclient.utils.time import Timer

if TYPE_CHECKING:
    from kclient.consumer.share_settings import ShareConsumerSettings


class KafkaShareConsumer(ConsumerLife, Generic[K, V]):
    """Reads records as a member of a share group (KIP-932): as from a queue, with acknowledgements of single records.

    `config` is a mapping with Java's dotted names or the path of a `.properties` file; settings may also be keywords
    with underscores (`group_id="billing"`). Without a deserializer, keys and values are bytes. Raises ConfigError, also
    for what the group decides instead of its members, such as auto.offset.reset (`share.auto.offset.reset` of the
    group) and isolation.level.

    Any number of members read the same partitions. A broker locks each record for the member that it goes to. Records
    that were not accepted, or rejected, when their lock ends are delivered again, to whomever asks, until
    group.share.delivery.count.limit; `ConsumerRecord.delivery_count` tells. Order is not kept.

    With share.acknowledgement.mode=implicit, `poll`, `commit_sync` and `commit_async` accept all that `poll` returned
    before; `close` accepts nothing, and what is left is delivered again. With explicit, each record has to be
    acknowledged before the next `poll`.

    One thread uses the consumer; a second one gets ConcurrentModificationError, except from `wakeup`.
    """

    _NAME: ClassVar[str] = "KafkaShareConsumer"
    _core: ShareCore

    def __init__(
        self,
        config: ConfigSource = None,
        *,
        key_deserializer: DeserializerLike[K] | None = None,
        value_deserializer: DeserializerLike[V] | None = None,
        **settings: Unpack[ShareConsumerSettings],
    ) -> None:
        parsed = ShareConsumerConfig.parse(
            config, settings, key_deserializer=key_deserializer, value_deserializer=value_deserializer
        )
        self._begin(build_share_consumer(parsed))

    def _begin(self, core: ShareCore) -> None:
        self._core = core
        self._use = SingleUser("This KafkaShareConsumer", core.settle)
        self._calls = ShareCalls(core)

    def _enter(self) -> SingleUser:
        """The guard for a call that the acknowledgement commit callback must not make."""
        self._calls.check_not_in_callback()
        return self._use

    # Subscribing.

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read `topics` along with the other members of the share group.

        Replaces the subscription before; no topics at all is `unsubscribe`. Takes effect in the next `poll`.
        """
        with self._enter():
            names = arguments.checked_topics(topics)
            if names:
                self._core.subscribe(names)
            else:
                self._run(self._calls.unsubscribe(self._calls.timer(None)))

    def unsubscribe(self) -> None:
        """Leave the group. Records that `poll` has returned can still be acknowledged, and committed."""
        with self._enter():
            self._run(self._calls.unsubscribe(self._calls.timer(None)))

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to."""
        with self._enter():
            return self._core.subscription.subscription()

    # Reading.

    def poll(self, timeout_ms: int) -> ConsumerRecords[K, V]:
        """Up to max.poll.records records, as soon as there are any; none after `timeout_ms`.

        In implicit mode accepts what the poll before returned. In explicit mode raises IllegalStateError if something
        of that was not acknowledged. Records that were renewed come again, before others do.

        Raises RecordDeserializationError or CorruptRecordError, which name partition and offset, once for each record
        or batch that cannot be read. The record is released then, the batch rejected, unless `acknowledge` with the
        offset says something else before the next poll. Raises authorization errors, UnsupportedVersionError where the
        cluster has no share groups, WakeupError, what the acknowledgement commit callback raises, and IllegalStateError
        without a subscription.
        """
        begun = False
        try:
            with self._enter():
                timer = Timer(self._core.time, arguments.checked_timeout(timeout_ms, 0))
                begun = True
                return self._run(self._calls.records(timer))
        except BaseException:
            if begun:
                self._undo_last()
            raise

    def _undo_last(self) -> None:
        """Take back what was handed out last, which the caller does not get; what a Ctrl-C ends, the next call does."""
        self._core.undo_last = True
        self._use.unsettled = True
        self._use.settle()

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Iterate over the records, polling in between.

        In implicit mode a record counts as accepted when all records of its poll were given out and more are asked
        for, or by a commit. Leaving the loop gives back those that it did not get, when the consumer is closed.
        """
        return self

    def __next__(self) -> ConsumerRecord[K, V]:
        """The next record, waiting for it as long as it takes.

        Iteration ends when the consumer is closed; `wakeup` makes it raise WakeupError. Raises what `poll` does.
        """
        if self._use.closed:
            raise StopIteration
        begun = False
        try:
            with self._enter():
                begun = True
                record: ConsumerRecord[K, V] = self._run(self._calls.next_record())
                return record
        except BaseException:
            if begun:
                self._undo_last()
            raise

    # Acknowledging.

    @overload
    def acknowledge(self, record: ConsumerRecord[K, V], type_: AcknowledgeType = ..., /) -> None: ...

    @overload
    def acknowledge(self, topic: str, partition: int, offset: int, type_: AcknowledgeType, /) -> None: ...

    def acknowledge(
        self,
        what: ConsumerRecord[K, V] | str,
        type_or_partition: AcknowledgeType | int = AcknowledgeType.ACCEPT,
        offset: int | None = None,
        type_: AcknowledgeType | None = None,
        /,
    ) -> None:
        """Say what became of a record that the last `poll` returned, or of one that it could not read.

        Takes the record and the type (ACCEPT if it is left out), or topic, partition, offset and type. What is said
        later of the same record counts. It goes to the broker with the next `poll`, commit or `close`.

        Raises IllegalStateError in implicit mode, and for records that were not returned, or are on their way already.
        """
        # The usual call, for each record of a poll: a single step that nobody comes between, so nothing is entered.
        if self._use.free and self._core.acknowledge_next(what, type_or_partition):
            return
        with self._enter():
            if isinstance(what, str):
                place = checked_place(what, type_or_partition, offset)
                self._core.acknowledge(*place, checked_type(type_))
            else:
                record = checked_record(what)
                self._core.acknowledge(
                    record.topic, record.partition, record.offset, checked_type(type_or_partition)
                )

    def commit_sync(self, *, timeout_ms: int | None = None) -> dict[TopicIdPartition, KafkaError | None]:
        """Tell the brokers what was acknowledged, or in implicit mode accept all that was returned, and wait.

        Returns each partition with the error that its broker answered, None if it took it: InvalidRecordStateError if
        a lock had ended before, NotLeaderOrFollowerError if the leader has moved, KafkaTimeoutError after `timeout_ms`
        (default.api.timeout.ms), and others. Raises WakeupError, and what the acknowledgement commit callback raises.
        """
        with self._enter():
            return self._run(self._calls.commit(self._calls.timer(timeout_ms)))

    def commit_async(self) -> None:
        """Do the same in the background. Only the acknowledgement commit callback hears of the outcome."""
        with self._enter():
            self._run(self._calls.commit_in_background())

    def set_acknowledgement_commit_callback(self, callback: AcknowledgementCommitCallback | None) -> None:
        """Have `callback(offsets, error)` called with the outcome of each partition's acknowledgements; None ends that.

        `offsets` has one TopicIdPartition with its offsets, `error` is None if the broker took them. It is called
        inside `poll`, a commit or `close`, on this thread, and must not use the consumer, except for `wakeup`.
        """
        with self._enter():
            check_commit_callback(callback)
            self._core.set_callback(callback)

    def acquisition_lock_timeout_ms(self) -> int | None:
        """Return the time for which brokers lock records for this consumer, None before they have said so."""
        with self._enter():
            return self._core.lock_timeout_ms

    # Ending.

    def close(self, timeout_ms: int | None = None) -> None:
        """Tell what was acknowledged, give back the rest, leave the group and end; at most `timeout_ms` (30,000).

        In implicit mode it accepts nothing: what the last `poll` returned is delivered again, unless `commit_sync` came
        in between. May be called again. An error of the acknowledgement commit callback is raised when all is closed. A
        pending `wakeup` does not keep it from closing.
        """
        if self._use.closed or self._use.guard.forked:
            return
        with self._enter():
            failure = self._end(timeout_ms, self._calls.close)
            last = self._run(self._calls.tell_last())
            failure = failure or last
            if failure is not None:
                raise failure

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            self.close()
        else:
            self._close_after_error()
