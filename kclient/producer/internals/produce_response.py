"""The meaning of the answer to a produce request for its batches: done, again, in parts, or failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kclient.client.kafka_client import KafkaClient
from kclient.client.requests import ClientResponse
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    ClusterAuthorizationError,
    CorrelationIdMismatchError,
    ErrorCode,
    Errors,
    InvalidRecordError,
    KafkaError,
    KafkaTimeoutError,
    NetworkError,
    SchemaError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.idempotence.fate import NOT_WRITTEN_CODES, Fate
from kclient.producer.internals.idempotence.manager import IdempotenceManager
from kclient.producer.internals.metadata import ProducerMetadata
from kclient.producer.internals.metrics import ProducerMetrics
from kclient.producer.internals.produce_request import ProduceRequestPlan
from kclient.producer.internals.producer_batch import BatchState, ProducerBatch
from kclient.producer.internals.queued_batches import QueuedBatches
from kclient.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import Logger, RepeatedWarning

if TYPE_CHECKING:
    from kclient.producer.internals.transactions.manager import TransactionManager

_LEADER_HINT_CODES = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
_UNREADABLE = (SchemaError, CorrelationIdMismatchError)


@attrs.define
class _Answer:
    """The outcome of one batch in one attempt."""

    code: int
    error: KafkaError | None
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: dict[int, str | None] | None = None
    sent: bool = True


_WRITTEN = _Answer(0, None)
"""The broker has the batch, and no longer knows where."""


@attrs.define(kw_only=True, eq=False, repr=False)
class ProduceResponseHandler:
    """Completes batches. Belongs to the I/O thread."""

    _queued: QueuedBatches
    _metadata: ProducerMetadata
    _client: KafkaClient
    _idempotence: IdempotenceManager | None
    _transactions: TransactionManager | None
    _metrics: ProducerMetrics
    _backoff: ExponentialBackoff
    _config: ProducerConfig
    _log: Logger = attrs.field(init=False)
    _warnings: RepeatedWarning = attrs.field(init=False)
    failed_records: int = attrs.field(default=0, init=False)
    _next_expiry_ms: int = attrs.field(default=-1, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._config.log_context().logger(__name__)
        self._warnings = RepeatedWarning(self._log)

    def handle(self, plan: ProduceRequestPlan, response: ClientResponse) -> None:
        """Settle every batch of a request, whatever the answer says or leaves out."""
        now_ms = response.received_ms
        answers = self._answers(plan, response)
        for batch in plan.batches:
            if self._idempotence is not None:
                self._idempotence.on_wire_ended(batch)
            if self._transactions is not None:
                self._transactions.on_wire_ended()
            batch.queue.muted = False
            answer = answers.get(batch)
            if answer is None:
                answer = _lost(f"The broker's answer says nothing of {batch.tp}")
            try:
                self._settle(batch, answer, now_ms)
            except Exception as error:
                # One batch that cannot be handled must not leave the others without an outcome.
                self._log.exception("The answer for %s could not be handled", batch.tp)
                if not batch.done:
                    self.fail(batch, error)

    def _answers(self, plan: ProduceRequestPlan, response: ClientResponse) -> dict[ProducerBatch, _Answer]:
        error = response.failure() if response.failed else None
        if response.disconnected or isinstance(error, _UNREADABLE):
            # Nothing is known of what the broker did, so it is asked again.
            self._metadata.request_update()
            return dict.fromkeys(plan.batches, _lost(str(error)))
        if error is not None:
            # There is no version in which it could be sent, so it was not.
            sent = not isinstance(error, UnsupportedVersionError)
            return dict.fromkeys(plan.batches, _Answer(Errors.code_for(error), error, sent=sent))
        if response.message is None:
            return dict.fromkeys(plan.batches, _Answer(0, None))  # acks=0: written is as good as done
        message: ProduceResponse = response.message
        self._metrics.answered(response.latency_ms, message.throttle_time_ms)
        answers: dict[ProducerBatch, _Answer] = {}
        hints: dict[TopicPartition, tuple[int, int]] = {}
        for topic in message.responses:
            for partition in topic.partition_responses:
                batch = plan.find(topic.name, topic.topic_id, partition.index)
                if batch is None or batch in answers:
                    self._log.warning(
                        "%s was answered for partition %d of %s, which is not what was asked",
                        response.request,
                        partition.index,
                        topic.name or topic.topic_id,
                    )
                    continue
                answers[batch] = _read(partition)
                if partition.error_code in _LEADER_HINT_CODES:
                    leader = partition.current_leader
                    if leader.leader_id >= 0 and leader.leader_epoch >= 0:
                        hints[batch.tp] = (leader.leader_id, leader.leader_epoch)
        if hints:
            nodes = [Node(node.node_id, node.host, node.port, node.rack) for node in message.node_endpoints]
            self._metadata.update_partition_leadership(hints, nodes)
        return answers

    def _settle(self, batch: ProducerBatch, answer: _Answer, now_ms: int) -> None:
        error = answer.error
        if error is not None and answer.sent and answer.code not in NOT_WRITTEN_CODES:
            batch.fate = Fate.UNKNOWN
        if self._idempotence is not None and self._idempotence.is_written(batch, answer.code):
            self._succeed(batch, _WRITTEN, now_ms)
            return
        if error is not None and error.invalid_metadata:
            self._warnings.warn(
                f"{batch.tp} {type(error).__name__}",
                f"Produce to {batch.tp} failed, metadata is refreshed: {error}",
                now_ms,
            )
            self._metadata.request_update()
        if error is None or answer.code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._succeed(batch, answer, now_ms)
        elif batch.state is BatchState.ABANDONED:
            # Its sender was told long ago; only the memory was still held.
            self._end_abandoned(batch)
        elif answer.code == ErrorCode.MESSAGE_TOO_LARGE and self._can_split(batch):
            self._split(batch, error)
        elif self._can_retry(batch, answer, error, now_ms):
            self._retry(batch, error, now_ms)
        else:
            self.fail(batch, self._describe(batch, error), answer.record_errors)

    def _can_split(self, batch: ProducerBatch) -> bool:
        # The broker recognises a batch that is sent again as a whole only.
        may_be_written = self._idempotence is not None and batch.fate is Fate.UNKNOWN
        return batch.builder.count > 1 and not may_be_written

    def _succeed(self, batch: ProducerBatch, answer: _Answer, now_ms: int) -> None:
        if self._idempotence is not None:
            for other in self._idempotence.on_success(batch, answer.base_offset, now_ms):
                # Its own answer was lost with the connection, and with it the offset.
                self._queued.take(other)
                self._finish(other, -1, -1)
        if batch.state is BatchState.ABANDONED:
            self._end_abandoned(batch)
            return
        self._finish(batch, answer.base_offset, answer.log_append_time_ms)

    def _finish(self, batch: ProducerBatch, base_offset: int, log_append_time_ms: int) -> None:
        batch.succeed(base_offset, log_append_time_ms)
        self._queued.incomplete.remove(batch)
        self._queued.release(batch)

    def _end_abandoned(self, batch: ProducerBatch) -> None:
        batch.transition_to(BatchState.FAILED)
        self._queued.release(batch)

    def _can_retry(self, batch: ProducerBatch, answer: _Answer, error: KafkaError, now_ms: int) -> bool:
        if (
            now_ms - batch.created_ms >= self._config.delivery_timeout_ms
            or batch.attempts >= self._config.retries
        ):
            return False
        if self._idempotence is None:
            return error.retriable
        return self._idempotence.can_retry(batch, answer.code, error, answer.log_start_offset)

    def _retry(self, batch: ProducerBatch, error: KafkaError, now_ms: int) -> None:
        self._log.debug(
            "Batch of %s with sequence %d is sent again after: %s", batch.tp, batch.base_sequence, error
        )
        batch.last_error = error
        self._metrics.retried(batch)
        self._queued.reenqueue(batch, now_ms, now_ms + self._backoff.backoff_ms(batch.attempts))

    def _split(self, batch: ProducerBatch, error: KafkaError) -> None:
        self._log.warning(
            "A batch of %d records (%d bytes) for %s is too large for the broker and is split: %s",
            batch.builder.count,
            batch.builder.size,
            batch.tp,
            error,
        )
        try:
            parts = self._queued.split(batch)
        except Exception as failure:
            # The records cannot be had back from their compressed form: the refusal is the last word on them.
            self._log.exception("The batch for %s cannot be split", batch.tp)
            refused = self._describe(batch, error)
            refused.__cause__ = failure
            self.fail(batch, refused)
            return
        if self._idempotence is not None:
            self._idempotence.on_split(batch, parts)
        self._queued.enqueue_parts(parts)
        self._metrics.split()

    def _describe(self, batch: ProducerBatch, error: KafkaError) -> KafkaError:
        """The error for the records' senders: with names where the broker gave none."""
        if isinstance(error, TopicAuthorizationError):
            return TopicAuthorizationError(
                f"Not authorized to write to topic {batch.tp.topic}", topics=frozenset({batch.tp.topic})
            )
        if isinstance(error, ClusterAuthorizationError):
            return ClusterAuthorizationError(
                "Not authorized to write with idempotence; allow IdempotentWrite, or set enable.idempotence=false"
            )
        return error.reworded(f"{batch.tp}: {error}{_doubt(batch)}")

    # Giving up.

    def fail(
        self, batch: ProducerBatch, error: BaseException, record_errors: dict[int, str | None] | None = None
    ) -> None:
        """Tell the senders that `batch`, which no request carries, has failed, and let go of its memory."""
        self._take_if_queued(batch)
        self._tell(batch, error, record_errors, still_carried=False)
        self._queued.release(batch)

    def fail_because(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Fail a queued batch because of `error`, that of its transaction or of the whole producer."""
        self.fail(batch, self._describe(batch, error).because_of(error))

    def give_up(self, batch: ProducerBatch, error: BaseException) -> None:
        """Tell the senders that `batch` has failed, wherever it is.

        While a request may still be written or answered, the memory stays accounted: the broker may yet get those
        bytes, and they must stay what they are (CVE-2026-35554).
        """
        if batch.state is BatchState.IN_FLIGHT:
            batch.fate = Fate.UNKNOWN
            self._tell(batch, error, None, still_carried=True)
        else:
            self.fail(batch, error)

    def end(self, batch: ProducerBatch, error: KafkaError) -> None:
        """Give `batch` up, wherever it is, because of `error`, the end of the producer."""
        if batch.state is BatchState.IN_FLIGHT:
            batch.fate = Fate.UNKNOWN
        self.give_up(batch, self._describe(batch, error).because_of(error))

    def fail_hopeless(self, now_ms: int) -> None:
        """Fail the batches that can neither be sent again nor be proven to be written."""
        assert self._idempotence is not None
        for batch, error in self._idempotence.hopeless(now_ms):
            self.fail(batch, self._describe(batch, error))

    def expire(self, now_ms: int) -> int:
        """Give up the batches whose delivery.timeout.ms is over; returns in how many ms the next one expires."""
        while now_ms >= self._next_expiry_ms:
            batch = self._queued.incomplete.oldest()
            if batch is None:
                return self._config.delivery_timeout_ms
            # Not looked at again before that: whatever comes after the oldest expires later.
            self._next_expiry_ms = batch.created_ms + self._config.delivery_timeout_ms
            if now_ms >= self._next_expiry_ms:
                self.give_up(batch, self._expiry_error(batch, now_ms))
        return self._next_expiry_ms - now_ms

    def _expiry_error(self, batch: ProducerBatch, now_ms: int) -> KafkaTimeoutError:
        if batch.state is BatchState.IN_FLIGHT:
            where = "the last attempt was not answered, so they may have been written"
        elif batch.fate is Fate.UNKNOWN:
            where = "an attempt had no definite answer, so they may have been written"
        elif batch.attempts:
            where = "they waited to be sent again, and were not written"
        else:
            where = (
                "they were never sent: see whether the partition has a leader and its broker can be reached"
            )
        leader = self._metadata.leader_and_epoch(batch.tp).leader
        cause = self._client.connection_failure(None if leader is None else leader.id) or batch.last_error
        text = "" if cause is None else f"; the last error was: {cause}"
        error = KafkaTimeoutError(
            f"{batch.builder.count} records for {batch.tp} were not delivered within {now_ms - batch.created_ms} ms "
            f"(delivery.timeout.ms is {self._config.delivery_timeout_ms}) and {batch.attempts} retries; {where}{text}"
        )
        if isinstance(cause, KafkaError):
            return error.because_of(cause)
        error.__cause__ = cause
        return error

    def _take_if_queued(self, batch: ProducerBatch) -> None:
        if batch.state is BatchState.QUEUED:
            if not batch.sealed:
                batch.builder.freeze()  # nothing more may be appended
            self._queued.take(batch)

    def _tell(
        self,
        batch: ProducerBatch,
        error: BaseException,
        record_errors: dict[int, str | None] | None,
        *,
        still_carried: bool,
    ) -> None:
        if self._idempotence is not None:
            self._idempotence.on_failure(batch, error)
        if self._transactions is not None:
            self._transactions.on_batch_failed(batch, error)
        named = record_errors or {}
        batch.fail(
            error,
            (lambda index: _record_error(batch.tp, error, named, index)) if named else None,
            still_carried=still_carried,
        )
        self.failed_records += batch.builder.count
        self._metrics.failed(batch)
        self._queued.incomplete.remove(batch)


def _doubt(batch: ProducerBatch) -> str:
    if batch.fate is Fate.NOT_WRITTEN:
        return ""
    return "; an attempt had no definite answer, so the records may have been written"


def _lost(text: str) -> _Answer:
    return _Answer(ErrorCode.NETWORK_EXCEPTION, NetworkError(text))


def _read(partition: PartitionProduceResponse) -> _Answer:
    code = partition.error_code
    if code == 0:
        return _Answer(0, None, partition.base_offset, partition.log_append_time_ms)
    return _Answer(
        code,
        Errors.for_code(code, partition.error_message),
        partition.base_offset,
        partition.log_append_time_ms,
        partition.log_start_offset,
        {entry.batch_index: entry.batch_index_error_message for entry in partition.record_errors},
    )


def _record_error(
    tp: TopicPartition, error: BaseException, named: dict[int, str | None], index: int
) -> BaseException:
    """The error of one record of a batch that was refused because of the records in `named` (KIP-467)."""
    if index not in named:
        return InvalidRecordError(f"{tp}: the record was dropped with its batch, in which others are invalid")
    text = named[index]
    if text is None:
        return error
    return error.reworded(f"{tp}: {text}") if isinstance(error, KafkaError) else error
