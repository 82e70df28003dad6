"""IdempotenceManager: the producer's id, and which sequences its batches may use (KIP-98, KIP-360).

How a batch that is sent again is written once: the broker remembers the last five batches of a producer id per
partition by their sequences. It answers a repetition with the first answer, and refuses what does not follow.

What may be done with a batch is decided by one fact about all of its attempts (`Fate`). One that is certainly not
written may be split, and be numbered anew in another epoch. One that may be written keeps its sequence, and nothing
that follows is sent past it in a new epoch; it succeeds when the broker acknowledges it, or a younger one that can
only stand behind it, and otherwise fails with an error that says that it may have been written.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kclient.client.kafka_client import KafkaClient
from kclient.client.requests import ClientResponse
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    ClusterAuthorizationError,
    ErrorCode,
    Errors,
    IllegalStateError,
    InvalidPidMappingError,
    KafkaError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
)
from kclient.producer.internals.idempotence.fate import Fate
from kclient.producer.internals.idempotence.sequences import PartitionSequences, ProducerIdAndEpoch
from kclient.producer.internals.idempotence.state import VALID_TRANSITIONS, State
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.producer_batch import BatchState, ProducerBatch
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.record import increment_sequence
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext, Logger

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
_NO_RULE = (
    "The producer gets no id, as its principal may write to no topic: an ACL has to allow WRITE on one (before Kafka "
    "2.8 IDEMPOTENT_WRITE on the cluster), or enable.idempotence=false"
)
# A leader that answers so takes the batch in a new epoch only.
_WANTS_EPOCH = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)


@attrs.define(eq=False, repr=False)
class IdempotenceManager:
    """Belongs to the I/O thread; `fatal_error` may be read by any."""

    _backoff: ExponentialBackoff
    _topic_id: Callable[[str], Uuid | None]
    _log_context: LogContext
    _transactional: bool = False
    _log: Logger = attrs.field(init=False)
    state: State = attrs.field(default=State.UNINITIALIZED, init=False)
    """The state of the producer's id. This one and the next to be read, changed by the methods."""
    identity: ProducerIdAndEpoch = attrs.field(factory=ProducerIdAndEpoch, init=False)
    """The producer id and epoch for new batches."""
    # The partitions with something to settle: a producer may have 10,000 without.
    _unsettled: dict[TopicPartition, PartitionSequences] = attrs.field(factory=dict, init=False)
    _attempts: int = attrs.field(default=0, init=False)
    _retry_at_ms: int = attrs.field(default=-1, init=False)
    fatal_error: KafkaError | None = attrs.field(default=None, init=False)
    refusal: KafkaError | None = attrs.field(default=None, init=False)
    """The last answer, if no rule allows an id; until somebody adds one there is none."""

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)

    @property
    def at_rest(self) -> bool:
        """True if there is an id and nothing to settle: there is nothing to do but to send."""
        return self.state is State.READY and not self._unsettled

    def sequences(self, queue: PartitionQueue) -> PartitionSequences:
        """Return the sequences of `queue`'s partition."""
        entry = queue.sequences
        if entry is None:
            entry = queue.sequences = PartitionSequences(self.identity)
        return entry

    # The way to an id.

    def maybe_send_init_producer_id(self, client: KafkaClient, now_ms: int) -> int | None:
        """Ask a broker for an id if one is needed.

        Returns after how many ms to come back, None if an answer will come or nothing is needed.
        """
        if self.state is not State.UNINITIALIZED:
            return None
        if now_ms < self._retry_at_ms:
            return self._retry_at_ms - now_ms
        node = client.least_loaded_node(now_ms)
        if node is None:
            return self._backoff.max_ms
        if not client.ready(node, now_ms):
            error = client.connections.authentication_error(node.id)
            if error is not None:
                self.fail_for_good(error)
                return None
            return client.connections.poll_delay_ms(node.id, now_ms)
        request = client.new_request(
            node.id,
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT_MS),
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
            self.identity = ProducerIdAndEpoch(message.producer_id, message.producer_epoch)
            self._attempts = 0
            self.refusal = None
            self._transition_to(State.READY)
            self._log.info("Producer id %d with epoch %d", message.producer_id, message.producer_epoch)
        elif error.retriable:
            self._try_again(response)
            self._log.debug("No producer id yet: %s", error)
        elif isinstance(error, ClusterAuthorizationError):
            # As in Java: who waits for the id is told, and whoever sends next asks again, as rules come and go.
            self._try_again(response)
            if self.refusal is None:
                self._log.warning("%s", _NO_RULE)
            self.refusal = ClusterAuthorizationError(_NO_RULE)
        else:
            self.fail_for_good(error)

    def _try_again(self, response: ClientResponse) -> None:
        self._transition_to(State.UNINITIALIZED)
        self._retry_at_ms = response.received_ms + self._backoff.backoff_ms(self._attempts)
        self._attempts += 1

    def _transition_to(self, state: State) -> None:
        if state not in VALID_TRANSITIONS[self.state]:
            raise IllegalStateError(f"The producer id cannot go from {self.state.name} to {state.name}")
        self.state = state

    def adopt(self, identity: ProducerIdAndEpoch) -> None:
        """Take over the identity that the coordinator of the transactions has given."""
        self.identity = identity
        if self.state is not State.READY:
            self._transition_to(State.READY)

    def fail_for_good(self, error: KafkaError) -> None:
        """Send nothing any more, because of `error`."""
        if self.state is State.FATAL_ERROR:
            return
        self._transition_to(State.FATAL_ERROR)
        self.fatal_error = error
        self._log.error("The producer cannot go on and has to be closed: %s", error)

    # What may be sent.

    def may_drain(self, batch: ProducerBatch, now_ms: int) -> bool:
        """Return True if `batch`, which `next_of` gave, may be sent now."""
        if self.state is not State.READY:
            return False
        entry = self.sequences(batch.queue)
        topic_id = self._topic_id(batch.queue.tp.topic)
        if topic_id is not entry.topic_id:
            entry.note_topic_id(topic_id)
        if batch.has_sequence:
            return batch is entry.next_repetition(now_ms)
        if self._unsettled and batch.tp in self._unsettled:
            return False
        in_flight = entry.in_flight
        if (in_flight or entry.on_wire) and not entry.is_established(now_ms):
            return False
        if len(in_flight) >= _REMEMBERED_BATCHES:
            # Requests to a former leader count too: a repetition that the broker no longer remembers looks like a gap.
            return False
        # A new epoch begins only when nothing of the old one can arrive after it.
        return entry.is_of(self.identity) or not (in_flight or entry.on_wire)

    def next_of(self, queue: PartitionQueue, now_ms: int) -> ProducerBatch:
        """Return the batch whose turn it is in a queue with batches that were sent before."""
        first = queue.batches[0]
        repetition = self.sequences(queue).next_repetition(now_ms)
        return first if repetition is None or repetition.state is not BatchState.QUEUED else repetition

    def on_drain(self, batch: ProducerBatch) -> None:
        """`batch` is about to be sent: it gets its sequence, unless it has one from its first attempt."""
        entry = self.sequences(batch.queue)
        if not batch.has_sequence:
            if not entry.is_of(self.identity):
                entry.restart(self.identity)
            entry.assign(batch)
        entry.on_wire += 1

    # What came of it.

    def on_wire_ended(self, batch: ProducerBatch) -> None:
        """A request that carried `batch` is over."""
        self.sequences(batch.queue).on_wire -= 1

    def on_success(self, batch: ProducerBatch, base_offset: int, now_ms: int) -> list[ProducerBatch]:
        """The broker has `batch`, even if its sender was told that the time was up.

        Returns the queued batches that this proves to be written, and that the broker no longer knows itself.
        """
        entry = self.sequences(batch.queue)
        entry.acked(batch, base_offset, now_ms)
        entry.forget(batch)
        if not entry.in_flight or not entry.is_overtaken(entry.in_flight[0]):
            return []
        self._unsettled[batch.tp] = entry
        written = [other for other in entry.in_flight if other.forgotten and other.proven]
        for other in written:
            entry.forget(other)
        return written

    def is_written(self, batch: ProducerBatch, code: int) -> bool:
        """Return True if a refusal means that the broker has `batch` and no longer remembers it."""
        return code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.proven and batch.fate is Fate.UNKNOWN

    def can_retry(self, batch: ProducerBatch, code: int, error: KafkaError, log_start_offset: int) -> bool:
        """Return True if `batch` is to be sent again after `error`, when neither time nor retries are used up."""
        entry = self.sequences(batch.queue)
        if code == ErrorCode.UNKNOWN_PRODUCER_ID and log_start_offset == -1:
            return True  # the partition moved while the broker answered; a later answer will tell
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and batch.fate is Fate.UNKNOWN:
            self._unsettled[batch.tp] = entry
            # A broker that restarted says so of a batch that it has, if it is not the last one. Younger ones tell.
            batch.forgotten = not entry.is_disproved_by_refusal(batch)
            if batch.forgotten:
                return True
            batch.fate = Fate.NOT_WRITTEN
        if code in _WANTS_EPOCH and batch.fate is Fate.NOT_WRITTEN:
            if entry.is_overtaken(batch):
                return False
            if code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or entry.in_flight[:1] == [batch]:
                # Behind others it fits once those are written. But what is missing before the oldest never comes.
                if self._transactional:
                    return False  # a new epoch is the coordinator's to give, when the transaction has ended
                entry.broken = True
                self._unsettled[batch.tp] = entry
            return True
        return error.retriable

    def on_failure(self, batch: ProducerBatch, error: BaseException) -> None:
        """`batch` has failed for good, or was given up."""
        if isinstance(error, _FATAL) and error is not self.refusal:
            self.fail_for_good(error)
        entry = self.sequences(batch.queue)
        if entry.forget(batch) and self.fatal_error is None:
            self._unsettled[batch.tp] = entry

    def on_split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """`batch`, which is certainly not written, was too large: its parts share its sequences."""
        assert batch.fate is Fate.NOT_WRITTEN
        entry = self.sequences(batch.queue)
        entry.forget(batch)
        sequence = batch.base_sequence
        for part in parts:
            part.stamp(batch.producer_id, batch.producer_epoch, sequence)
            entry.insert(part)
            sequence = increment_sequence(sequence, part.builder.count)

    # Going on.

    def hopeless(self, now_ms: int) -> list[tuple[ProducerBatch, KafkaError]]:
        """Return the queued batches that have to fail, as nothing can be found out about them or done for them."""
        return [
            (batch, _hopeless_error(batch))
            for entry in self._unsettled.values()
            for batch in entry.hopeless(now_ms)
        ]

    def restart_where_needed(self) -> None:
        """Start a new epoch for the partitions whose leaders take nothing more of the present one."""
        if not self._unsettled or self.state is not State.READY:
            return
        restart = {}
        for tp, entry in list(self._unsettled.items()):
            if entry.is_settled:
                del self._unsettled[tp]
            elif entry.needs_restart and entry.can_restart:
                restart[tp] = entry
        if not restart:
            return
        # A partition that is an epoch behind, because others needed a new one, goes on with the present one.
        if self._transactional:
            restart = {tp: entry for tp, entry in restart.items() if not entry.is_of(self.identity)}
        elif any(entry.is_of(self.identity) for entry in restart.values()):
            self._bump_epoch()
        if not self.identity.is_valid:
            return
        for tp, entry in restart.items():
            self._log.info("%s starts again at sequence 0 of epoch %d", tp, self.identity.epoch)
            entry.restart(self.identity)
            del self._unsettled[tp]

    def _bump_epoch(self) -> None:
        if self.identity.epoch < _MAX_EPOCH:
            self.identity = ProducerIdAndEpoch(self.identity.producer_id, self.identity.epoch + 1)
            return
        self.identity = ProducerIdAndEpoch()
        self._transition_to(State.UNINITIALIZED)


def _hopeless_error(batch: ProducerBatch) -> KafkaError:
    if batch.fate is Fate.UNKNOWN:
        return OutOfOrderSequenceError(
            f"The leader does not know the records with sequence {batch.base_sequence} of producer "
            f"{batch.producer_id}, and no later answer shows that it has them"
        )
    return OutOfOrderSequenceError(
        f"The records with sequence {batch.base_sequence} of producer {batch.producer_id} were refused "
        f"({batch.last_error}), and later ones were written: the leader had lost its knowledge of the producer. "
        "Sending them now would change the order"
    )
