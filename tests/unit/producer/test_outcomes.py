"""Error codes in the answers of coordinators at every step of a transaction, and the next one, which is clean."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.producer.transactions import (
    GROUP,
    LOST,
    UNHEARD,
    Call,
    TransactionModel,
    next_transaction_is_clean,
    send_offsets,
)
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    ErrorCode,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionalIdAuthorizationError,
    UnknownServerError,
)
from kclient.producer.internals.transactions.state import TransactionState
from kclient.protocol.api_keys import ApiKeys

_API_KEYS = {
    True: [ApiKeys.TXN_OFFSET_COMMIT, ApiKeys.END_TXN],
    False: [
        ApiKeys.ADD_PARTITIONS_TO_TXN,
        ApiKeys.ADD_OFFSETS_TO_TXN,
        ApiKeys.TXN_OFFSET_COMMIT,
        ApiKeys.END_TXN,
    ],
}
_CASES = [(by_broker, api_key) for by_broker, keys in _API_KEYS.items() for api_key in keys]
EVERY_STEP = pytest.mark.parametrize(
    ("by_broker", "api_key"), _CASES, ids=[f"{'TV2' if b else 'TV1'}-{k.name}" for b, k in _CASES]
)


def one_transaction(m: TransactionModel) -> None:
    m.send(b"a")
    m.rounds(2)
    send_offsets(m)
    m.commit()


_PASSING = [
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.REQUEST_TIMED_OUT,
    LOST,
    UNHEARD,
]


@EVERY_STEP
@pytest.mark.parametrize("answer", _PASSING)
def test_what_passes_is_asked_again(by_broker: bool, api_key: ApiKeys, answer: int | str) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    m.coordinator.script(api_key, answer, answer)
    one_transaction(m)
    assert m.coordinator.ended == [True] or (answer == LOST and not by_broker)
    assert set(m.coordinator.ended) == {True}
    assert m.coordinator.committed == {("in", 0): 5}
    before = len(m.coordinator.ended)
    m.transactions.begin()
    m.send(b"next")
    m.commit()
    assert m.coordinator.ended[before:] == [True]


@EVERY_STEP
@pytest.mark.parametrize("code", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED])
def test_a_newer_producer_of_the_name_ends_this_one(by_broker: bool, api_key: ApiKeys, code: int) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    m.coordinator.script(api_key, code)
    with pytest.raises(ProducerFencedError, match=r"transactional\.id=x"):
        one_transaction(m)
    for call in (m.transactions.begin, m.transactions.check_send, m.commit, m.abort):
        with pytest.raises(ProducerFencedError):
            call()


_ABORTABLE = {
    ApiKeys.ADD_PARTITIONS_TO_TXN: [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
    ApiKeys.ADD_OFFSETS_TO_TXN: [
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    ],
    ApiKeys.TXN_OFFSET_COMMIT: [
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTION_ABORTABLE,
    ],
    ApiKeys.END_TXN: [
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    ],
}
_ABORTABLE_CASES = [
    (by_broker, api_key, code) for by_broker, api_key in _CASES for code in _ABORTABLE[api_key]
]


@pytest.mark.parametrize(
    ("by_broker", "api_key", "code"),
    _ABORTABLE_CASES,
    ids=[f"{'TV2' if b else 'TV1'}-{k.name}-{c.name}" for b, k, c in _ABORTABLE_CASES],
)
def test_what_ends_one_transaction_leaves_the_next_one_clean(
    by_broker: bool, api_key: ApiKeys, code: int
) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    m.coordinator.script(api_key, code)
    with pytest.raises(TransactionAbortableError) as caught:
        one_transaction(m)
    assert isinstance(caught.value.__cause__, KafkaError)
    assert caught.value.__cause__.code == code
    m.abort()
    next_transaction_is_clean(m)


_FATAL_CASES = [
    (by_broker, api_key, code, error)
    for by_broker, api_key in _CASES
    for code, error in (
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TransactionalIdAuthorizationError),
        (ErrorCode.INVALID_TXN_STATE, InvalidTxnStateError),
    )
    # There the broker has aborted it, see below.
    if not (by_broker and api_key is ApiKeys.END_TXN and code == ErrorCode.INVALID_TXN_STATE)
]


@pytest.mark.parametrize(
    ("by_broker", "api_key", "code", "expected"),
    _FATAL_CASES,
    ids=[f"{'TV2' if b else 'TV1'}-{k.name}-{c.name}" for b, k, c, _ in _FATAL_CASES],
)
def test_what_is_wrong_with_the_producer_ends_it(
    by_broker: bool, api_key: ApiKeys, code: int, expected: type[KafkaError]
) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    m.coordinator.script(api_key, code)
    with pytest.raises(expected):
        one_transaction(m)
    assert m.transactions.state is TransactionState.FATAL_ERROR
    late = m.send(b"late")
    m.run(2)
    assert late.exception(0) is not None


def test_a_transaction_that_the_broker_has_aborted_is_no_end_of_the_producer() -> None:
    m = TransactionModel().open()
    m.coordinator.script(ApiKeys.END_TXN, ErrorCode.INVALID_TXN_STATE)
    with pytest.raises(TransactionAbortableError, match=r"transaction\.timeout\.ms"):
        one_transaction(m)
    m.abort()
    next_transaction_is_clean(m)


def test_an_abort_that_the_broker_cannot_follow_is_the_end_of_the_producer() -> None:
    m = TransactionModel().open()
    m.coordinator.script(ApiKeys.END_TXN, ErrorCode.INVALID_TXN_STATE)
    m.send(b"a")
    m.rounds(2)
    with pytest.raises(InvalidTxnStateError):
        m.abort()


def test_an_unknown_error_of_a_commit_is_no_commit() -> None:
    m = TransactionModel().open()
    m.coordinator.script(ApiKeys.END_TXN, ErrorCode.UNKNOWN_SERVER_ERROR)
    with pytest.raises(KafkaError):
        one_transaction(m)
    assert m.transactions.state is TransactionState.FATAL_ERROR


def test_a_commit_without_an_answer_is_followed_by_a_new_epoch_where_brokers_give_none() -> None:
    """KAFKA-17754: the request that had no answer may come later, and would end the next transaction."""
    m = TransactionModel(by_broker=False).open()
    m.coordinator.script(ApiKeys.END_TXN, UNHEARD)
    m.send(b"a")
    m.commit()
    kinds = [sent.request.api_key for sent in m.client.sent]
    assert kinds[-1] is ApiKeys.INIT_PRODUCER_ID
    assert kinds.count(ApiKeys.END_TXN) == 2
    next_transaction_is_clean(m)


@pytest.mark.parametrize("api_key", [ApiKeys.FIND_COORDINATOR, ApiKeys.INIT_PRODUCER_ID])
@pytest.mark.parametrize(
    "code", [ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
)
def test_init_transactions_can_be_called_again_where_there_is_nothing_to_abort(
    api_key: ApiKeys, code: int
) -> None:
    m = TransactionModel()
    m.coordinator.script(api_key, code)
    with pytest.raises(KafkaError) as caught:
        m.ended(Call(m.transactions.initialize()))
    assert caught.value.code == code
    m.ended(Call(m.transactions.initialize()))
    next_transaction_is_clean(m)


def test_a_coordinator_that_is_refused_in_a_transaction_may_be_the_end_of_this_one_alone() -> None:
    m = TransactionModel().open()
    m.coordinator.script(ApiKeys.FIND_COORDINATOR, ErrorCode.TRANSACTION_ABORTABLE)
    with pytest.raises(TransactionAbortableError) as caught:
        one_transaction(m)
    assert isinstance(caught.value.__cause__, TransactionAbortableError)
    m.abort()
    next_transaction_is_clean(m)


def test_every_later_call_knows_the_code_that_nobody_knows() -> None:
    m = TransactionModel().open()
    m.coordinator.script(ApiKeys.END_TXN, 999)
    with pytest.raises(KafkaError) as caught:
        one_transaction(m)
    assert caught.value.code == 999
    with pytest.raises(KafkaError) as caught:
        m.transactions.begin()
    assert caught.value.code == 999


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # Nothing is left that could be aborted.
        (ErrorCode.TRANSACTION_ABORTABLE, KafkaError),
        (ErrorCode.PRODUCER_FENCED, ProducerFencedError),
        (ErrorCode.UNKNOWN_SERVER_ERROR, UnknownServerError),
    ],
)
def test_a_commit_that_is_done_succeeds_though_no_new_epoch_can_be_had_behind_it(
    code: int, expected: type[KafkaError]
) -> None:
    m = TransactionModel(by_broker=False).open()
    m.coordinator.script(ApiKeys.END_TXN, UNHEARD)
    m.coordinator.script(ApiKeys.INIT_PRODUCER_ID, code)
    m.send(b"a")
    m.commit()
    assert m.coordinator.ended == [True]
    for call in (m.transactions.begin, m.transactions.check_send, m.commit, m.abort):
        with pytest.raises(KafkaError) as caught:
            call()
        assert type(caught.value) is expected


@pytest.mark.parametrize(
    "code", [ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
)
def test_an_abort_whose_new_epoch_is_refused_can_be_asked_for_once_more(code: int) -> None:
    m = TransactionModel(by_broker=False).open()
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.coordinator.script(ApiKeys.INIT_PRODUCER_ID, code)
    with pytest.raises(TransactionAbortableError):
        one_transaction(m)
    with pytest.raises(TransactionAbortableError):
        m.abort()
    m.abort()
    next_transaction_is_clean(m)


_E = ErrorCode
# What is worst decides, wherever it stands.
_SEVERAL: list[tuple[dict[int, int], type[KafkaError] | None, str]] = [
    ({0: _E.NONE, 1: _E.NOT_COORDINATOR}, None, ""),
    ({0: _E.PRODUCER_FENCED, 1: _E.TOPIC_AUTHORIZATION_FAILED}, ProducerFencedError, "Another producer"),
    ({0: _E.NOT_COORDINATOR, 1: _E.PRODUCER_FENCED}, ProducerFencedError, "Another producer"),
    ({0: _E.NOT_COORDINATOR, 1: _E.TOPIC_AUTHORIZATION_FAILED}, TransactionAbortableError, "-1 in"),
]
# The broker adds all or none, and says of the others that they were not tried.
_ALL_OR_NONE: list[tuple[dict[int, int], type[KafkaError] | None, str]] = [
    ({0: _E.OPERATION_NOT_ATTEMPTED, 1: _E.TOPIC_AUTHORIZATION_FAILED}, TransactionAbortableError, "-1 in"),
    ({0: _E.TOPIC_AUTHORIZATION_FAILED, 1: _E.OPERATION_NOT_ATTEMPTED}, TransactionAbortableError, "-0 in"),
    ({0: _E.UNKNOWN_TOPIC_OR_PARTITION, 1: _E.OPERATION_NOT_ATTEMPTED}, None, ""),
]


@pytest.mark.parametrize(("codes", "expected", "told"), _SEVERAL + _ALL_OR_NONE)
def test_the_worst_code_decides_when_partitions_are_refused_for_several_reasons(
    codes: dict[int, int], expected: type[KafkaError] | None, told: str
) -> None:
    m = TransactionModel(by_broker=False).open()
    m.coordinator.refuse_partitions(codes)
    futures = [m.send(b"a", partition=0), m.send(b"b", partition=1)]
    assert_ends(m, m.commit, expected, told)
    m.run(2)
    assert [future.exception(0) is None for future in futures] == [expected is None] * 2


@pytest.mark.parametrize("by_broker", [True, False], ids=["TV2", "TV1"])
@pytest.mark.parametrize(("codes", "expected", "told"), _SEVERAL)
def test_the_worst_code_decides_when_offsets_are_refused_for_several_reasons(
    by_broker: bool, codes: dict[int, int], expected: type[KafkaError] | None, told: str
) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    m.coordinator.refuse_partitions(codes)
    offsets = {TopicPartition("in", number): OffsetAndMetadata(5) for number in range(2)}
    assert_ends(m, lambda: m.ended(Call(m.transactions.send_offsets(offsets, GROUP))), expected, told)


def assert_ends(
    m: TransactionModel, action: Callable[[], object], expected: type[KafkaError] | None, told: str
) -> None:
    """Assert that `action` raises what is expected, and that the next transaction is clean if there can be one."""
    if expected is None:
        action()
        return
    with pytest.raises(expected, match=told):
        action()
    if expected is TransactionAbortableError:
        m.abort()
        next_transaction_is_clean(m)
