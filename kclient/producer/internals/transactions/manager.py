"""TransactionManager: the transactions of a producer, from `begin_transaction` to their end at the coordinator."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import attrs

from kclient.client.request_sender import NEVER
from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AuthorizationError,
    ClusterAuthorizationError,
    ErrorCode,
    IllegalStateError,
    InvalidPidMappingError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
)
from kclient.producer.internals.idempotence.manager import IdempotenceManager
from kclient.producer.internals.idempotence.sequences import ProducerIdAndEpoch
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.producer.internals.queued_batches import QueuedBatches
from kclient.producer.internals.transactions.application_calls import ApplicationCalls
from kclient.producer.internals.transactions.coordinator_calls import CoordinatorCalls, Task
from kclient.producer.internals.transactions.state import VALID_TRANSITIONS, TransactionState
from kclient.producer.internals.transactions.tasks import AbortableFailure, FatalFailure, TransactionTasks
from kclient.utils.log_context import LogContext, Logger
from kclient.utils.steps import Steps

_S = TransactionState
_SEND_OFFSETS = "send_offsets_to_transaction()"
_TRANSACTION_VERSION = "transaction.version"
_EPOCH_GROWS = 2
"""The transaction.version from which brokers make partitions part of a transaction by themselves (KIP-890)."""
_FORGOTTEN_CODES = frozenset({ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING})

# What is wrong with the producer, and not with one transaction.
_FATAL = (
    ClusterAuthorizationError,
    TransactionalIdAuthorizationError,
    ProducerFencedError,
    UnsupportedVersionError,
    InvalidPidMappingError,
)


@attrs.frozen
class _Offsets:
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    group: ConsumerGroupMetadata


@attrs.define(kw_only=True, eq=False, repr=False)
class TransactionManager:
    """The state of a transactional producer.

    The application's calls come from any thread and are steps that wait for their outcome, for max.block.ms at most:
    then, and after a Ctrl-C, the same call goes on waiting for it. The rest belongs to the I/O thread, which asks the
    coordinators, one thing at a time. State changes under `_lock`, which is never held while anybody waits.
    """

    transactional_id: str
    _idempotence: IdempotenceManager
    _queued: QueuedBatches
    _calls: ApplicationCalls
    _coordinators: CoordinatorCalls
    _tasks: TransactionTasks
    _finalized_level: Callable[[str], int]
    _learn_topic: Callable[[str], None]
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _lock: threading.RLock = attrs.field(init=False)
    state: TransactionState = attrs.field(default=_S.UNINITIALIZED, init=False)
    """To be read, changed by the methods."""
    error: KafkaError | None = attrs.field(default=None, init=False)
    """The reason of ABORTABLE_ERROR or FATAL_ERROR."""
    by_broker: bool = attrs.field(default=False, init=False)
    """True if brokers make partitions part of the present transaction by themselves, and end it with a new epoch."""
    # The rest is the I/O thread's.
    _offsets: _Offsets | None = attrs.field(default=None, init=False)
    _wanted: set[TopicPartition] = attrs.field(factory=set, init=False)
    _added: set[TopicPartition] = attrs.field(factory=set, init=False)
    _groups: set[str] = attrs.field(factory=set, init=False)
    _started: bool = attrs.field(default=False, init=False)
    _carried: int = attrs.field(default=0, init=False)
    _needs_epoch: bool = attrs.field(default=False, init=False)
    _ending: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._lock = self._calls.lock
        self._log = self._log_context.logger(__name__)

    # The application's side.

    def initialize(self) -> Steps[None]:
        """Get an id and an epoch, fence producers of the same name, and end what they left open."""
        with self._lock:
            call = self._calls.resumed("init_transactions()")
            if call is None:
                self._check("init_transactions()", _S.UNINITIALIZED)
                self._transition_to(_S.INITIALIZING)
                call = self._calls.begin("init_transactions()")
        yield from self._calls.wait(call)

    def begin(self) -> None:
        """Begin a transaction."""
        with self._lock:
            self._calls.refuse_other("begin_transaction()")
            self._check("begin_transaction()", _S.READY)
            self.by_broker = self._finalized_level(_TRANSACTION_VERSION) >= _EPOCH_GROWS
            self._transition_to(_S.IN_TRANSACTION)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> Steps[None]:
        """Make the offsets of a group part of the transaction."""
        name = _SEND_OFFSETS
        with self._lock:
            call = self._calls.resumed(name)
            if call is None:
                self._check(name, _S.IN_TRANSACTION)
                if not offsets:
                    return
                self._offsets = _Offsets(offsets, group)
                call = self._calls.begin(name)
        yield from self._calls.wait(call)

    def complete(self, *, commit: bool) -> Steps[None]:
        """Commit or abort, with everything that was sent in the transaction."""
        name = "commit_transaction()" if commit else "abort_transaction()"
        with self._lock:
            if not commit:
                # Nobody asks for their outcome any more.
                self._calls.give_up(_SEND_OFFSETS, TransactionAbortedError())
            call = self._calls.resumed(name)
            if call is None:
                if commit:
                    self._check(name, _S.IN_TRANSACTION)
                else:
                    self._check(name, _S.IN_TRANSACTION, _S.ABORTABLE_ERROR)
                self._transition_to(_S.COMMITTING if commit else _S.ABORTING)
                call = self._calls.begin(name)
        yield from self._calls.wait(call)

    def check_send(self) -> None:
        """Raise what keeps a record from being sent now: no transaction, or one that failed."""
        if self.state is not _S.IN_TRANSACTION:
            with self._lock:
                self._check("send()", _S.IN_TRANSACTION)

    @property
    def is_open(self) -> bool:
        """True while there is a transaction that was neither committed nor aborted yet."""
        return self.state in {_S.IN_TRANSACTION, _S.ABORTABLE_ERROR}

    def _check(self, name: str, *allowed: TransactionState) -> None:
        if self.state in allowed:
            return
        if self.state is _S.FATAL_ERROR:
            error = self.error
            assert error is not None
            raise error.reworded(f"The producer cannot go on and has to be closed: {error}") from error
        if self.state is _S.ABORTABLE_ERROR:
            raise self._abortable(name)
        raise IllegalStateError(f"{name} does not fit the state of the producer: {_HINTS[self.state]}")

    def _abortable(self, name: str) -> TransactionAbortableError:
        return TransactionAbortableError(
            f"{name}: the transaction of transactional.id={self.transactional_id} has to be aborted, call "
            f"abort_transaction(): {self.error}"
        ).because_of(self.error)

    # The I/O thread's side.

    def poll(self, now_ms: int) -> int:
        """Ask what is to be asked of coordinators; returns after how many ms to call again at the latest."""
        if self.state is _S.FATAL_ERROR:
            self._coordinators.cancel()
            return NEVER
        try:
            if self.state is _S.ABORTING:
                self._go_on_aborting()
            elif self._coordinators.idle:
                self._begin_next()
            busy = not self._coordinators.idle
            wait_ms = self._coordinators.poll(now_ms)
            # What has an outcome now lets batches go, or the next task begin.
            return 0 if busy and self._coordinators.idle else wait_ms
        except AbortableFailure as failure:
            self._fail(failure.error)
        except FatalFailure as failure:
            self._fail_for_good(failure.error)
        except Exception as error:
            self._log.exception("A transaction met an unexpected error")
            self._fail_for_good(error if isinstance(error, KafkaError) else KafkaError(repr(error)))
        return 0

    @property
    def at_rest(self) -> bool:
        """True if nothing is under way that has to end before the producer may."""
        return self.state not in {_S.COMMITTING, _S.ABORTING}

    @property
    def refuses_queued(self) -> KafkaError | None:
        """The error for batches that wait to be sent, if they are not to be sent any more."""
        if self.state is _S.ABORTING:
            return TransactionAbortedError()
        return self._abortable("send()") if self.state is _S.ABORTABLE_ERROR else None

    def may_send(self, tp: TopicPartition) -> bool:
        """Return True if batches of `tp` may be sent; else it is made part of the transaction, if there is one."""
        if self.state is not _S.IN_TRANSACTION and self.state is not _S.COMMITTING:
            return False
        if self.by_broker or tp in self._added:
            return True
        self._wanted.add(tp)
        return False

    def on_drain(self) -> None:
        """A batch is about to be sent."""
        self._carried += 1
        self._started = True

    def on_wire_ended(self) -> None:
        """A request that carried a batch is over."""
        self._carried -= 1

    def on_batch_failed(self, batch: ProducerBatch, error: BaseException) -> None:
        """A batch was given up."""
        if batch.has_sequence:
            # The next one has no place behind a gap.
            self._needs_epoch = True
        if isinstance(error, _FATAL):
            self._fail_for_good(error)
        elif self.state is _S.IN_TRANSACTION or self.state is _S.COMMITTING:
            self._fail(error if isinstance(error, KafkaError) else KafkaError(repr(error)))

    def on_refused(self, error: KafkaError) -> None:
        """A record of the transaction cannot be sent: what is committed would not be all of it (KAFKA-9279)."""
        if self.state is _S.IN_TRANSACTION:
            self._fail(error)

    def abort_open(self) -> None:
        """Abort the transaction that the application has left open at the end of the producer."""
        with self._lock:
            if self.is_open:
                self._log.info("The producer is closed and aborts the transaction that is open")
                self._transition_to(_S.ABORTING)

    def close(self, error: BaseException) -> None:
        """Nobody asks anything any more."""
        with self._lock:
            self._calls.end(error)

    def _begin_next(self) -> None:
        state = self.state
        if state is _S.INITIALIZING:
            self._coordinators.begin(self._initialize())
        elif state is _S.IN_TRANSACTION or state is _S.COMMITTING:
            if self._wanted:
                self._coordinators.begin(self._add_wanted())
            elif self._offsets is not None:
                self._coordinators.begin(self._send_offsets(self._offsets))
            elif state is _S.COMMITTING:
                self._begin_end(committed=True)

    def _go_on_aborting(self) -> None:
        if self._ending:
            return
        if not self._coordinators.idle:
            if not self._coordinators.cancel():
                return
            # It may have reached the coordinator.
            self._needs_epoch = True
        self._begin_end(committed=False)

    def _begin_end(self, *, committed: bool) -> None:
        # Nothing that may still be written must come behind the marker.
        if not self._queued.incomplete and not self._carried:
            self._coordinators.begin(self._end(committed=committed))

    def _initialize(self) -> Task:
        try:
            identity = yield from self._tasks.init_producer_id(ProducerIdAndEpoch())
        except (AbortableFailure, FatalFailure) as failure:
            if isinstance(failure, FatalFailure) and not isinstance(failure.error, AuthorizationError):
                raise
            # Rules come and go, and there is nothing yet to abort: whoever wants it may try again.
            with self._lock:
                self._transition_to(_S.UNINITIALIZED)
                self._calls.end(failure.error)
            return
        self._idempotence.adopt(identity)
        self._log.info(
            "Producer id %d with epoch %d for transactional.id=%s",
            identity.producer_id,
            identity.epoch,
            self.transactional_id,
        )
        self._ready()

    def _add_wanted(self) -> Task:
        wanted = set(self._wanted)
        self._tasks.in_doubt = False
        try:
            yield from self._tasks.add_partitions(
                self._idempotence.identity, wanted, is_first=not self._started
            )
        finally:
            self._needs_epoch = self._needs_epoch or self._tasks.in_doubt
        self._started = True
        self._added |= wanted
        self._wanted -= wanted

    def _send_offsets(self, sent: _Offsets) -> Task:
        identity = self._idempotence.identity
        group_id = sent.group.group_id
        self._tasks.in_doubt = False
        try:
            if not self.by_broker and group_id not in self._groups:
                yield from self._tasks.add_offsets(identity, group_id, is_first=not self._started)
                self._groups.add(group_id)
            self._started = True
            for tp in sent.offsets:
                self._learn_topic(tp.topic)
            yield from self._tasks.commit_offsets(identity, sent.offsets, sent.group, implicit=self.by_broker)
        finally:
            self._needs_epoch = self._needs_epoch or self._tasks.in_doubt
        with self._lock:
            self._offsets = None
            self._calls.end(None)

    def _end(self, *, committed: bool) -> Task:
        identity = self._idempotence.identity
        self._tasks.in_doubt = forgotten = False
        self._ending = True
        try:
            if self._started:
                try:
                    identity = yield from self._tasks.end(identity, committed=committed, bumps=self.by_broker)
                except AbortableFailure as failure:
                    # There is nothing to abort for a coordinator that has forgotten the producer.
                    forgotten = not committed and failure.error.code in _FORGOTTEN_CODES
                    if not forgotten:
                        raise
                except FatalFailure as failure:
                    # The coordinator has aborted it, as asking it to abort will show.
                    if not (
                        committed and self.by_broker and failure.error.code == ErrorCode.INVALID_TXN_STATE
                    ):
                        raise
                    raise AbortableFailure(
                        InvalidTxnStateError(
                            f"{failure.error} It was aborted by the broker; was it open for longer than "
                            "transaction.timeout.ms?"
                        )
                    ) from failure
            # Where the epoch does not grow by itself, a request without an answer may still be on its way, and would
            # end the next transaction (KAFKA-17754): it is shut out by a new epoch.
            in_doubt = self._needs_epoch or self._tasks.in_doubt
            if forgotten or (in_doubt and not self.by_broker):
                identity = yield from self._new_epoch(identity, committed=committed)
                if identity is None:
                    return
        finally:
            self._ending = False
        self._idempotence.adopt(identity)
        self._ready()

    def _new_epoch(self, identity: ProducerIdAndEpoch, *, committed: bool) -> Task:
        """Return the identity for the next transaction, None if it cannot be had and this one is committed."""
        try:
            return (yield from self._tasks.init_producer_id(identity))
        except (AbortableFailure, FatalFailure) as failure:
            error = failure.error
            if not committed:
                if isinstance(error, AuthorizationError):
                    # Rules come and go: whoever wants it may abort once more.
                    raise AbortableFailure(error) from failure
                raise
            if isinstance(failure, AbortableFailure):
                # There is nothing left that could be aborted.
                error = KafkaError(f"There is no new epoch for the next transaction: {error}").because_of(
                    error
                )
        # What is committed is no failure: whoever took it for one would send everything again.
        with self._lock:
            self._calls.end(None)
            self._fail_for_good(error)
        return None

    def _ready(self) -> None:
        with self._lock:
            self._wanted.clear()
            self._added.clear()
            self._groups.clear()
            self._offsets = None
            self._started = self._needs_epoch = False
            self.error = None
            self._transition_to(_S.READY)
            self._calls.end(None)

    def _fail(self, error: KafkaError) -> None:
        with self._lock:
            if self.state is _S.FATAL_ERROR or self.state is _S.ABORTABLE_ERROR:
                return
            if _S.ABORTABLE_ERROR not in VALID_TRANSITIONS[self.state]:
                self._fail_for_good(error)
                return
            self._needs_epoch = True
            self._offsets = None
            self._log.warning("The transaction has to be aborted: %s", error)
            self.error = error
            self._transition_to(_S.ABORTABLE_ERROR)
            self._calls.end(self._abortable(self._calls.name))

    def _fail_for_good(self, error: KafkaError) -> None:
        with self._lock:
            if self.state is _S.FATAL_ERROR:
                return
            self.error = error
            self._transition_to(_S.FATAL_ERROR)
            self._idempotence.fail_for_good(error)
            self._calls.end(error)

    def _transition_to(self, state: TransactionState) -> None:
        if state not in VALID_TRANSITIONS[self.state]:
            raise IllegalStateError(f"A transaction cannot go from {self.state.name} to {state.name}")
        self.state = state


_HINTS = {
    _S.UNINITIALIZED: "call init_transactions() once before the first transaction",
    _S.INITIALIZING: "init_transactions() has no outcome yet; call it again",
    _S.READY: "there is no transaction; call begin_transaction()",
    _S.IN_TRANSACTION: "a transaction is open; commit_transaction() or abort_transaction() ends it",
    _S.COMMITTING: "commit_transaction() is under way",
    _S.ABORTING: "abort_transaction() is under way",
}
