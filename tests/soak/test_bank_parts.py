"""The bank's books are held against what was requested: an audit that finds nothing proves nothing otherwise."""

from __future__ import annotations

import pytest

from harness.soak.bank import PARTITIONS, TRANSFERS, Ledger, Transfer
from harness.soak.transactional_load import Output
from kclient import ConsumerRecord

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
