"""Transactions by themselves: states, calls, and what goes out to brokers and coordinators."""

from __future__ import annotations

import pytest

from harness.producer.model import sequences
from harness.producer.transactions import (
    GROUP,
    OFFSETS,
    Call,
    TransactionModel,
    next_transaction_is_clean,
    send_offsets,
)
from kclient.client.api_versions import NodeApiVersions
from kclient.errors import (
    BufferExhaustedError,
    ErrorCode,
    IllegalStateError,
    KafkaError,
    ProducerFencedError,
    RecordTooLargeError,
    SerializationError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionalIdAuthorizationError,
    UnsupportedVersionError,
)
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.placement import Placement
from kclient.producer.internals.send_many import send_many
from kclient.producer.internals.transactions.state import VALID_TRANSITIONS, TransactionState
from kclient.protocol.api_keys import ApiKeys
from kclient.record import iter_batches
from kclient.utils.steps import run

BOTH = pytest.mark.parametrize("by_broker", [True, False], ids=["TV2", "TV1"])


@BOTH
def test_records_and_offsets_are_committed_together(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    futures = [m.send(b"a", partition=0), m.send(b"b", partition=1)]
    send_offsets(m)
    m.commit()
    assert [future.exception(0) for future in futures] == [None, None]
    assert m.coordinator.ended == [True]
    assert m.coordinator.committed == {("in", 0): 5}
    next_transaction_is_clean(m)


@BOTH
def test_batches_say_that_they_belong_to_a_transaction(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    m.send(b"a")
    m.commit()
    (sent,) = m.asked(ApiKeys.PRODUCE)
    assert sent.message.transactional_id == "x"
    assert sent.version >= 12 if by_broker else sent.version <= 11
    (batch,) = iter_batches(memoryview(sent.message.topic_data[0].partition_data[0].records))
    assert batch.is_transactional


def test_brokers_that_know_how_are_not_asked_to_add_partitions_and_groups() -> None:
    m = TransactionModel().open()
    m.send(b"a")
    send_offsets(m)
    m.commit()
    assert not m.asked(ApiKeys.ADD_PARTITIONS_TO_TXN)
    assert not m.asked(ApiKeys.ADD_OFFSETS_TO_TXN)
    assert m.asked(ApiKeys.TXN_OFFSET_COMMIT)[0].version >= 5
    assert m.asked(ApiKeys.END_TXN)[0].version >= 5


def test_other_brokers_are_asked_once_for_each_partition_and_group_before_anything_is_sent_there() -> None:
    m = TransactionModel(by_broker=False).open()
    for value in (b"a", b"b"):
        m.send(value, partition=0)
        m.rounds(1)
    send_offsets(m)
    send_offsets(m)
    m.commit()
    assert len(m.asked(ApiKeys.ADD_PARTITIONS_TO_TXN)) == 1
    assert len(m.asked(ApiKeys.ADD_OFFSETS_TO_TXN)) == 1
    kinds = [sent.request.api_key for sent in m.client.sent]
    assert kinds.index(ApiKeys.ADD_PARTITIONS_TO_TXN) < kinds.index(ApiKeys.PRODUCE)
    assert kinds.index(ApiKeys.ADD_OFFSETS_TO_TXN) < kinds.index(ApiKeys.TXN_OFFSET_COMMIT)
    assert max(sent.version for sent in m.asked(ApiKeys.TXN_OFFSET_COMMIT)) < 5


def test_each_transaction_has_an_epoch_of_its_own_where_brokers_give_one() -> None:
    m = TransactionModel().open()
    for value in (b"a", b"b"):
        m.send(value)
        m.commit()
        m.transactions.begin()
    assert [sequences(sent) for sent in m.asked(ApiKeys.PRODUCE)] == [[(0, 0, 0)], [(1, 0, 0)]]


def test_sequences_go_on_under_one_epoch_where_brokers_give_none() -> None:
    m = TransactionModel(by_broker=False).open()
    for value in (b"a", b"b"):
        m.send(value)
        m.commit()
        m.transactions.begin()
    assert [sequences(sent) for sent in m.asked(ApiKeys.PRODUCE)] == [[(0, 0, 0)], [(0, 1, 1)]]


@BOTH
def test_a_transaction_without_anything_costs_no_request(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    m.commit()
    m.transactions.begin()
    m.abort()
    assert not m.asked(ApiKeys.END_TXN)


@BOTH
def test_abort_gives_up_what_was_not_sent(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    future = m.send(b"a")
    m.abort()
    assert isinstance(future.exception(0), TransactionAbortedError)
    assert not m.asked(ApiKeys.PRODUCE)
    next_transaction_is_clean(m)


@BOTH
def test_abort_waits_for_what_is_under_way(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    future = m.send(b"a")
    while not m.waiting:
        m.run(advance_ms=20)
        if not m.waiting:
            m.answer_all()
    call = Call(m.transactions.complete(commit=False))
    m.run(5)
    assert not m.asked(ApiKeys.END_TXN), "the marker must not overtake the batch"
    m.ended(call)
    assert future.exception(0) is None
    assert m.coordinator.ended == [False]
    next_transaction_is_clean(m)


@BOTH
def test_commit_does_not_linger(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker, linger_ms=60_000).open()
    m.send(b"a")
    m.commit()
    assert m.coordinator.ended == [True]


@BOTH
@pytest.mark.parametrize(
    "code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
)
def test_a_record_that_fails_lets_its_transaction_only_be_aborted(by_broker: bool, code: int) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    m.broker.fail("t", code)
    lost, other = m.send(b"a", partition=0), m.send(b"b", partition=1)
    with pytest.raises(TransactionAbortableError) as caught:
        m.commit()
    assert caught.value.__cause__ is not None
    assert "t-0" in str(caught.value) or "topic t" in str(caught.value)
    assert lost.exception(0) is not None
    assert other.done()
    with pytest.raises(TransactionAbortableError):
        m.transactions.check_send()
    with pytest.raises(TransactionAbortableError):
        m.commit()
    m.abort()
    assert m.coordinator.ended == [False]
    next_transaction_is_clean(m)


@BOTH
def test_what_comes_after_a_failure_fails_at_once(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.send(b"a")
    m.rounds(5)
    assert m.transactions.state is TransactionState.ABORTABLE_ERROR
    late = m.send(b"b")
    m.run()
    assert isinstance(late.exception(0), TransactionAbortableError)
    assert m.accumulator.pool.available == m.accumulator.pool.total


@BOTH
def test_records_that_expire_let_their_transaction_only_be_aborted(by_broker: bool) -> None:
    m = TransactionModel(
        by_broker=by_broker, delivery_timeout_ms=1000, request_timeout_ms=900, linger_ms=0
    ).open()
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS, times=1000)
    m.send(b"a")
    with pytest.raises(TransactionAbortableError):
        m.commit()
    m.broker.errors.clear()
    m.abort()
    next_transaction_is_clean(m)


def test_a_gap_in_the_sequences_is_followed_by_a_new_epoch_also_where_brokers_give_none_by_themselves() -> (
    None
):
    m = TransactionModel(by_broker=False).open()
    m.broker.fail("t", ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    m.send(b"a")
    with pytest.raises(TransactionAbortableError):
        m.commit()
    m.abort()
    asked = m.asked(ApiKeys.INIT_PRODUCER_ID)[-1].message
    assert (asked.producer_id, asked.producer_epoch) == (7, 0)
    assert m.core.idempotence is not None
    assert m.core.idempotence.identity.epoch == 1
    next_transaction_is_clean(m)


# Calls.


def test_the_name_may_be_allowed_later() -> None:
    m = TransactionModel()
    m.coordinator.script(ApiKeys.INIT_PRODUCER_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    with pytest.raises(TransactionalIdAuthorizationError):
        m.ended(Call(m.transactions.initialize()))
    m.open()
    m.commit()


@pytest.mark.parametrize("state", list(TransactionState))
def test_a_call_that_does_not_fit_says_which_one_does(state: TransactionState) -> None:
    m = TransactionModel()
    m.transactions.state = state
    m.transactions.error = ProducerFencedError()
    fits = {
        "initialize": {TransactionState.UNINITIALIZED},
        "begin": {TransactionState.READY},
        "commit": {TransactionState.IN_TRANSACTION},
        "abort": {TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR},
        "send": {TransactionState.IN_TRANSACTION},
    }
    calls = {
        "initialize": lambda: next(m.transactions.initialize()),
        "begin": m.transactions.begin,
        "commit": lambda: next(m.transactions.complete(commit=True)),
        "abort": lambda: next(m.transactions.complete(commit=False)),
        "send": m.transactions.check_send,
    }
    for name, call in calls.items():
        if state in fits[name]:
            continue
        expected = {
            TransactionState.FATAL_ERROR: ProducerFencedError,
            TransactionState.ABORTABLE_ERROR: TransactionAbortableError,
        }.get(state, IllegalStateError)
        with pytest.raises(expected):
            call()


def test_the_end_of_the_producer_aborts_what_is_open() -> None:
    m = TransactionModel().open()
    future = m.send(b"a")
    m.sender.closing = True
    for _ in range(20):
        if m.sender._finished():
            break
        m.rounds(1)
    assert isinstance(future.exception(0), TransactionAbortedError)
    m.transactions.close(KafkaError("closed"))


def test_a_state_leads_to_no_other_than_the_table_says() -> None:
    assert set(VALID_TRANSITIONS) == set(TransactionState)
    assert not VALID_TRANSITIONS[TransactionState.FATAL_ERROR]


@pytest.mark.parametrize(
    "settings", [{"enable_idempotence": False}, {"acks": "1"}, {"acks": "0"}, {"retries": 0}]
)
def test_transactions_need_idempotence(settings: dict[str, object]) -> None:
    with pytest.raises(KafkaError, match=r"transactional\.id"):
        ProducerConfig.parse(None, {"bootstrap_servers": "h:1", "transactional_id": "x", **settings})


def test_the_client_is_named_after_the_transactional_id() -> None:
    named = {"bootstrap_servers": "h:1", "transactional_id": "x"}
    assert ProducerConfig.parse(None, named).client_id == "producer-x"
    assert ProducerConfig.parse(None, named | {"client_id": "mine"}).client_id == "mine"


@BOTH
def test_a_marker_does_not_overtake_a_batch_that_was_given_up_under_way(by_broker: bool) -> None:
    m = TransactionModel(
        by_broker=by_broker, delivery_timeout_ms=1000, request_timeout_ms=1000, linger_ms=0
    ).open()
    m.send(b"first")
    m.rounds(3)
    future = m.send(b"a")
    m.run()
    assert len(m.waiting) == 1
    m.time.advance(1000)
    # Time enough for the record, but not for the request that carries it.
    m.client.requests[0].sent_ms += 500
    m.run()
    assert future.exception(0) is not None
    call = Call(m.transactions.complete(commit=False))
    m.run(3)
    assert not m.asked(ApiKeys.END_TXN)
    m.ended(call)
    next_transaction_is_clean(m)


@BOTH
def test_abort_leaves_no_gap_where_a_batch_waits_to_be_sent_again(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker, retry_backoff_ms=500, retry_backoff_max_ms=500).open()
    m.send(b"first")
    m.rounds(50)
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS)
    m.send(b"a")
    m.run()
    m.answer()
    m.abort()
    next_transaction_is_clean(m)


def test_abort_waits_for_the_answer_to_what_is_asked() -> None:
    m = TransactionModel(by_broker=False).open()
    m.send(b"a")
    while not any(sent.request.api_key is ApiKeys.ADD_PARTITIONS_TO_TXN for sent in m.client.requests):
        m.run(advance_ms=20)
    call = Call(m.transactions.complete(commit=False))
    m.run(3)
    assert [sent.request.api_key for sent in m.client.requests] == [ApiKeys.ADD_PARTITIONS_TO_TXN]
    m.ended(call)
    # The coordinator ends what it may have begun.
    assert m.asked(ApiKeys.INIT_PRODUCER_ID)[-1].message.producer_epoch == 0
    next_transaction_is_clean(m)


def test_the_coordinator_is_looked_for_when_it_is_another_one() -> None:
    m = TransactionModel().open()
    asked = len(m.asked(ApiKeys.FIND_COORDINATOR))
    m.coordinator.script(ApiKeys.END_TXN, ErrorCode.NOT_COORDINATOR)
    m.send(b"a")
    m.commit()
    assert len(m.asked(ApiKeys.FIND_COORDINATOR)) == asked + 1


def test_brokers_that_cannot_tell_a_fenced_producer_are_not_asked_for_a_new_epoch() -> None:
    m = TransactionModel(by_broker=False)
    versions = {api: (api.min_version, api.max_version) for api in ApiKeys}
    versions[ApiKeys.INIT_PRODUCER_ID] = (0, 1)
    m.client.set_api_versions(NodeApiVersions(versions))
    m.open()
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.send(b"a")
    with pytest.raises(TransactionAbortableError):
        m.commit()
    with pytest.raises(UnsupportedVersionError):
        m.abort()


@BOTH
def test_offsets_come_with_the_members_place_in_its_group(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker).open()
    send_offsets(m)
    request = m.asked(ApiKeys.TXN_OFFSET_COMMIT)[0].message
    assert (request.group_id, request.generation_id_or_member_epoch, request.member_id) == ("g", 3, "member")
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert (partition.committed_offset, partition.committed_leader_epoch) == (5, 2)
    assert partition.committed_metadata == "note"


def test_offsets_of_topics_whose_ids_are_known_come_by_id() -> None:
    m = TransactionModel().open()
    m.know({"t": 2, "in": 1}, ids=True)
    send_offsets(m)
    sent = m.asked(ApiKeys.TXN_OFFSET_COMMIT)[0]
    assert sent.version >= 6
    assert sent.message.topics[0].topic_id == m.core.metadata.topic_id("in")
    m.commit()
    assert m.coordinator.ended == [True]


def test_nothing_is_asked_any_more_when_the_producer_has_died() -> None:
    m = TransactionModel().open()
    m.send(b"a")
    m.rounds(2)
    m.coordinator.script(ApiKeys.TXN_OFFSET_COMMIT, *[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 50)
    call = Call(m.transactions.send_offsets(OFFSETS, GROUP))
    m.rounds(3)
    m.broker.fail("t", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    m.send(b"b")
    with pytest.raises(TransactionalIdAuthorizationError):
        m.ended(call)
    asked = len(m.client.sent)
    m.rounds()
    assert len(m.client.sent) == asked


def test_a_record_says_whether_it_may_be_written_when_its_transaction_is_aborted() -> None:
    m = TransactionModel(retry_backoff_ms=500, retry_backoff_max_ms=500).open()
    m.send(b"first", partition=0)
    m.rounds(50)
    sent = m.send(b"sent", partition=0)
    m.run()
    m.take_but_lose_answer()
    kept = m.send(b"kept", partition=1)
    m.abort()
    assert "t-0" in str(sent.exception(0))
    assert "may have been written" in str(sent.exception(0))
    assert "may have been written" not in str(kept.exception(0))


def test_a_record_says_whether_it_may_be_written_when_its_producer_is_fenced() -> None:
    m = TransactionModel(retry_backoff_ms=500, retry_backoff_max_ms=500).open()
    m.send(b"first", partition=0)
    m.rounds(50)
    sent = m.send(b"sent", partition=0)
    m.run()
    m.take_but_lose_answer()
    kept = m.send(b"kept", partition=0)
    m.coordinator.script(ApiKeys.TXN_OFFSET_COMMIT, ErrorCode.PRODUCER_FENCED)
    call = Call(m.transactions.send_offsets(OFFSETS, GROUP))
    with pytest.raises(ProducerFencedError):
        m.ended(call)
    m.run(2)
    assert [type(future.exception(0)) for future in (sent, kept)] == [ProducerFencedError] * 2
    assert "t-0" in str(sent.exception(0))
    assert "may have been written" in str(sent.exception(0))
    assert "may have been written" not in str(kept.exception(0))


def place(m: TransactionModel, value: bytes) -> None:
    """Send a record as the application does."""
    run(Placement(m.core).send("t", value, None, 0), m.time)


@BOTH
def test_a_record_that_cannot_be_sent_lets_its_transaction_only_be_aborted(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker, max_request_size=1000).open()
    m.send(b"a")
    with pytest.raises(RecordTooLargeError):
        place(m, b"x" * 2000)
    with pytest.raises(TransactionAbortableError) as refused:
        m.commit()
    assert isinstance(refused.value.__cause__, RecordTooLargeError)
    m.abort()
    assert m.coordinator.ended in ([], [False])
    m.transactions.begin()
    m.send(b"b")
    m.commit()
    assert m.coordinator.ended[-1:] == [True]


def test_records_of_a_call_that_cannot_all_be_sent_let_their_transaction_only_be_aborted() -> None:
    m = TransactionModel(buffer_memory=2000, batch_size=500, max_request_size=1000, max_block_ms=500).open()
    sent = Call(send_many(m.core, Placement(m.core), "t", [b"x" * 400] * 10, None, 0))
    m.time.advance(600)
    sent.advance()
    assert sent.done
    assert sent.error is None  # it is the outcome of those that are left
    with pytest.raises(TransactionAbortableError) as refused:
        m.commit()
    assert isinstance(refused.value.__cause__, BufferExhaustedError)


def test_a_call_with_a_record_that_cannot_be_sent_lets_its_transaction_only_be_aborted() -> None:
    m = TransactionModel(max_request_size=1000).open()
    sent = Call(send_many(m.core, Placement(m.core), "t", [b"a", b"x" * 2000], None, 0))
    assert isinstance(sent.error, RecordTooLargeError)
    with pytest.raises(TransactionAbortableError):
        m.commit()


def test_a_record_that_no_serializer_takes_leaves_its_transaction_as_it_is() -> None:
    def refuse(value: bytes) -> bytes:
        if value == b"bad":
            raise ValueError(value)
        return value

    m = TransactionModel(value_serializer=refuse).open()
    with pytest.raises(SerializationError):
        place(m, b"bad")
    place(m, b"good")
    m.commit()
    assert m.coordinator.ended == [True]
