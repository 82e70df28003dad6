"""Placement: from a record as the application gives it to the queue of its partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from kclient.errors import ApiError, KafkaError, KafkaTimeoutError
from kclient.producer.internals.arguments import (
    check_partition,
    check_timestamp,
    check_topic,
    checked_headers,
)
from kclient.producer.internals.partition_queue import TopicQueues
from kclient.producer.partitioner import partition_for_key
from kclient.producer.types import Headers, OnDelivery, ProducerRecord
from kclient.utils.futures import KafkaFuture
from kclient.utils.steps import Steps
from kclient.utils.text import counted
from kclient.utils.time import NS_PER_MS, Timer

if TYPE_CHECKING:
    from kclient.producer.internals.assembly import ProducerCore

T = TypeVar("T")


class Placement:
    """Serializes records, waits for their topics to be known and chooses their partitions. Thread-safe."""

    __slots__ = ("_core", "ignore_keys")

    def __init__(self, core: ProducerCore) -> None:
        self._core = core
        self.ignore_keys = core.config.partitioner_ignore_keys

    def check_usable(self) -> None:
        """Raise ForkedClientError, or the error after which the producer cannot go on."""
        self._core.guard.check()
        idempotence = self._core.idempotence
        if idempotence is not None and idempotence.fatal_error is not None:
            error = idempotence.fatal_error
            raise error.reworded(f"The producer cannot go on and has to be closed: {error}") from error

    def check_sendable(self) -> None:
        """Raise what keeps records from being sent now: IllegalStateError without a transaction, or how it failed."""
        transactions = self._core.transactions
        if transactions is not None:
            transactions.check_send()

    def send(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Steps[KafkaFuture[Any]]:
        """Add one record after the interceptors have seen it; raises what `KafkaProducer.send` raises."""
        if on_delivery is not None and not callable(on_delivery):
            raise TypeError(f"on_delivery must be callable, not {type(on_delivery).__name__}")
        interceptors = self._core.interceptors
        if not interceptors:
            return (yield from self.accept(topic, value, key, partition, headers, timestamp_ms, on_delivery))
        record = interceptors.on_send(
            ProducerRecord(
                topic, value, key=key, partition=partition, headers=headers, timestamp_ms=timestamp_ms
            )
        )
        try:
            return (
                yield from self.accept(
                    record.topic,
                    record.value,
                    record.key,
                    record.partition,
                    record.headers,
                    record.timestamp_ms,
                    cast("OnDelivery", interceptors.around(cast(Any, on_delivery))),
                )
            )
        except Exception as error:
            interceptors.on_send_error(str(record.topic), record.partition, error)
            raise

    def accept(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: Headers,
        timestamp_ms: int | None,
        on_delivery: OnDelivery | None,
        *,
        serialized: bool = False,
    ) -> Steps[KafkaFuture[Any]]:
        """Do as `send` without interceptors; `serialized` are key and value for which an open batch had no room."""
        self.check_sendable()
        try:
            if partition is not None:
                check_partition(partition)
            if timestamp_ms is not None:
                check_timestamp(timestamp_ms)
            pairs = checked_headers(headers) if headers else ()
            queues, timer = yield from self.topic(topic, partition)
            core, key_bytes, value_bytes = self._core, key, value
            if not serialized:
                key_bytes = core.key_serializer(topic, key, pairs)
                value_bytes = core.value_serializer(topic, value, pairs)
            if partition is None:
                partition = self._choose_partition(queues, key, key_bytes, value, value_bytes)
            return (
                yield from core.accumulator.append(
                    queues, partition, timestamp_ms, key_bytes, value_bytes, pairs, on_delivery, timer
                )
            )
        except ApiError as error:
            self.refused(error)
            raise

    def guarded(self, steps: Steps[T]) -> Steps[T]:
        """Take `steps`, which send records; where they raise that these cannot be sent, so it is `refused`."""
        try:
            return (yield from steps)
        except ApiError as error:
            self.refused(error)
            raise

    def refused(self, error: KafkaError) -> None:
        """Let the transaction only be aborted, as a record that belongs to it cannot be sent because of `error`."""
        transactions = self._core.transactions
        if transactions is not None and isinstance(error, ApiError):
            transactions.on_refused(error)

    def topic(self, topic: str, partition: int | None) -> Steps[tuple[TopicQueues, Timer | None]]:
        """The queues of `topic`, and the timer of max.block.ms if it was started to wait for them."""
        core = self._core
        queues = core.accumulator.topics.get(topic) if type(topic) is str else None
        if queues is not None and (partition or 0) < queues.partition_count:
            return queues, None
        check_topic(topic)
        timer = core.time.timer(core.accumulator.max_block_ms())
        return (yield from self._await_topic(topic, partition, timer)), timer

    def _choose_partition(
        self, queues: TopicQueues, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None
    ) -> int | None:
        partitioner = self._core.partitioner
        if partitioner is None:
            if key_bytes is None or self.ignore_keys:
                return None
            return partition_for_key(key_bytes, queues.partition_count)
        cluster = self._core.metadata.fetch()
        chosen = partitioner.partition(queues.topic, key, key_bytes, value, value_bytes, cluster)
        if chosen is not None:
            check_partition(chosen)
            if chosen >= queues.partition_count:
                raise ValueError(
                    f"The partitioner chose partition {chosen} of {queues.topic}, which has {queues.partition_count}"
                )
        return chosen

    def _await_topic(self, topic: str, partition: int | None, timer: Timer) -> Steps[TopicQueues]:
        """Wait until `topic` is known, and `partition` if one is given."""
        core = self._core
        metadata = core.metadata
        while True:
            metadata.add_topic(topic, timer.now_ms())
            cluster = metadata.fetch()
            count = cluster.partition_count(topic)
            if count and (partition is None or partition < count):
                break
            # The partition may be on its way: it was added a moment ago, or the topic was made anew.
            missing = (
                f"Partition {partition} of topic {topic}, which has {counted(count, 'partition')},"
                if count
                else f"Topic {topic}"
            )
            yield from self._await_update(topic, missing, timer)
        queues = core.accumulator.topic(topic)
        core.accumulator.update_partition_counts()
        return queues

    def _await_update(self, topic: str, missing: str, timer: Timer) -> Steps[None]:
        core = self._core
        version = core.metadata.request_update_for_topic(topic)
        core.client.wakeup()
        started_ms = timer.now_ms()
        try:
            yield from core.metadata.await_update(version, timer)
            core.metadata.raise_error_for_topic(topic)
        except KafkaTimeoutError as error:
            servers = ", ".join(core.config.bootstrap_servers)
            cause = core.metadata.last_error
            raise KafkaTimeoutError(
                f"{missing} was not found within {timer.timeout_ms} ms (max.block.ms); asked were the brokers "
                f"behind bootstrap.servers={servers}"
                + (f"; the last error was: {cause}" if cause is not None else "; does it exist?")
            ).because_of(cause or error) from (cause or error)
        finally:
            core.metrics.metadata_wait.record((timer.now_ms() - started_ms) * NS_PER_MS)
