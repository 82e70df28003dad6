"""Committed offsets: not before what was handed out, by a commit that took effect, and there to stay."""

from __future__ import annotations

import pytest

from harness.checker.history import Commit, Observation, Outcome, Place, Read, Send, Transaction
from harness.checker.log import ConsumerLog, ProducerLog
from harness.checker.memory import MemoryLog
from harness.checker.report import check

P = Place("t", 0)
OUT = Place("out", 0)


@pytest.fixture
def log() -> MemoryLog:
    """Log of ten records that were acknowledged."""
    log = MemoryLog()
    producer = log.producer("p")
    for offset in range(10):
        producer.acked(producer.send("t", b"v%d" % offset, 0), 0, offset)
    return log


@pytest.fixture
def member(log: MemoryLog) -> ConsumerLog:
    return log.consumer("m", group="g")


def read(member: ConsumerLog, *offsets: int) -> None:
    member.polled({P: [(offset, b"v%d" % offset) for offset in offsets]})


def commit(member: ConsumerLog, offset: int, outcome: Outcome | None = "ok") -> None:
    number = member.commit("g", {P: offset})
    if outcome is not None:
        member.committed(number, outcome)


def observe(log: MemoryLog, offset: int) -> None:
    log.observed("g", log.now(), {P: offset})


def evidence(log: MemoryLog) -> list[type]:
    [anomaly] = check(log.history())
    return [type(each) for each in anomaly.evidence]


def test_a_group_that_commits_what_it_was_handed_has_no_anomalies(
    log: MemoryLog, member: ConsumerLog
) -> None:
    read(member, 0, 1, 2)
    commit(member, 3)
    observe(log, 3)
    member.revoked([P])
    read(log.consumer("n", group="g"), 3, 4)
    observe(log, 3)
    assert log.kinds() == []


def test_an_offset_beyond_what_the_group_was_handed_is_found(log: MemoryLog, member: ConsumerLog) -> None:
    read(member, 0, 1)
    commit(member, 3)
    observe(log, 3)
    assert log.kinds() == ["committed too far"]
    assert evidence(log) == [Observation]


def test_an_offset_of_a_group_that_was_handed_nothing_is_found(log: MemoryLog) -> None:
    log.consumer("m", group="g", auto_commit=True)
    read(log.consumer("n", group="h"), 0)
    observe(log, 0)
    assert log.kinds() == []
    observe(log, 1)
    assert log.kinds() == ["committed too far"]


def test_what_was_handed_out_afterwards_does_not_count(log: MemoryLog, member: ConsumerLog) -> None:
    commit(member, 1)
    observe(log, 1)
    read(member, 0)
    assert log.kinds() == ["committed too far"]


def test_an_offset_behind_a_record_that_no_member_was_handed_is_found(
    log: MemoryLog, member: ConsumerLog
) -> None:
    read(log.consumer("reader"), *range(10))
    read(member, 0, 1)
    member.revoked([P])
    read(log.consumer("n", group="g"), 3, 4)
    commit(member, 2)
    observe(log, 2)
    assert log.kinds() == []
    commit(member, 5)
    observe(log, 5)
    assert log.kinds() == ["committed too far"]
    assert evidence(log) == [Observation, Read]


def test_after_a_seek_of_the_application_records_may_be_left_out(log: MemoryLog, member: ConsumerLog) -> None:
    read(log.consumer("reader"), *range(10))
    read(member, 0, 1)
    member.sought([P])
    read(member, 3, 4)
    commit(member, 5)
    observe(log, 5)
    assert log.kinds() == []


def test_a_group_may_begin_anywhere(log: MemoryLog, member: ConsumerLog) -> None:
    read(log.consumer("reader"), *range(10))
    read(member, 5, 6)
    commit(member, 7)
    observe(log, 7)
    assert log.kinds() == []


def test_the_position_passes_markers_of_transactions() -> None:
    log = MemoryLog()
    producer, member = log.producer("p"), log.consumer("m", group="g", read_committed=True)
    transaction = producer.begun()
    producer.acked(producer.send("t", b"v0", 0, transaction), 0, 0)
    producer.ending(transaction, commit=True)
    producer.finished(transaction, "ok")
    read(member, 0)
    commit(member, 2)
    observe(log, 2)
    assert log.kinds() == []
    producer.acked(producer.send("t", b"v2", 0), 0, 2)
    read(log.consumer("reader"), 0, 2)
    commit(member, 3)
    observe(log, 3)
    assert log.kinds() == ["committed too far"]


