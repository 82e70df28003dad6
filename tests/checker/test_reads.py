"""Records that consumers were handed: all, in order, of their own partitions; and reading that is fine."""

from __future__ import annotations

import pytest

from harness.checker.history import Place, Read, Turn
from harness.checker.log import ConsumerLog
from harness.checker.memory import MemoryLog
from harness.checker.report import check

P = Place("t", 0)
Q = Place("t", 1)


@pytest.fixture
def log() -> MemoryLog:
    """Ten records are acknowledged in each of two partitions, and somebody else has read them all."""
    log = MemoryLog()
    producer = log.producer("p")
    for place in (P, Q):
        for offset in range(10):
            producer.acked(producer.send("t", value(offset), place.partition), place.partition, offset)
    read(log.consumer("reader"), P, *range(10))
    read(log.consumer("second reader"), Q, *range(10))
    assert log.kinds() == []
    return log


@pytest.fixture
def consumer(log: MemoryLog) -> ConsumerLog:
    return log.consumer("c")


def value(offset: int) -> bytes:
    return b"v%d" % offset


def read(consumer: ConsumerLog, place: Place, *offsets: int) -> None:
    """Hand out the records at these offsets in one poll."""
    consumer.polled({place: [(offset, value(offset)) for offset in offsets]})


def test_a_record_left_out_between_two_polls_is_found(log: MemoryLog, consumer: ConsumerLog) -> None:
    read(consumer, P, 0, 1)
    read(consumer, P, 3, 4)
    assert log.kinds() == ["poll skip"]
    [anomaly] = check(log.history())
    evidence = [(each.process, each.offset) for each in anomaly.evidence if isinstance(each, Read)]
    assert evidence == [("c", 1), ("reader", 2), ("c", 3)]


def test_a_record_left_out_within_a_poll_is_found(log: MemoryLog, consumer: ConsumerLog) -> None:
    read(consumer, P, 0, 2)
    assert log.kinds() == ["poll skip"]


def test_a_record_that_nobody_knows_is_missed_where_no_transaction_leaves_gaps() -> None:
    log = MemoryLog()
    producer, consumer = log.producer("p"), log.consumer("c")
    for offset in (0, 2):
        producer.acked(producer.send("t", value(offset), 0), 0, offset)
    read(consumer, P, 0, 2)
    assert log.kinds() == ["poll skip"]


def test_transactions_leave_gaps_in_their_partition_alone() -> None:
    log = MemoryLog()
    producer, consumer = log.producer("p"), log.consumer("c")
    transaction = producer.begun()
    producer.acked(producer.send("t", value(0), 0, transaction), 0, 0)
    producer.ending(transaction, commit=True)
    producer.finished(transaction, "ok")
    producer.acked(producer.send("t", value(0), 1), 1, 0)
    for place in (P, Q):
        producer.acked(producer.send("t", value(2), place.partition), place.partition, 2)
    read(consumer, P, 0, 2)
    assert log.kinds() == []
    read(consumer, Q, 0, 2)
    assert log.kinds() == ["poll skip"]


def test_a_huge_gap_is_found_at_once(log: MemoryLog, consumer: ConsumerLog) -> None:
    read(consumer, P, 0, 10**18)
    assert log.kinds() == ["poll skip", "unknown value"]


def test_a_record_that_was_handed_out_again_is_found(log: MemoryLog, consumer: ConsumerLog) -> None:
    read(consumer, P, 0, 1)
    read(consumer, P, 1, 2)
    assert log.kinds() == ["nonmonotonic poll"]
    [anomaly] = check(log.history())
    assert [each.offset for each in anomaly.evidence if isinstance(each, Read)] == [1, 1]


def test_records_in_another_order_within_a_poll_are_found(log: MemoryLog, consumer: ConsumerLog) -> None:
    read(consumer, P, 0, 2, 1, 3)
    assert log.kinds() == ["nonmonotonic poll", "poll skip", "poll skip"]


def test_after_a_seek_reading_goes_on_anywhere(log: MemoryLog, consumer: ConsumerLog) -> None:
    read(consumer, P, 0, 1)
    consumer.sought([P])
    read(consumer, P, 7, 8)
    consumer.sought([P])
    read(consumer, P, 3)
    assert log.kinds() == []


def test_a_seek_excuses_its_own_partition_alone(log: MemoryLog, consumer: ConsumerLog) -> None:
    read(consumer, P, 0, 1)
    consumer.sought([Q])
    read(consumer, P, 3)
    assert log.kinds() == ["poll skip"]


