"""Aborted transactions among fetched batches."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st

from kclient._accel.shared.aborted import AbortedTransactions


class Counted(int):
    """A number that counts how often it is compared."""

    comparisons: ClassVar[int] = 0

    def __lt__(self, other: int) -> bool:
        Counted.comparisons += 1
        return int(self) < int(other)


def test_a_transaction_reaches_from_its_first_offset_to_its_marker() -> None:
    aborted = AbortedTransactions([(1, 10), (1, 3)])
    assert [aborted.has(1, offset) for offset in (2, 3, 9)] == [False, True, True]
    assert not aborted.has(2, 3)
    aborted.end(1, 5)
    assert [aborted.has(1, offset) for offset in (3, 5, 6, 9, 10, 99)] == [
        True,
        True,
        False,
        False,
        True,
        True,
    ]
    aborted.end(1, 12)
    assert [aborted.has(1, offset) for offset in (12, 13)] == [True, False]


def test_a_marker_outside_of_all_transactions_ends_none() -> None:
    aborted = AbortedTransactions([(1, 10)])
    aborted.end(1, 5)
    aborted.end(2, 12)
    assert aborted.has(1, 12)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), max_size=12),
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30),
)
def test_what_is_left_out_is_what_a_set_of_producers_would_leave_out(
    entries: list[tuple[int, int]], batches: list[tuple[int, bool]]
) -> None:
    aborted = AbortedTransactions(entries)
    # As the protocol has it: a producer is in the set from the first offset to the marker.
    waiting = sorted(entries, key=lambda entry: entry[1])
    producers: set[int] = set()
    told = []
    for offset, (producer_id, is_marker) in enumerate(batches):
        while waiting and waiting[0][1] <= offset:
            producers.add(waiting.pop(0)[0])
        expected = producer_id in producers
        told.append(expected)
        assert aborted.has(producer_id, offset) == expected
        if is_marker and expected:
            aborted.end(producer_id, offset)
            producers.remove(producer_id)
    # Read again from the first batch on, it tells the same.
    assert [aborted.has(producer_id, offset) for offset, (producer_id, _) in enumerate(batches)] == told


def test_a_long_list_costs_no_more_than_sorting_it() -> None:
    count = 30_000
    Counted.comparisons = 0
    # Two thirds of them of one producer, and backwards in part.
    entries = [(offset % 3 and 7, Counted(offset ^ 0xFFF)) for offset in range(count)]
    aborted = AbortedTransactions(entries)
    for offset in range(count):
        producer_id = offset % 3 and 7
        if aborted.has(producer_id, offset):
            aborted.end(producer_id, offset)
    assert Counted.comparisons < 6 * count * count.bit_length()


def test_a_list_too_long_to_be_sorted_at_once_is_sorted() -> None:
    count = 20_000
    aborted = AbortedTransactions([(1, offset * 7919 % count * 10) for offset in range(count)])
    for start in range(0, count * 10, 10):
        aborted.end(1, start + 5)
    for start in range(0, count * 10, 10):
        assert aborted.has(1, start)
        assert not aborted.has(1, start + 6)
