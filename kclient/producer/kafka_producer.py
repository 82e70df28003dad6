"""KafkaProducer: sends records to Kafka."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, overload

from kclient._accel import belongs_to_caller
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.client.telemetry.pushed_metrics import PushedMetrics
from kclient.common.cluster import Cluster
from kclient.common.offset_arguments import checked_offsets
from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.config.declare import ConfigSource
from kclient.errors import (
    ClientClosedError,
    IllegalStateError,
    KafkaTimeoutError,
    TransactionAbortableError,
)
from kclient.metrics import MetricValues
from kclient.producer.bulk import BulkFuture
from kclient.producer.config import ProducerConfig
from kclient.producer.health import ProducerHealth, health_of
from kclient.producer.internals.arguments import check_timeout
from kclient.producer.internals.assembly import build_producer
from kclient.producer.internals.partition_queue import TryAppend
from kclient.producer.internals.placement import Placement
from kclient.producer.internals.send_arrow import send_arrow
from kclient.producer.internals.send_many import send_many
from kclient.producer.types import Headers, OnDelivery, ProducerRecord, RecordMetadata
from kclient.serialization.typed import K, SerializerLike, V
from kclient.utils.futures import KafkaFuture
from kclient.utils.steps import Steps, run
from kclient.utils.time import NS_PER_MS

if TYPE_CHECKING:
    from kclient.producer.internals.assembly import ProducerCore
    from kclient.producer.internals.transactions.manager import TransactionManager
    from kclient.producer.settings import ProducerSettings

log = logging.getLogger(__name__)

_INTERRUPTED_CLOSE_MS = 3000

T = TypeVar("T")


class KafkaProducer(PushedMetrics, Generic[K, V]):
    """Sends records, in batches and from a thread of its own. All methods may be called by any thread.

    `config` is a mapping with Java's dotted names or the path of a `.properties` file; settings may also be keywords
    with underscores (`linger_ms=20`). Without a serializer, keys and values are bytes. Raises ConfigError.

    Records are written once and in order per partition (idempotence, KIP-98), also when they have to be sent again.
    Close the producer, or use it in a `with` block: what is not delivered by the end of the program is lost. A Ctrl-C
    that leaves the block gives delivery 3 s; the log tells how many records of which partitions were then given up.
    """

    def __init__(
        self,
        config: ConfigSource = None,
        *,
        key_serializer: SerializerLike[K] | None = None,
        value_serializer: SerializerLike[V] | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None:
        parsed = ProducerConfig.parse(
            config, settings, key_serializer=key_serializer, value_serializer=value_serializer
        )
        self._begin(build_producer(parsed))

    def _begin(self, core: ProducerCore) -> None:
        self._core = core
        self._guard = core.guard
        self._closed = False
        self._parts_closed = False
        self._placement = Placement(core)
        # True as long as nobody sees the records, or chooses their partitions, but the producer.
        self._plain = not core.interceptors and core.partitioner is None
        # By topic, `TopicQueues.try_append`: all that most records need.
        self._known_appends: dict[str, TryAppend] = {}
        # The same, or an empty one while nothing can be sent: closed, or no transaction.
        self._appends = self._known_appends if core.transactions is None else {}

    @overload
    def send(
        self,
        topic: str,
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> KafkaFuture[RecordMetadata]: ...
    @overload
    def send(
        self, topic: ProducerRecord[K, V], *, on_delivery: OnDelivery | None = None
    ) -> KafkaFuture[RecordMetadata]: ...
    def send(
        self,
        topic: str | ProducerRecord[K, V],
        value: V | None = None,
        *,
        key: K | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> KafkaFuture[RecordMetadata]:
        """Add a record to what will be sent and return at once, normally; the future has the outcome.

        It waits up to max.block.ms when the topic is not known yet or buffer.memory is full. Without `partition` the
        key decides (as in Java), and without key the producer does. `on_delivery(metadata, error)` is called on the
        I/O thread; it must not block, and what it raises is logged and goes no further. Only then is the future done:
        in the callback it is not, yet there `result` returns at once.

        What is wrong with the record itself is raised at once: TypeError, ValueError, InvalidTopicError,
        SerializationError, RecordTooLargeError; KafkaTimeoutError and BufferExhaustedError when max.block.ms is over,
        ClientClosedError after `close`. A signal handler or a `__del__` may send, too; where it has interrupted the
        producer in a step that must be finished first, that is an IllegalStateError. In a transaction, every ApiError
        among these lets it only be aborted, as it would not be whole.
        """
        # The usual case first: nobody to ask about the record but its serializers, and room in an open batch.
        appends = self._appends
        if type(topic) is str and topic in appends:
            added = appends[topic](key, value, headers, timestamp_ms, partition, on_delivery)
            if isinstance(added, tuple):
                key_bytes, value_bytes = added
                return self._run(
                    self._placement.accept(
                        topic,
                        value_bytes,
                        key_bytes,
                        partition,
                        headers,
                        timestamp_ms,
                        on_delivery,
                        serialized=True,
                    )
                )
            if added is not None:
                return added
        if isinstance(topic, ProducerRecord):
            record = topic
            if not (value is key is partition is timestamp_ms is None) or headers:
                raise TypeError("send(record) takes everything from the record; give it no other argument")
            topic, value, key, partition = record.topic, record.value, record.key, record.partition
            headers, timestamp_ms = record.headers, record.timestamp_ms
        future = self._run(
            self._placement.send(topic, value, key, partition, headers, timestamp_ms, on_delivery)
        )
        if self._plain:
            self._known_appends[topic] = self._core.accumulator.topic(topic).try_append
        return future

    def _run(self, steps: Steps[T]) -> T:
        """Take the steps on the calling thread, if the producer can be used."""
        self._placement.check_usable()
        if self._closed:
            raise ClientClosedError("The producer is closed; create a new one.")
        return run(steps, self._core.time)

    def send_many(
        self,
        topic: str,
        values: Iterable[V | None],
        *,
        keys: Iterable[K | None] | None = None,
        partition: int | None = None,
    ) -> BulkFuture:
        """Add many records at once, at a fraction of what `send` costs for each; one future tells of all of them.

        `keys` are those of the `values`, in the same order. Partitions are chosen as by `send`, and records of one
        partition keep their order. All have the time of sending. It returns when all are in batches, and waits for
        room in buffer.memory as `send` does, up to max.block.ms each time.

        What is wrong with an argument or a record is raised before anything is sent: TypeError, ValueError,
        InvalidTopicError, SerializationError, RecordTooLargeError; KafkaTimeoutError if the topic is not found,
        ClientClosedError after `close`. If it cannot go on half way (BufferExhaustedError), the records that are left
        have failed with that error, which the future tells; those before are on their way. With interceptors or a
        partitioner of your own every record goes by itself, and what is wrong with one is told by the future, too.
        """
        return self._run(send_many(self._core, self._placement, topic, values, keys, partition))

    def send_arrow(self, data: Any, *, topic: str | None = None) -> BulkFuture:
        """Add the records of Arrow columns, without a Python object for each; one future tells of all of them.

        `data` is a pyarrow RecordBatch or Table, or anything that offers itself as one (`__arrow_c_stream__`: polars,
        pandas, DuckDB). Its columns, of which only `value` must be there:

        - `value`, `key`: bytes or text of any of Arrow's kinds; null sends null
        - `topic`: text, not null; not needed if `topic` is given, which comes first
        - `partition`: a number; where it is null, key or producer decide as in `send`
        - `timestamp`: a timestamp, or a number in ms since the epoch; where it is null, the time of sending
        - `headers`: a list of structs of `key` (text) and `value` (bytes). Records with headers go one by one.

        Returns and raises as `send_many`; what is wrong with a column is a TypeError or ValueError that names it. The
        producer must have no serializers. Needs pyarrow: `pip install 'kclient-kafka[arrow]'`, else ImportError.
        """
        return self._run(send_arrow(self._core, self._placement, data, topic))

    def flush(self, timeout_ms: int | None = None) -> None:
        """Send at once what was added before, and wait until all of it is delivered or has failed.

        Raises KafkaTimeoutError if that takes longer than `timeout_ms`, IllegalStateError in a callback, where nothing
        could be delivered meanwhile, and KafkaError if the I/O thread has died. What failed is told by futures and
        callbacks.
        """
        core = self._core
        self._guard.check()
        timer = None
        if timeout_ms is not None:
            check_timeout(timeout_ms)
            timer = core.time.timer(timeout_ms)
        if core.io_thread.is_current:
            raise IllegalStateError("flush() was called from a callback, where it would wait for itself")
        started_ms = core.time.monotonic_ms()
        core.accumulator.begin_flush()
        try:
            delivered = run(core.accumulator.queued.incomplete.await_all_until_now(timer), core.time)
            core.io_thread.check()
            if not delivered:
                raise KafkaTimeoutError(
                    f"{core.io_thread.undelivered} records were not delivered within {timeout_ms} ms; they are still "
                    "being tried"
                )
        finally:
            core.accumulator.end_flush()
            core.metrics.flush_time.record((core.time.monotonic_ms() - started_ms) * NS_PER_MS)

    def init_transactions(self) -> None:
        """Prepare the producer for transactions; to be called once, before the first one. Needs transactional.id.

        Producers of the same transactional.id that began before are fenced, and what they left open is ended: aborted,
        or completed where the commit had begun. Waits up to max.block.ms, then raises KafkaTimeoutError and may be
        called again; so it is after a Ctrl-C.

        Raises TransactionalIdAuthorizationError and TransactionAbortableError, after which it may be called again, too;
        IllegalStateError if it was called before or the producer has no transactional.id, UnsupportedVersionError for
        brokers before 0.11.
        """
        self._transact("init", lambda transactions: transactions.initialize())

    def begin_transaction(self) -> None:
        """Begin a transaction: what is sent from here on is committed or aborted as a whole.

        Raises IllegalStateError before `init_transactions`, and where a transaction is open already.
        """
        transactions = self._transactions()
        started_ms = self._core.time.monotonic_ms()
        transactions.begin()
        self._appends = self._known_appends
        self._took("begin", started_ms)

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: ConsumerGroupMetadata,
    ) -> None:
        """Commit offsets of a consumer's group with the transaction, and not without it (KIP-447).

        `offsets` are the next ones to read. `group_metadata` is `consumer.group_metadata()` of the consumer that read
        up to there, which must not commit by itself (enable.auto.commit=false). The broker refuses them, and the
        transaction has to be aborted, if the consumer is no longer the member of the group that it was.

        Waits up to max.block.ms, and raises as `commit_transaction`; KafkaTimeoutError allows the same call again.
        """
        checked = checked_offsets(offsets)
        if not isinstance(group_metadata, ConsumerGroupMetadata):
            raise TypeError(
                f"group_metadata: what consumer.group_metadata() returns is needed, not {group_metadata!r}"
            )
        self._transact(
            "send-offsets", lambda transactions: transactions.send_offsets(checked, group_metadata)
        )

    def commit_transaction(self) -> None:
        """Send what was not sent yet, and commit the transaction: its records and offsets become visible together.

        Raises TransactionAbortableError if a record of it, or anything else, has failed: `abort_transaction` is what is
        left then. KafkaTimeoutError after max.block.ms, and a Ctrl-C, leave the outcome open: calling it again waits
        for it. An ApplicationRecoverableError (ProducerFencedError: there is a newer producer of the same
        transactional.id) and all others mean that the producer has to be closed.
        """
        self._end_transaction("commit", commit=True)

    def abort_transaction(self) -> None:
        """Abort the transaction: none of its records and offsets are visible to those who read committed ones.

        Records that were not sent yet fail with TransactionAbortedError. Raises KafkaTimeoutError after max.block.ms,
        or TransactionAbortableError if the broker wants it so, and may be called again then; any other error means that
        the producer has to be closed.
        """
        self._end_transaction("abort", commit=False)

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Begin a transaction for a `with` block, which commits it; if the block raises, it is aborted.

        The error of the block is raised again, and so is that of a commit which could only be aborted: after a
        TransactionAbortableError the next transaction may begin.
        """
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException as error:
            if self._transactions().is_open:
                try:
                    self.abort_transaction()
                except Exception as failure:
                    if isinstance(error, TransactionAbortableError):
                        raise failure from error
                    # The error of the block is the one that matters.
                    log.exception(
                        "[Producer clientId=%s] The transaction could not be aborted",
                        self._core.config.client_id,
                    )
            raise

    def _end_transaction(self, name: str, *, commit: bool) -> None:
        transactions = self._transactions()
        if transactions.is_open:
            self._appends = {}
        self._transact(name, lambda _: transactions.complete(commit=commit))

    def _transact(self, name: str, call: Callable[[TransactionManager], Steps[None]]) -> None:
        transactions = self._transactions()
        started_ms = self._core.time.monotonic_ms()
        run(call(transactions), self._core.time)
        self._took(name, started_ms)

    def _transactions(self) -> TransactionManager:
        self._guard.check()
        core = self._core
        if self._closed:
            raise ClientClosedError("The producer is closed; create a new one.")
        if core.transactions is None:
            raise IllegalStateError("The producer has no transactions: it needs the setting transactional.id")
        if core.io_thread.is_current:
            raise IllegalStateError(
                "A callback cannot begin or end transactions: they would wait for themselves"
            )
        return core.transactions

    def _took(self, name: str, started_ms: int) -> None:
        elapsed_ms = self._core.time.monotonic_ms() - started_ms
        self._core.metrics.transaction_times[name].record(elapsed_ms * NS_PER_MS)

    def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The partitions of `topic`, in order. Waits up to max.block.ms, and raises as `send` does."""
        self._run(self._placement.topic(topic, None))
        cluster: Cluster = self._core.metadata.fetch()
        return cluster.partitions_for_topic(topic)

    def update_credentials(self, username: str, password: str) -> None:
        """Authenticate as `username` with `password` from now on; for PLAIN and SCRAM.

        Connections that there are stay as they are until they are made anew, or their broker wants them to authenticate
        again (`connections.max.reauth.ms`). May be called from any thread.

        Raises IllegalStateError if the client does not authenticate with a password, TypeError for what is not str.
        """
        self._guard.check()
        self._core.client.update_credentials(username, password)

    def metrics(self) -> MetricValues:
        """Return the metrics of the producer, under Java's names: by MetricName, and by plain name as well."""
        self._guard.check()
        return self._core.metrics.snapshot()

    def health(self) -> ProducerHealth:
        """Return how the producer stands: what is wrong, its connections, memory and records. Waits for nothing."""
        self._guard.check()
        return health_of(self._core)

    @property
    def _telemetry(self) -> ClientTelemetry:
        self._guard.check()
        return self._core.telemetry

    def close(self, timeout_ms: int | None = None) -> None:
        """Deliver what was added, and end.

        What is not delivered after `timeout_ms` (delivery.timeout.ms, if None) fails, and the log says how many records
        of which partitions these were; 0 delivers nothing more. May be called again. In a callback it does not wait, so
        records that are not delivered by then fail.
        """
        if timeout_ms is not None:
            check_timeout(timeout_ms)
        core = self._core
        if self._guard.forked:
            return  # thread and connections are the parent's
        self._plain = False
        self._appends = {}
        self._closed = True
        io_thread = core.io_thread
        if timeout_ms is None:
            timeout_ms = core.config.delivery_timeout_ms
        try:
            core.accumulator.entry.check_wait()
        except IllegalStateError:
            io_thread.begin_close()
            log.warning(
                "[Producer clientId=%s] close() was called by a signal handler or a __del__ that has interrupted the "
                "producer, and cannot wait: it closes in the background; call close() again to wait for that",
                core.config.client_id,
            )
            return
        if timeout_ms and not io_thread.is_current:
            io_thread.begin_close()
            io_thread.join(timeout_ms)
        if io_thread.alive and not io_thread.abort():
            log.warning(
                "[Producer clientId=%s] A callback that does not return keeps the producer",
                core.config.client_id,
            )
        if not self._parts_closed:
            self._close_parts()

    def _close_parts(self) -> None:
        core = self._core
        interrupt: BaseException | None = None
        config = core.config
        for part in (*core.interceptors, core.partitioner, config.key_serializer, config.value_serializer):
            close = getattr(part, "close", None)
            if callable(close) and not isinstance(part, type):
                try:
                    close()
                except BaseException as error:
                    log.exception(
                        "[Producer clientId=%s] %r could not be closed", core.config.client_id, part
                    )
                    if belongs_to_caller(error):
                        interrupt = error  # the others are closed all the same
        self._parts_closed = True
        if interrupt is not None:
            raise interrupt

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            self.close()
            return
        try:
            if isinstance(exc, KeyboardInterrupt):
                # Who interrupts wants the end now, and is told what that costs.
                self.close(min(_INTERRUPTED_CLOSE_MS, self._core.config.delivery_timeout_ms))
            else:
                self.close()
        except Exception:
            # The error of the block is the one that matters.
            log.exception(
                "[Producer clientId=%s] The producer could not be closed", self._core.config.client_id
            )

    # When the interpreter ends, the I/O thread has ended before, and the names of modules may be gone.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        core = getattr(self, "_core", None)
        if core is None or is_finalizing() or core.guard.forked or not core.io_thread.alive:
            return
        # No lock may be taken here: the collector may run in the middle of whatever holds it. The I/O thread
        # delivers what it has and ends. That may be needed after close(), too, if a Ctrl-C ended it.
        core.io_thread.begin_close()
        if not self._closed:
            warnings.warn(f"{self!r} was never closed", ResourceWarning, stacklevel=1, source=self)

    def __repr__(self) -> str:
        core = self._core
        return f"<KafkaProducer {core.config.client_id} to {', '.join(core.config.bootstrap_servers)}>"
