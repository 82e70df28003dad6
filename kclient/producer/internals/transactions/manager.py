"""TransactionManager: the producer's id, and which sequences its batches may use (KIP-98, KIP-360).

How a batch that is sent again is written once: the broker remembers the last five batches of a producer id per
partition by their sequences. It answers a repetition with the first answer, and refuses whatever does not follow.
A refusal leaves a gap that nothing of the same epoch can pass, so the producer moves on to a new epoch, which starts
at 0. Before that every batch ahead of the gap must have had its answer under its old sequence: the broker may have
it, and would take it again under a new one.
"""

from __future__ import annotations

from kclient.client.kafka_client import KafkaClient
from kclient.client.requests import ClientResponse
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    ClusterAuthorizationError,
    ErrorCode,
    Errors,
    IllegalStateError,
    InvalidPidMappingError,
    KafkaError,
    ProducerFencedError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
)
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.producer_batch import NO_SEQUENCE, BatchState, ProducerBatch
from kclient.producer.internals.transactions.sequences import (
    PartitionSequences,
    ProducerIdAndEpoch,
    sequence_precedes,
)
from kclient.producer.internals.transactions.state import VALID_TRANSITIONS, State
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.record import increment_sequence
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext

_MAX_EPOCH = 32767
# How many batches of a producer a broker remembers per partition.
_REMEMBERED_BATCHES = 5
# Batches without a transaction never time out at the coordinator.
_NO_TRANSACTION_TIMEOUT_MS = 2**31 - 1

