"""Calls of the application that end transactions: waited for too long, interrupted, repeated, from two threads."""

from __future__ import annotations

import threading

import pytest

from harness.producer.transactions import (
    GROUP,
    OFFSETS,
    Call,
    TransactionModel,
    next_transaction_is_clean,
)
from kclient.errors import ErrorCode, IllegalStateError, KafkaTimeoutError
from kclient.protocol.api_keys import ApiKeys

BOTH = pytest.mark.parametrize("by_broker", [True, False], ids=["TV2", "TV1"])


def test_a_call_that_took_too_long_is_waited_for_by_the_same_call_and_by_no_other() -> None:
    m = TransactionModel(max_block_ms=100).open()
    m.send(b"a")
    call = Call(m.transactions.complete(commit=True))
    m.time.advance(200)
    call.advance()
    assert isinstance(call.error, KafkaTimeoutError)
    assert "commit_transaction()" in str(call.error)
    for other in (m.abort, m.transactions.begin):
        with pytest.raises(IllegalStateError, match="commit_transaction"):
            other()
    m.rounds()
    with pytest.raises(IllegalStateError, match="has succeeded"):
        m.transactions.begin()
    m.commit()
    assert m.coordinator.ended == [True]
    next_transaction_is_clean(m)


def test_an_interrupted_commit_is_found_again() -> None:
    m = TransactionModel().open()
    m.send(b"a")
    call = Call(m.transactions.complete(commit=True))
    m.run()
    call.interrupt()
    m.commit()
    assert m.coordinator.ended == [True]
    next_transaction_is_clean(m)


def test_an_interrupted_commit_that_failed_may_be_aborted() -> None:
    m = TransactionModel().open()
    m.broker.fail("t", ErrorCode.INVALID_RECORD)
    m.send(b"a")
    call = Call(m.transactions.complete(commit=True))
    call.interrupt()
    m.rounds()
    m.abort()
    assert m.coordinator.ended == [False]
    next_transaction_is_clean(m)


def test_a_second_thread_is_refused_while_one_ends_the_transaction() -> None:
    m = TransactionModel().open()
    m.send(b"a")
    call = Call(m.transactions.complete(commit=True))
    refused: list[BaseException | None] = []

    def other() -> None:
        refused.append(Call(m.transactions.complete(commit=True)).error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(10)
    assert isinstance(refused[0], IllegalStateError)
    assert "another thread" in str(refused[0])
    m.ended(call)


def test_a_call_that_took_too_long_may_be_waited_for_by_another_thread() -> None:
    m = TransactionModel(max_block_ms=100).open()
    m.send(b"a")
    call = Call(m.transactions.complete(commit=True))
    m.time.advance(200)
    call.advance()
    others: list[Call] = []
    thread = threading.Thread(target=lambda: others.append(Call(m.transactions.complete(commit=True))))
    thread.start()
    thread.join(10)
    m.ended(others[0])
    assert m.coordinator.ended == [True]


@BOTH
def test_abort_does_not_wait_for_offsets_that_took_too_long(by_broker: bool) -> None:
    m = TransactionModel(by_broker=by_broker, max_block_ms=100).open()
    m.send(b"a")
    m.rounds(2)
    m.coordinator.script(ApiKeys.TXN_OFFSET_COMMIT, *[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 50)
    call = Call(m.transactions.send_offsets(OFFSETS, GROUP))
    m.rounds(2)
    m.time.advance(200)
    call.advance()
    assert isinstance(call.error, KafkaTimeoutError)
    with pytest.raises(IllegalStateError, match="send_offsets_to_transaction"):
        m.commit()
    m.abort()
    assert m.coordinator.ended == [False]
    assert not m.coordinator.committed
    next_transaction_is_clean(m)
