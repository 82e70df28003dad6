"""Transactions: all of one or nothing, and nothing before its commit."""

from __future__ import annotations

import pytest

from harness.checker.history import Finish, Outcome, Place, Read, Send, Transaction
from harness.checker.log import ConsumerLog, ProducerLog
from harness.checker.memory import MemoryLog
from harness.checker.report import check

P = Place("t", 0)
Q = Place("t", 1)


class Copier:
    """A producer whose transactions each write one record to either partition, the marker of their end behind it."""

    def __init__(self, log: MemoryLog) -> None:
        self.log: ProducerLog = log.producer("p")
        self.transaction = 0
        self._next = 0

    def begin(self) -> None:
        """Begin, and write the two records."""
        self.transaction = self.log.begun()
        for partition in (0, 1):
            number = self.log.send("t", b"v%d" % self._next, partition, self.transaction)
            self.log.acked(number, partition, self._next)
        self._next += 2

    def end(self, outcome: Outcome | None, *, commit: bool = True) -> None:
        """End; without an outcome the producer is killed meanwhile."""
        self.log.ending(self.transaction, commit=commit)
        if outcome is not None:
            self.log.finished(self.transaction, outcome)

    def whole(self, outcome: Outcome | None, *, commit: bool = True) -> None:
        """Begin and end."""
        self.begin()
        self.end(outcome, commit=commit)


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def copier(log: MemoryLog) -> Copier:
    return Copier(log)


@pytest.fixture
def consumer(log: MemoryLog) -> ConsumerLog:
    return log.consumer("c", read_committed=True)


def read(consumer: ConsumerLog, *offsets: int, places: tuple[Place, ...] = (P, Q)) -> None:
    consumer.polled({place: [(offset, b"v%d" % offset) for offset in offsets] for place in places})


def evidence(log: MemoryLog) -> list[type]:
    [anomaly] = check(log.history())
    return [type(each) for each in anomaly.evidence]