_FATAL = (
    ClusterAuthorizationError,
    TransactionalIdAuthorizationError,
    ProducerFencedError,
    UnsupportedVersionError,
    InvalidPidMappingError,
)
# The leader has the batch, or it may have.
_MAYBE_WRITTEN = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class TransactionManager:
    """Belongs to the I/O thread; `fatal_error` may be read by any."""

    def __init__(self, backoff: ExponentialBackoff, log_context: LogContext) -> None:
        self._log = log_context.logger(__name__)
        self._backoff = backoff
        self._state = State.UNINITIALIZED
        self._identity = ProducerIdAndEpoch()
        # The partitions with something to resolve: a producer may have 10,000 without.
        self._unsettled: dict[TopicPartition, PartitionSequences] = {}
        self._attempts = 0
        self._retry_at_ms = -1
        self.fatal_error: KafkaError | None = None

    @property
    def identity(self) -> ProducerIdAndEpoch:
        """The producer id and epoch for new batches."""
        return self._identity

    @property
    def state(self) -> State:
        """How far the producer is with its id."""
        return self._state

    @property
    def at_rest(self) -> bool:
        """Whether there is an id and nothing to find out: `resolve` and `maybe_send_init_producer_id` do nothing."""
        return self._state is State.READY and not self._unsettled

    def sequences(self, queue: PartitionQueue) -> PartitionSequences:
        """What is known of the sequences of `queue`'s partition."""
        entry = queue.sequences
        if entry is None:
            entry = queue.sequences = PartitionSequences(self._identity)
        return entry

    # The way to an id.

    def maybe_send_init_producer_id(self, client: KafkaClient, now_ms: int) -> int | None:
        """Ask a broker for an id if one is needed.

        Returns after how many ms to come back, None if an answer will come or nothing is needed.
        """
        if self._state is not State.UNINITIALIZED:
            return None
        if now_ms < self._retry_at_ms:
            return self._retry_at_ms - now_ms
        node = client.least_loaded_node(now_ms)
        if node is None:
            return self._backoff.max_ms
        if not client.ready(node, now_ms):
            error = client.authentication_error(node)
            if error is not None:
                self._fail_for_good(error)
                return None
            return client.poll_delay_ms(node, now_ms)
        request = client.new_request(
            node.id,
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT_MS),
            now_ms,
            on_complete=self._on_producer_id,
        )
        client.send(request, now_ms)
        self._transition_to(State.INITIALIZING)
        return None

    def _on_producer_id(self, response: ClientResponse) -> None:
        error = response.failure()
        message = response.message
        if error is None:
            error = Errors.for_code(message.error_code)
        if error is None:
            self._identity = ProducerIdAndEpoch(message.producer_id, message.producer_epoch)
            self._attempts = 0
            self._transition_to(State.READY)
            self._log.info("Producer id %d with epoch %d", message.producer_id, message.producer_epoch)
        elif error.retriable:
            self._transition_to(State.UNINITIALIZED)
            self._retry_at_ms = response.received_ms + self._backoff.backoff_ms(self._attempts)
            self._attempts += 1
            self._log.debug("No producer id yet: %s", error)
        else:
            self._fail_for_good(error)

    def _transition_to(self, state: State) -> None:
        if state not in VALID_TRANSITIONS[self._state]:
            raise IllegalStateError(f"The producer id cannot go from {self._state.name} to {state.name}")
        self._state = state

    def _fail_for_good(self, error: KafkaError) -> None:
        if self._state is State.FATAL_ERROR:
            return
        self._transition_to(State.FATAL_ERROR)
        self.fatal_error = error
        self._log.error("The producer cannot go on and has to be closed: %s", error)

    # What may be sent.

    def may_drain(self, batch: ProducerBatch) -> bool:
        """Whether the first batch of a queue may be sent now."""
        if self._state is not State.READY:
            return False
        entry = self.sequences(batch.queue)
        if batch.has_sequence:
            # A repetition: one at a time and in order. Behind a gap the broker would only refuse it again.
            return batch is entry.probe and (
                entry.gap is None or sequence_precedes(batch.base_sequence, entry.gap)
            )
        if entry.gap is not None or entry.unresolved is not None:
            return False
        in_flight = entry.in_flight
        if entry.last_acked_sequence == NO_SEQUENCE and (in_flight or entry.on_wire):
            # A broker takes any sequence from a producer that it does not know in the partition. Were the first batch
            # refused, the second would be taken in its place, and the first could only be written after it.
            return False
        if len(in_flight) >= _REMEMBERED_BATCHES:
            # Requests to a former leader count too: a repetition that the broker no longer remembers looks like a gap.
            return False
        # A new epoch begins only when nothing of the old one can arrive after it.
        return entry.is_of(self._identity) or not (in_flight or entry.on_wire)

    def next_of(self, queue: PartitionQueue) -> ProducerBatch:
        """The batch of a queue that is not empty whose turn it is: the first, or the first that was not refused."""
        first = queue.batches[0]
        if not first.refused:
            return first
        probe = self.sequences(queue).probe
        return first if probe is None or probe.state is not BatchState.QUEUED else probe

    def on_drain(self, batch: ProducerBatch) -> None:
        """`batch` is about to be sent: it gets its sequence, unless it has one from its first attempt."""
        entry = self.sequences(batch.queue)
        if not batch.has_sequence:
            if not entry.is_of(self._identity):
                entry.restart(self._identity)
            entry.assign(batch)
        entry.on_wire += 1

    # Records that are sent past the queue.

    def next_sequence_at_rest(self, queue: PartitionQueue) -> int | None:
        """The sequence for a batch of `queue` when all before it are acknowledged; None if that is not so."""
        entry = self.sequences(queue)
        if not self.at_rest or not entry.is_of(self._identity) or entry.in_flight or entry.on_wire:
            return None
        # Of a first batch see `may_drain`; and a gap is unsettled.
        return None if entry.last_acked_sequence == NO_SEQUENCE else entry.next_sequence

    def on_lone_successes(self, queue: PartitionQueue, count: int) -> None:
        """So many batches of one record were sent since `next_sequence_at_rest`, and acknowledged one by one."""
        entry = self.sequences(queue)
        entry.last_acked_sequence = increment_sequence(entry.next_sequence, count - 1)
        entry.next_sequence = increment_sequence(entry.next_sequence, count)

    # Requests that are over.

    def on_wire_ended(self, batch: ProducerBatch) -> None:
        """A request that carried `batch` is over."""
        self.sequences(batch.queue).on_wire -= 1

    # What came of it.

    def on_success(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """The broker has `batch`, even if its sender was told that the time was up.

        Returns the queued batches that this proves to be written as well.
        """
        entry = self.sequences(batch.queue)
        entry.acked(batch)
        if len(entry.in_flight) == 1 and entry.in_flight[0] is batch:
            entry.in_flight.clear()
            return []
        written = entry.written_before(batch)
        for other in written:
            entry.forget(other)
        entry.forget(batch)
        return written

    def is_written(self, batch: ProducerBatch, code: int) -> bool:
        """Whether a refusal means that the broker has `batch`: it acknowledged a younger one and then forgot this."""
        entry = self.sequences(batch.queue)
        return (
            code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            and entry.last_acked_sequence != NO_SEQUENCE
            and sequence_precedes(batch.base_sequence, entry.last_acked_sequence)
        )

    def note_answer(self, batch: ProducerBatch, code: int) -> None:
        """Remember what the answer of an attempt says about earlier ones."""
        if code == ErrorCode.UNKNOWN_PRODUCER_ID and not batch.part_of_doubtful:
            batch.in_doubt = False
        elif code in _MAYBE_WRITTEN or ErrorCode.__members__.get(Errors.name_of(code)) is None:
            batch.in_doubt = True

    def can_retry(self, batch: ProducerBatch, code: int, error: KafkaError, log_start_offset: int) -> bool:
        """Whether to send `batch` again after `error`, when neither time nor retries are used up."""
        if code == ErrorCode.UNKNOWN_PRODUCER_ID:
            # The broker lost what it knew, because the records it knew it from were deleted. A log start offset of -1
            # says that the partition moved while the broker answered; a later answer will tell.
            if log_start_offset != -1:
                self._open_gap(batch)
            return True
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            # Behind others it fits once those are written. But what is missing before the oldest will never come:
            # it was given up, or deleted. Or it is written, and a broker that restarted forgot it.
            entry = self.sequences(batch.queue)
            if batch is entry.probe:
                if batch.part_of_doubtful:
                    return False  # or the whole was written, which a part is not recognised as
                batch.refused = True
                if not any(other.in_doubt and not other.refused for other in entry.in_flight):
                    self._open_gap(entry.in_flight[0])
            return True
        if code == ErrorCode.INVALID_PRODUCER_EPOCH and not batch.in_doubt:
            self._open_gap(batch)
            return True
        return error.retriable

    def on_failure(self, batch: ProducerBatch, error: BaseException) -> None:
        """`batch` has failed for good, or was given up."""
        if isinstance(error, _FATAL):
            self._fail_for_good(error)
        entry = self.sequences(batch.queue)
        was_in_flight = batch in entry.in_flight
        entry.forget(batch)
        if not was_in_flight or self.fatal_error is not None:
            return
        if batch.in_doubt:
            entry.leave_unresolved(batch)
            self._unsettled[batch.tp] = entry
        else:
            self._open_gap(batch)

    def on_split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """`batch` was too large: its parts share its sequences."""
        entry = self.sequences(batch.queue)
        entry.forget(batch)
        sequence = batch.base_sequence
        for part in parts:
            part.stamp(batch.producer_id, batch.producer_epoch, sequence)
            part.in_doubt = part.part_of_doubtful = batch.in_doubt
            entry.insert(part)
            sequence = increment_sequence(sequence, part.builder.count)

    def _open_gap(self, batch: ProducerBatch) -> None:
        entry = self.sequences(batch.queue)
        entry.open_gap(batch.base_sequence)
        self._unsettled[batch.tp] = entry

    # Going on after a gap.

    def resolve(self) -> None:
        """Find out what became of batches that were given up, and start a new epoch where there is a gap."""
        if not self._unsettled or self._state is not State.READY:
            return
        restart = {}
        for tp, entry in list(self._unsettled.items()):
            if (
                entry.gap is None
                and entry.unresolved is not None
                and not entry.in_flight
                and not entry.on_wire
            ):
                if entry.all_acked:
                    # What was given up had arrived, and what followed it too.
                    entry.unresolved = None
                else:
                    entry.gap = entry.next_sequence
            if entry.gap is None and entry.unresolved is None:
                del self._unsettled[tp]
            elif entry.ready_for_restart():
                restart[tp] = entry
        if not restart:
            return
        # A partition that is an epoch behind, because others had gaps, goes on with the present one.
        if any(entry.is_of(self._identity) for entry in restart.values()):
            self._bump_epoch()
        if not self._identity.is_valid:
            return
        for tp, entry in restart.items():
            self._log.info("%s starts again at sequence 0 of epoch %d", tp, self._identity.epoch)
            entry.restart(self._identity)
            del self._unsettled[tp]

    def _bump_epoch(self) -> None:
        if self._identity.epoch < _MAX_EPOCH:
            self._identity = ProducerIdAndEpoch(self._identity.producer_id, self._identity.epoch + 1)
            return
        self._identity = ProducerIdAndEpoch()
        self._transition_to(State.UNINITIALIZED)
