"""Every error code that a step of a transaction may be answered with, what becomes of it, and the next transaction.

The codes are those of Java's handlers (TransactionManager, Sender), of the comments in Kafka's schemas and of the
lists in its classes of responses, and for every step the unexpected and one that nobody knows.
tests/golden/test_transaction_errors.py compares all codes there are with what Java's producer did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Protocol

import attrs
import pytest

from kclient import ConsumerGroupMetadata, KafkaProducer, TopicPartition
from kclient.errors import (
    ErrorCode,
    Errors,
    KafkaError,
    ProducerFencedError,
    TransactionAbortableError,
)
from kclient.protocol.api_keys import ApiKeys

DEADLINE_S = 30.0
NOBODYS_CODE = 999
_E = ErrorCode


class Step(Enum):
    """The steps of a transaction, in their order."""

    FIND_TRANSACTION_COORDINATOR = auto()
    INIT_PRODUCER_ID = auto()
    ADD_PARTITIONS_TO_TXN = auto()
    PRODUCE = auto()
    ADD_OFFSETS_TO_TXN = auto()
    FIND_GROUP_COORDINATOR = auto()
    TXN_OFFSET_COMMIT = auto()
    COMMIT = auto()
    FIND_COORDINATOR_AGAIN = auto()
    """In the middle of a commit, as the coordinator is another one."""
    ABORT = auto()
    NEW_EPOCH = auto()
    """Behind an abort."""

    @property
    def api(self) -> ApiKeys:
        """The API of its request."""
        return _APIS[self]


_APIS = {
    Step.FIND_TRANSACTION_COORDINATOR: ApiKeys.FIND_COORDINATOR,
    Step.INIT_PRODUCER_ID: ApiKeys.INIT_PRODUCER_ID,
    Step.ADD_PARTITIONS_TO_TXN: ApiKeys.ADD_PARTITIONS_TO_TXN,
    Step.PRODUCE: ApiKeys.PRODUCE,
    Step.ADD_OFFSETS_TO_TXN: ApiKeys.ADD_OFFSETS_TO_TXN,
    Step.FIND_GROUP_COORDINATOR: ApiKeys.FIND_COORDINATOR,
    Step.TXN_OFFSET_COMMIT: ApiKeys.TXN_OFFSET_COMMIT,
    Step.COMMIT: ApiKeys.END_TXN,
    Step.FIND_COORDINATOR_AGAIN: ApiKeys.FIND_COORDINATOR,
    Step.ABORT: ApiKeys.END_TXN,
    Step.NEW_EPOCH: ApiKeys.INIT_PRODUCER_ID,
}


class Then(Enum):
    """The consequence of an error."""

    GOES_ON = auto()
    """The step is taken again, and nobody sees the error."""
    INIT_AGAIN = auto()
    """init_transactions() raises it, and can be called again."""
    ABORT = auto()
    """TransactionAbortableError because of it, and abort_transaction() makes room for the next transaction."""
    CLOSE = auto()
    """The error itself, from every call: the producer is closed, and a new one goes on."""


STEPS: dict[str, list[Step]] = {
    "TV1": list(Step),
    # Brokers add partitions and groups by themselves, and give a new epoch with each end.
    "TV2": [
        step
        for step in Step
        if step not in {Step.ADD_PARTITIONS_TO_TXN, Step.ADD_OFFSETS_TO_TXN, Step.NEW_EPOCH}
    ],
}
_COORDINATOR_PASSES = (
    _E.COORDINATOR_LOAD_IN_PROGRESS,
    _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_COORDINATOR,
    _E.CONCURRENT_TRANSACTIONS,
    _E.REQUEST_TIMED_OUT,
)
_FENCED = (_E.INVALID_PRODUCER_EPOCH, _E.PRODUCER_FENCED)
_FORGOTTEN = (_E.UNKNOWN_PRODUCER_ID, _E.INVALID_PRODUCER_ID_MAPPING)
_UNEXPECTED = (_E.UNKNOWN_SERVER_ERROR, _E.INVALID_REQUEST, NOBODYS_CODE)

TABLE: dict[Step, dict[Then, tuple[int, ...]]] = {
    Step.FIND_TRANSACTION_COORDINATOR: {
        Then.GOES_ON: (_E.COORDINATOR_LOAD_IN_PROGRESS, _E.COORDINATOR_NOT_AVAILABLE, _E.REQUEST_TIMED_OUT),
        Then.INIT_AGAIN: (_E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _E.TRANSACTION_ABORTABLE),
        Then.CLOSE: _UNEXPECTED,
    },
    Step.INIT_PRODUCER_ID: {
        Then.GOES_ON: _COORDINATOR_PASSES,
        Then.INIT_AGAIN: (
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _E.CLUSTER_AUTHORIZATION_FAILED,
            _E.TRANSACTION_ABORTABLE,
        ),
        Then.CLOSE: (
            *_FENCED,
            _E.INVALID_TRANSACTION_TIMEOUT,
            _E.INVALID_TXN_STATE,
            _E.INVALID_PRODUCER_ID_MAPPING,
            *_UNEXPECTED,
        ),
    },
    Step.ADD_PARTITIONS_TO_TXN: {
        Then.GOES_ON: (*_COORDINATOR_PASSES, _E.UNKNOWN_TOPIC_OR_PARTITION),
        Then.ABORT: (
            _E.TOPIC_AUTHORIZATION_FAILED,
            _E.TRANSACTION_ABORTABLE,
            *_FORGOTTEN,
            *_UNEXPECTED,
        ),
        Then.CLOSE: (*_FENCED, _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _E.INVALID_TXN_STATE),
    },
    Step.PRODUCE: {
        Then.GOES_ON: (
            _E.CORRUPT_MESSAGE,
            _E.UNKNOWN_TOPIC_OR_PARTITION,
            _E.LEADER_NOT_AVAILABLE,
            _E.NOT_LEADER_OR_FOLLOWER,
            _E.REQUEST_TIMED_OUT,
            _E.NETWORK_EXCEPTION,
            _E.NOT_ENOUGH_REPLICAS,
            _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            _E.CONCURRENT_TRANSACTIONS,
            _E.KAFKA_STORAGE_ERROR,
            _E.UNKNOWN_PRODUCER_ID,
            _E.FENCED_LEADER_EPOCH,
            _E.UNKNOWN_LEADER_EPOCH,
            _E.UNKNOWN_TOPIC_ID,
        ),
        Then.ABORT: (
            _E.MESSAGE_TOO_LARGE,
            _E.INVALID_TOPIC_EXCEPTION,
            _E.RECORD_LIST_TOO_LARGE,
            _E.INVALID_REQUIRED_ACKS,
            _E.TOPIC_AUTHORIZATION_FAILED,
            _E.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            _E.OUT_OF_ORDER_SEQUENCE_NUMBER,
            _E.INVALID_PRODUCER_EPOCH,
            _E.INVALID_TXN_STATE,
            _E.UNSUPPORTED_COMPRESSION_TYPE,
            _E.INVALID_RECORD,
            _E.TRANSACTION_ABORTABLE,
            *_UNEXPECTED,
        ),
        Then.CLOSE: (
            _E.CLUSTER_AUTHORIZATION_FAILED,
            _E.UNSUPPORTED_VERSION,
            _E.INVALID_PRODUCER_ID_MAPPING,
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _E.PRODUCER_FENCED,
        ),
    },
    Step.ADD_OFFSETS_TO_TXN: {
        Then.GOES_ON: _COORDINATOR_PASSES,
        Then.ABORT: (
            _E.INVALID_GROUP_ID,
            _E.GROUP_AUTHORIZATION_FAILED,
            _E.TRANSACTION_ABORTABLE,
            *_FORGOTTEN,
        ),
        Then.CLOSE: (
            *_FENCED,
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _E.INVALID_TXN_STATE,
            *_UNEXPECTED,
        ),
    },
    Step.FIND_GROUP_COORDINATOR: {
        Then.GOES_ON: (_E.COORDINATOR_LOAD_IN_PROGRESS, _E.COORDINATOR_NOT_AVAILABLE, _E.REQUEST_TIMED_OUT),
        Then.ABORT: (_E.GROUP_AUTHORIZATION_FAILED, _E.TRANSACTION_ABORTABLE),
        Then.CLOSE: (_E.INVALID_GROUP_ID, *_UNEXPECTED),
    },
    Step.TXN_OFFSET_COMMIT: {
        Then.GOES_ON: (*_COORDINATOR_PASSES, _E.UNKNOWN_TOPIC_OR_PARTITION, _E.UNKNOWN_TOPIC_ID),
        Then.ABORT: (
            _E.OFFSET_METADATA_TOO_LARGE,
            _E.ILLEGAL_GENERATION,
            _E.INVALID_GROUP_ID,
            _E.UNKNOWN_MEMBER_ID,
            _E.REBALANCE_IN_PROGRESS,
            _E.INVALID_COMMIT_OFFSET_SIZE,
            _E.TOPIC_AUTHORIZATION_FAILED,
            _E.GROUP_AUTHORIZATION_FAILED,
            _E.GROUP_ID_NOT_FOUND,
            _E.FENCED_INSTANCE_ID,
            _E.FENCED_MEMBER_EPOCH,
            _E.STALE_MEMBER_EPOCH,
            _E.TRANSACTION_ABORTABLE,
            *_FORGOTTEN,
        ),
        Then.CLOSE: (
            *_FENCED,
            _E.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            *_UNEXPECTED,
        ),
    },
    Step.COMMIT: {
        Then.GOES_ON: _COORDINATOR_PASSES,
        Then.ABORT: (_E.TRANSACTION_ABORTABLE, *_FORGOTTEN),
        Then.CLOSE: (
            *_FENCED,
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _E.INVALID_TXN_STATE,
            *_UNEXPECTED,
        ),
    },
    Step.FIND_COORDINATOR_AGAIN: {
        Then.GOES_ON: (_E.COORDINATOR_LOAD_IN_PROGRESS, _E.COORDINATOR_NOT_AVAILABLE, _E.REQUEST_TIMED_OUT),
        Then.ABORT: (_E.TRANSACTION_ABORTABLE,),
        Then.CLOSE: (_E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, *_UNEXPECTED),
    },
    Step.ABORT: {
        # Who is forgotten has nothing to abort, and gets a new epoch.
        Then.GOES_ON: (*_COORDINATOR_PASSES, *_FORGOTTEN),
        Then.ABORT: (_E.TRANSACTION_ABORTABLE,),
        Then.CLOSE: (
            *_FENCED,
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _E.INVALID_TXN_STATE,
            *_UNEXPECTED,
        ),
    },
    Step.NEW_EPOCH: {
        Then.GOES_ON: _COORDINATOR_PASSES,
        Then.ABORT: (
            _E.CLUSTER_AUTHORIZATION_FAILED,
            _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            _E.TRANSACTION_ABORTABLE,
        ),
        Then.CLOSE: (*_FENCED, _E.INVALID_TXN_STATE, _E.INVALID_PRODUCER_ID_MAPPING, *_UNEXPECTED),
    },
}
# What has to be refused for a step to be taken.
_BEFORE = {
    Step.FIND_COORDINATOR_AGAIN: (Step.COMMIT, _E.NOT_COORDINATOR),
    Step.NEW_EPOCH: (Step.PRODUCE, _E.INVALID_RECORD),
}
# Brokers that end each transaction with a new epoch say so of one that they have aborted (transaction.timeout.ms).
_ONLY_TV2: dict[tuple[Step, int], Then] = {(Step.COMMIT, _E.INVALID_TXN_STATE): Then.ABORT}


@attrs.frozen
class Case:
    """One code in the answer to one step."""

    version: str
    step: Step
    code: int
    then: Then

    def __str__(self) -> str:
        return f"{self.version}-{self.step.name}-{Errors.name_of(self.code)}"


def cases(version: str) -> Iterator[Case]:
    """All of them, for brokers of TV1 or TV2."""
    for step in STEPS[version]:
        for then, codes in TABLE[step].items():
            for code in codes:
                other = _ONLY_TV2.get((step, code)) if version == "TV2" else None
                yield Case(version, step, code, other or then)


def every(*chosen: Case) -> pytest.MarkDecorator:
    """Parametrize a test with cases."""
    return pytest.mark.parametrize("case", chosen, ids=str)


class Refusals(Protocol):
    """Somebody who answers a broker's requests with errors."""

    def refuse(self, step: Step, code: int) -> None:
        """Answer the next request of a step with `code`."""

    def refused(self) -> int:
        """Stop that; the number of requests of the last such step that were answered so."""