def test_committed_transactions_are_read_and_aborted_ones_are_not(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    copier.whole("ok")
    copier.whole("fail", commit=False)
    copier.whole("ok")
    read(consumer, 0, 4)
    log.at_end("c", [P, Q])
    assert log.kinds() == []


def test_a_record_of_an_aborted_transaction_is_found(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    copier.whole("fail", commit=False)
    read(consumer, 0, places=(P,))
    assert log.kinds() == ["aborted read"]
    assert evidence(log) == [Read, Send, Transaction]


def test_readers_of_everything_may_read_aborted_and_open_transactions(log: MemoryLog, copier: Copier) -> None:
    consumer = log.consumer("d")
    copier.whole("fail", commit=False)
    copier.begin()
    read(consumer, 0, 2)
    copier.end("ok")
    log.at_end("d", [P, Q])
    assert log.kinds() == []


def test_a_record_that_was_read_before_its_commit_was_called_is_found(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    copier.begin()
    read(consumer, 0)
    copier.end("ok")
    assert log.kinds() == ["precommitted read", "precommitted read"]
    kinds = {tuple(type(each) for each in anomaly.evidence) for anomaly in check(log.history())}
    assert kinds == {(Read, Send, Transaction)}


def test_a_record_may_be_read_while_its_commit_goes_on(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    copier.begin()
    copier.log.ending(copier.transaction, commit=True)
    read(consumer, 0)
    copier.log.finished(copier.transaction, "ok")
    assert log.kinds() == []


@pytest.mark.parametrize("aborting", [False, True])
def test_a_transaction_whose_commit_was_never_called_is_never_read(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog, aborting: bool
) -> None:
    copier.begin()
    if aborting:
        copier.end(None, commit=False)
    assert log.kinds() == []
    read(consumer, 0, places=(P,))
    assert log.kinds() == ["precommitted read"]


@pytest.mark.parametrize("outcome", [None, "unknown"])
@pytest.mark.parametrize("offsets", [(0, 4), (0, 2, 4)])
def test_a_transaction_of_unknown_outcome_may_be_read_or_not(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog, outcome: Outcome | None, offsets: tuple[int, ...]
) -> None:
    copier.whole("ok")
    copier.whole(outcome)
    copier.whole("ok")
    read(consumer, *offsets)
    log.at_end("c", [P, Q])
    assert log.kinds() == []


def test_a_transaction_of_unknown_outcome_of_which_a_reader_passed_a_part_is_found(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    copier.whole("ok")
    copier.whole("unknown")
    copier.whole("ok")
    read(consumer, 0, 2, 4, places=(P,))
    read(consumer, 0, places=(Q,))
    assert log.kinds() == []  # the reader may still come to it
    read(consumer, 4, places=(Q,))
    assert log.kinds() == ["torn transaction"]
    assert evidence(log) == [Transaction, Read, Send, Read]


def test_a_part_that_others_read_among_what_is_committed_is_a_poll_skip(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    for outcome in ("ok", "unknown", "ok"):
        copier.whole(outcome)
    read(consumer, 0, 2, 4, places=(P,))
    read(consumer, 0, 4, places=(Q,))
    read(log.consumer("d", read_committed=True), 0, 2, 4)
    assert log.kinds() == ["poll skip"]


def test_a_reader_of_everything_proves_nothing_of_a_transaction_of_unknown_outcome(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    for outcome in ("ok", "unknown", "ok"):
        copier.whole(outcome)
    read(log.consumer("d"), 0, 2, 4)
    read(consumer, 0, 4)
    assert log.kinds() == []


def test_a_part_that_is_missing_at_the_end_is_found_though_nobody_knows_its_offset(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    copier.begin()
    copier.log.failed(copier.log.send("t", b"x", 0, copier.transaction), "timed out", "unknown")
    copier.end("unknown")
    read(consumer, 0)
    assert log.kinds() == []
    log.at_end("c", [P, Q])
    assert log.kinds() == ["torn transaction"]
    assert evidence(log) == [Transaction, Read, Send, Finish]


def test_an_end_that_was_reached_before_proves_nothing(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    log.at_end("c", [P, Q])
    copier.whole("unknown")
    read(consumer, 0, places=(P,))
    assert log.kinds() == []


def test_a_commit_that_leaves_out_a_record_that_failed_is_found(log: MemoryLog, copier: Copier) -> None:
    copier.begin()
    copier.log.failed(copier.log.send("t", b"x", 0, copier.transaction), "too large", "fail")
    copier.end("ok")
    assert log.kinds() == ["torn transaction"]
    assert evidence(log) == [Transaction, Send]


def test_a_record_that_failed_may_be_in_a_transaction_that_was_aborted(
    log: MemoryLog, copier: Copier
) -> None:
    copier.begin()
    copier.log.failed(copier.log.send("t", b"x", 0, copier.transaction), "too large", "fail")
    copier.end("fail", commit=False)
    assert log.kinds() == []


def test_a_record_of_a_committed_transaction_that_nobody_read_is_lost(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    for _ in range(3):
        copier.whole("ok")
    read(consumer, 0, 2, 4, places=(P,))
    read(consumer, 0, 4, places=(Q,))
    assert log.kinds() == ["lost write"]
    assert evidence(log) == [Send, Transaction, Read]


def test_a_record_of_a_committed_transaction_that_one_reader_passed_is_a_poll_skip(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    for _ in range(3):
        copier.whole("ok")
    read(log.consumer("d"), 0, 2, 4)
    read(consumer, 0, 4)
    assert log.kinds() == ["poll skip", "poll skip"]


def test_a_commit_after_the_end_was_reached_may_be_unseen(
    log: MemoryLog, copier: Copier, consumer: ConsumerLog
) -> None:
    copier.begin()
    log.at_end("c", [P, Q])
    copier.end("ok")
    assert log.kinds() == []
    log.at_end("c", [P, Q])
    assert log.kinds() == ["unseen", "unseen"]
