"""The bank's books are held against what was requested: an audit that finds nothing proves nothing otherwise."""

from __future__ import annotations

import pytest

from harness.soak.bank import PARTITIONS, TRANSFERS, Audits, Ledger, Transfer
from harness.soak.transactional_load import Output
from kclient import ConsumerRecord, TopicPartition

REQUESTS = [b"customer:%d" % number for number in range(50)]


def record(output: Output, offset: int) -> ConsumerRecord[bytes, bytes]:
    """A booking as a consumer is handed it."""
    value = output.value + b"|teller.%d" % offset
    return ConsumerRecord(TRANSFERS, output.partition, offset, -1, -1, output.key, value, (), None, -1, -1)


def ledger(*outputs: Output) -> Ledger:
    made = Ledger()
    made.add(record(output, offset) for offset, output in enumerate(outputs))
    return made


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_transfer_goes_from_one_partition_to_another_and_adds_up_to_zero(request_: bytes) -> None:
    debit, credit = Transfer.of(request_).outputs()
    assert {debit.partition, credit.partition} < set(range(PARTITIONS))
    assert debit.partition != credit.partition
    assert debit.key != credit.key
    assert ledger(debit, credit).unbalanced() == set()
    assert Transfer.of(request_).outputs() == [debit, credit]


def test_books_that_have_all_that_was_requested_once_are_right() -> None:
    outputs = [output for request in REQUESTS for output in Transfer.of(request).outputs()]
    assert ledger(*outputs).problems(REQUESTS) == []


@pytest.mark.parametrize("half", [0, 1])
def test_half_a_transfer_is_found(half: int) -> None:
    made = ledger(Transfer.of(REQUESTS[0]).outputs()[half])
    assert made.unbalanced() == {REQUESTS[0]}
    [problem] = made.problems(REQUESTS[:1])
    assert problem.startswith("half transfer: b'customer:0'")


@pytest.mark.parametrize(
    ("times", "kinds"),
    [(0, ["missing transfer"]), (1, []), (2, ["doubled transfer"]), (3, ["doubled transfer"])],
)
def test_a_transfer_has_to_be_booked_once(times: int, kinds: list[str]) -> None:
    made = ledger(*Transfer.of(REQUESTS[0]).outputs() * times)
    assert [problem.partition(":")[0] for problem in made.problems(REQUESTS[:1])] == kinds


def test_a_transfer_that_nobody_requested_is_found() -> None:
    [problem] = ledger(*Transfer.of(REQUESTS[1]).outputs()).problems([])
    assert problem.startswith("unknown transfer: b'customer:1'")


def test_a_transfer_that_was_booked_otherwise_than_requested_is_found() -> None:
    debit, credit = Transfer.of(REQUESTS[0]).outputs()
    made = ledger(debit._replace(key=credit.key), credit)
    [problem] = made.problems(REQUESTS[:1])
    assert problem.startswith("false transfer: b'customer:0'")


DEBIT, CREDIT = Transfer.of(REQUESTS[0]).outputs()
ENDS = {TopicPartition(TRANSFERS, partition): 5 for partition in range(PARTITIONS)}


def audits_of(*outputs: Output) -> Audits:
    """Audits of which the first has begun, with these bookings."""
    audits = Audits()
    audits.take([record(output, 0) for output in outputs])
    audits.go_on(lambda: ENDS, lambda tp: 0)
    return audits


def test_a_half_of_which_the_other_one_is_not_there_at_the_end_is_found() -> None:
    audits = audits_of(DEBIT)
    audits.go_on(dict, lambda tp: 5)
    [problem] = audits.problems
    assert problem.startswith("half transfer: b'customer:0'")
    assert audits.counts == {"audits": 1, "halves seen": 1}


def test_a_half_that_stays_is_told_once() -> None:
    audits = audits_of(DEBIT)
    for _ in range(3):
        audits.go_on(dict, lambda tp: 5)
        audits.go_on(lambda: ENDS, lambda tp: 5)
    assert audits.counts["audits"] == 3
    assert len(audits.problems) == 1


def test_a_half_whose_other_one_comes_before_the_end_is_none() -> None:
    audits = audits_of(DEBIT)
    for partition in range(PARTITIONS):  # until the last of them is at its end
        audits.go_on(dict, lambda tp, left=partition: 4 if tp.partition == left else 5)  # type: ignore[misc]
    audits.take([record(CREDIT, 1)])
    audits.go_on(dict, lambda tp: 5)
    assert audits.problems == []
    assert audits.counts == {"audits": 1, "halves seen": 1}


def test_a_half_that_comes_after_the_beginning_of_an_audit_is_of_the_next_one() -> None:
    audits = audits_of(DEBIT)
    audits.take([record(CREDIT, 1), record(Transfer.of(REQUESTS[1]).outputs()[0], 2)])
    audits.go_on(dict, lambda tp: 5)
    assert audits.problems == []
    audits.go_on(lambda: ENDS, lambda tp: 5)
    audits.go_on(dict, lambda tp: 5)
    [problem] = audits.problems
    assert problem.startswith("half transfer: b'customer:1'")


def test_where_no_half_is_seen_nothing_is_audited() -> None:
    audits = audits_of(DEBIT, CREDIT)
    audits.go_on(dict, lambda tp: 5)
    assert audits.counts == {}