class Transactions:
    """Transactions of one producer after the other, all with the same transactional.id.

    `committed` returns the values that were committed since it was last called, when `last` is one of them;
    `offsets_of` returns the committed offsets of a group by partition, None if the brokers keep none.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        refusals: Refusals,
        committed: Callable[[bytes], list[bytes]],
        offsets_of: Callable[[str], dict[int, int]] | None = None,
    ) -> None:
        self._servers = servers
        self._topic = topic
        self._refusals = refusals
        self._committed = committed
        self._offsets_of = offsets_of
        self._version = ""
        self._number = 0
        self._producer: KafkaProducer[bytes, bytes] | None = None

    def run(self, case: Case) -> None:
        """Go through a transaction in which a step is refused, and through the next one."""
        try:
            self._run(case)
        except BaseException:
            # The cases after it are not to blame.
            self._refusals.refused()
            self.close()
            raise

    def _run(self, case: Case) -> None:
        if case.version != self._version:
            self.close()
            self._version = case.version
        self._number += 1
        group = f"g-{self._topic}-{self._number}"
        first = b"%d of %s" % (self._number, str(case).encode())
        after = b"next of " + first
        if case.step in {Step.FIND_TRANSACTION_COORDINATOR, Step.INIT_PRODUCER_ID}:
            self._begin_refused(case)
            was_committed = False
        else:
            self._transact_refused(case, first, group)
            was_committed = case.then is Then.GOES_ON and case.step not in {Step.ABORT, Step.NEW_EPOCH}
        producer = self._initialized()
        producer.begin_transaction()
        self._fill(producer, after, group, 1)
        producer.commit_transaction()
        assert self._committed(after) == ([first] if was_committed else []) + [after]
        if self._offsets_of is not None:
            expected = {1: self._number} | ({0: self._number} if was_committed else {})
            assert self._offsets_of(group) == expected

    def close(self) -> None:
        """Close the producer there is."""
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _begin_refused(self, case: Case) -> None:
        self.close()
        self._producer = producer = self._new()
        self._refusals.refuse(case.step, case.code)
        if case.then is Then.GOES_ON:
            producer.init_transactions()
        else:
            with pytest.raises(KafkaError) as caught:
                producer.init_transactions()
            self._assert_is_it(caught.value, case)
            if case.then is Then.INIT_AGAIN:
                producer.init_transactions()
            else:
                self._assert_over(producer, case)
        assert self._refusals.refused() == 1

    def _transact_refused(self, case: Case, value: bytes, group: str) -> None:
        producer = self._initialized()
        producer.begin_transaction()
        if case.step in _BEFORE:
            self._refusals.refuse(*_BEFORE[case.step])
        self._refusals.refuse(case.step, case.code)

        def transact() -> None:
            if case.step is Step.NEW_EPOCH:
                with pytest.raises(TransactionAbortableError):
                    self._fill(producer, value, group, 0)
            else:
                self._fill(producer, value, group, 0)
            if case.step in {Step.ABORT, Step.NEW_EPOCH}:
                producer.abort_transaction()
            else:
                producer.commit_transaction()

        if case.then is Then.GOES_ON:
            transact()
        else:
            with pytest.raises(KafkaError) as caught:
                transact()
            if case.then is Then.ABORT:
                assert type(caught.value) is TransactionAbortableError
                assert isinstance(caught.value.__cause__, KafkaError)
                self._assert_is_it(caught.value.__cause__, case)
                producer.abort_transaction()
            else:
                self._assert_is_it(caught.value, case)
                self._assert_over(producer, case)
        assert self._refusals.refused() == 1

    def _assert_is_it(self, error: KafkaError, case: Case) -> None:
        fenced = case.code == _E.PRODUCER_FENCED or (
            case.code == _E.INVALID_PRODUCER_EPOCH and case.step is not Step.PRODUCE
        )
        assert type(error) is (ProducerFencedError if fenced else Errors.error_class(case.code))
        assert fenced or error.code == case.code

    def _assert_over(self, producer: KafkaProducer[bytes, bytes], case: Case) -> None:
        for call in (
            producer.begin_transaction,
            producer.abort_transaction,
            producer.commit_transaction,
            producer.init_transactions,
            lambda: producer.send(self._topic, b"never", partition=0),
        ):
            with pytest.raises(KafkaError) as caught:
                call()
            self._assert_is_it(caught.value, case)
        self.close()

    def _fill(self, producer: KafkaProducer[bytes, bytes], value: bytes, group: str, partition: int) -> None:
        producer.send(self._topic, value, partition=0)
        producer.flush()
        offsets = {TopicPartition(self._topic, partition): self._number}
        producer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata(group))

    def _initialized(self) -> KafkaProducer[bytes, bytes]:
        if self._producer is None:
            self._producer = self._new()
            self._producer.init_transactions()
        return self._producer

    def _new(self) -> KafkaProducer[bytes, bytes]:
        return KafkaProducer(
            bootstrap_servers=self._servers,
            transactional_id=f"x-{self._topic}",
            linger_ms=0,
            max_block_ms=20_000,
            retry_backoff_ms=2,
            retry_backoff_max_ms=20,
            reconnect_backoff_ms=2,
        )