@pytest.mark.parametrize("outcome", ["unknown", None])
def test_a_commit_of_unknown_outcome_may_have_an_effect_or_not(
    log: MemoryLog, member: ConsumerLog, outcome: Outcome | None
) -> None:
    read(member, 0, 1, 2)
    commit(member, 1)
    commit(member, 2, outcome)
    observe(log, 1)
    observe(log, 2)
    assert log.kinds() == []


def test_an_offset_that_nobody_committed_is_found(log: MemoryLog, member: ConsumerLog) -> None:
    read(member, 0, 1, 2)
    commit(member, 1)
    observe(log, 2)
    assert log.kinds() == ["unknown commit"]
    assert evidence(log) == [Observation]


def test_a_member_that_commits_by_itself_may_have_committed_anything_that_was_handed_out(
    log: MemoryLog, member: ConsumerLog
) -> None:
    read(member, 0, 1, 2)
    commit(member, 1)
    log.consumer("n", group="g", auto_commit=True)
    observe(log, 2)
    assert log.kinds() == []


def test_a_commit_that_failed_and_is_there_is_found(log: MemoryLog, member: ConsumerLog) -> None:
    read(member, 0, 1)
    commit(member, 2, "fail")
    assert log.kinds() == []
    observe(log, 2)
    assert log.kinds() == ["aborted commit"]
    assert evidence(log) == [Observation, Commit]


def test_an_older_offset_after_a_newer_one_was_acknowledged_is_found(
    log: MemoryLog, member: ConsumerLog
) -> None:
    read(member, 0, 1, 2)
    commit(member, 1)
    observe(log, 1)
    commit(member, 3)
    observe(log, 3)
    assert log.kinds() == []
    observe(log, 1)
    assert log.kinds() == ["lost commit"]
    assert evidence(log) == [Observation, Commit, Commit]


def test_an_older_offset_may_come_back_by_a_commit_that_was_late(log: MemoryLog, member: ConsumerLog) -> None:
    read(member, 0, 1, 2)
    late = member.commit("g", {P: 1})
    commit(member, 3)
    observe(log, 1)
    member.committed(late)
    assert log.kinds() == []


class Copied:
    """A transaction that copies one record: its output, and the offset behind it."""

    def __init__(self, log: MemoryLog, member: ConsumerLog) -> None:
        read(member, 0)
        self.producer: ProducerLog = log.producer("copier")
        self.number = self.producer.begun()
        self.producer.acked(self.producer.send("out", b"v0", 0, self.number), 0, 0)
        self.producer.committed(self.producer.commit("g", {P: 1}, self.number))

    def end(self, outcome: Outcome, *, commit: bool = True) -> None:
        self.producer.ending(self.number, commit=commit)
        self.producer.finished(self.number, outcome)


@pytest.fixture
def copied(log: MemoryLog, member: ConsumerLog) -> Copied:
    return Copied(log, member)


def test_offsets_of_a_committed_transaction_are_there_sooner_or_later(
    log: MemoryLog, member: ConsumerLog, copied: Copied
) -> None:
    commit(member, 0)
    observe(log, 0)
    copied.end("ok")
    observe(log, 0)
    observe(log, 1)
    log.consumer("c", read_committed=True).polled({OUT: [(0, b"v0")]})
    assert log.kinds() == []


def test_offsets_of_an_aborted_transaction_are_found(log: MemoryLog, copied: Copied) -> None:
    copied.end("fail", commit=False)
    assert log.kinds() == []
    observe(log, 1)
    assert log.kinds() == ["aborted commit"]
    assert evidence(log) == [Observation, Commit, Transaction]


def test_offsets_that_were_there_before_the_output_was_committed_are_found(
    log: MemoryLog, copied: Copied
) -> None:
    observe(log, 1)
    copied.end("ok")
    assert log.kinds() == ["precommitted commit"]
    assert evidence(log) == [Observation, Commit, Transaction]


def test_offsets_without_the_output_of_their_transaction_are_found(log: MemoryLog, copied: Copied) -> None:
    copied.end("unknown")
    consumer = log.consumer("c", read_committed=True)
    log.at_end("c", [OUT])
    assert log.kinds() == []
    observe(log, 1)
    assert log.kinds() == []  # the end may have been reached before
    log.at_end("c", [OUT])
    assert log.kinds() == ["torn transaction"]
    assert evidence(log)[:3] == [Transaction, Observation, Send]
    consumer.polled({OUT: [(0, b"v0")]})
    assert log.kinds() == []


def test_offsets_that_somebody_else_committed_as_well_prove_nothing(
    log: MemoryLog, member: ConsumerLog, copied: Copied
) -> None:
    copied.end("unknown")
    commit(member, 1)
    observe(log, 1)
    log.consumer("c", read_committed=True)
    log.at_end("c", [OUT])
    assert log.kinds() == []