@pytest.mark.parametrize("end", ["revoked", "lost"])
def test_when_a_partition_was_away_reading_goes_on_anywhere(
    log: MemoryLog, consumer: ConsumerLog, end: str
) -> None:
    consumer.assigned([P, Q])
    read(consumer, P, 0, 1)
    read(consumer, Q, 0, 1)
    (consumer.revoked if end == "revoked" else consumer.lost)([P])
    consumer.assigned([P])
    read(consumer, P, 5)
    read(consumer, Q, 2)
    assert log.kinds() == []
    read(consumer, Q, 4)
    assert log.kinds() == ["poll skip"]


def test_two_consumers_read_each_their_own_way(log: MemoryLog, consumer: ConsumerLog) -> None:
    other = log.consumer("d")
    read(consumer, P, 0, 1)
    read(other, P, 0)
    read(consumer, P, 2)
    read(other, P, 1)
    assert log.kinds() == []


def test_records_of_a_partition_that_the_consumer_does_not_have_are_found(
    log: MemoryLog, consumer: ConsumerLog
) -> None:
    consumer.assigned([P])
    read(consumer, P, 0)
    assert log.kinds() == []
    read(consumer, Q, 0)
    consumer.revoked([P])
    read(consumer, P, 1)
    assert log.kinds() == ["foreign poll", "foreign poll"]


def member(log: MemoryLog, name: str) -> ConsumerLog:
    return log.consumer(name, group="g")


def test_two_owners_at_a_time_are_found(log: MemoryLog) -> None:
    first, second = member(log, "m"), member(log, "n")
    first.assigned([P])
    second.assigned([Q])
    assert log.kinds() == []
    second.assigned([P])
    first.revoked([P])
    assert log.kinds() == ["two owners"]
    [anomaly] = check(log.history())
    assert [(type(each), each.process) for each in anomaly.evidence if isinstance(each, Turn)] == [
        (Turn, "m"),
        (Turn, "n"),
    ]


def test_one_owner_after_the_other_is_fine_and_so_is_one_that_learns_late_that_it_was_thrown_out(
    log: MemoryLog,
) -> None:
    first, second, third = member(log, "m"), member(log, "n"), member(log, "o")
    first.assigned([P])
    first.revoked([P])
    second.assigned([P])
    third.assigned([P])
    second.lost([P])
    assert log.kinds() == []


def test_a_member_that_was_killed_owns_nothing_from_then_on(log: MemoryLog) -> None:
    member(log, "m").assigned([P])
    log.ended("m")
    member(log, "n").assigned([P])
    assert log.kinds() == []
    member(log, "o").assigned([P])
    assert log.kinds() == ["two owners"]


def test_groups_share_partitions(log: MemoryLog) -> None:
    member(log, "m").assigned([P])
    log.consumer("n", group="h").assigned([P])
    log.consumer("o").assigned([P])
    assert log.kinds() == []


@pytest.mark.parametrize(
    ("when", "kinds"), [("before", ["two owners"]), ("while", []), ("after", ["two owners"])]
)
def test_one_that_was_stopped_while_it_had_a_partition_may_have_lost_it_unawares(
    log: MemoryLog, when: str, kinds: list[str]
) -> None:
    stopped, other = (log.consumer(name, group="g") for name in ("m", "n"))
    if when == "before":
        log.stopped("m")
    stopped.assigned([P])
    if when == "while":
        log.stopped("m")
    other.assigned([P])
    if when == "after":
        log.stopped("m")
    stopped.revoked([P])
    stopped.closed()
    assert log.kinds() == kinds


@pytest.mark.parametrize(("end", "kinds"), [("lost", []), ("revoked", ["two owners"])])
def test_one_that_was_stopped_may_be_told_late_of_what_it_has_lost(
    log: MemoryLog, end: str, kinds: list[str]
) -> None:
    stopped, other = member(log, "m"), member(log, "n")
    stopped.assigned([Q])
    log.stopped("m")
    other.assigned([P])
    stopped.assigned([P])
    getattr(stopped, end)([P])
    other.revoked([P])
    assert log.kinds() == kinds


def test_what_is_lost_long_after_it_went_on_was_its_own(log: MemoryLog) -> None:
    stopped, other = member(log, "m"), member(log, "n")
    log.stopped("m")
    stopped.assigned([Q])
    other.assigned([P])
    stopped.assigned([P])
    stopped.lost([P])
    other.revoked([P])
    assert log.kinds() == ["two owners"]
