"""Portions of what was fetched: decoded once, handed out in parts, and decoded again in another form."""

from __future__ import annotations

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.completed_fetch import (
    COLUMN_VIEWS,
    COLUMNS,
    RECORDS,
    CompletedFetch,
    DecodeSettings,
    Form,
)
from kclient.record import MemoryRecordsBuilder

T0 = TopicPartition("t", 0)


@pytest.fixture
def fetch() -> CompletedFetch:
    builder = MemoryRecordsBuilder(base_offset=3, partition_leader_epoch=7)
    for number in range(5):
        builder.append(1, None, b"%d" % number)
    return CompletedFetch(T0, 3, memoryview(builder.close()), None, DecodeSettings())


def test_records_are_handed_out_in_parts(fetch: CompletedFetch) -> None:
    portion = fetch.portion(RECORDS, 10)
    assert portion is not None
    assert portion.first(5) is portion.data
    assert portion.position_after(2) == (5, 7)
    assert [record.offset for record in portion.first(2)] == [3, 4]
    assert not fetch.handed_out(portion, 2, 5)
    assert fetch.position == portion.position == 5
    assert fetch.portion(RECORDS, 1) is portion
    assert [record.offset for record in portion.first(3)] == [5, 6, 7]
    assert portion.position_after(3) == (8, 7)
    assert fetch.handed_out(portion, 3, 8)
    assert fetch.portion(RECORDS, 10) is None


def test_no_more_is_decoded_than_is_asked_for(fetch: CompletedFetch) -> None:
    portion = fetch.portion(RECORDS, 2)
    assert portion is not None
    assert portion.left == 2
    assert not fetch.handed_out(portion, 2, portion.end), "there is more in the fetch"
    rest = fetch.portion(RECORDS, 10)
    assert rest is not None
    assert rest.position == 5


@pytest.mark.parametrize(("first", "then"), [(RECORDS, COLUMNS), (COLUMNS, RECORDS), (COLUMNS, COLUMN_VIEWS)])
def test_another_form_begins_at_the_position(
    fetch: CompletedFetch, first: Form[object], then: Form[object]
) -> None:
    portion = fetch.portion(first, 2)
    assert portion is not None
    assert not fetch.handed_out(portion, 2, 5)
    assert fetch.portion(first, 10) is not None
    again = fetch.portion(then, 10)
    assert again is not None
    assert (again.form, again.position, again.left) == (then, 5, 3)


def test_columns_are_decoded_again_for_fewer_of_them(fetch: CompletedFetch) -> None:
    portion = fetch.portion(COLUMNS, None)
    assert portion is not None
    assert fetch.portion(COLUMNS, 5) is portion
    fewer = fetch.portion(COLUMNS, 4)
    assert fewer is not None
    assert (fewer.left, fewer.position, fewer.end) == (4, 3, 7)


def test_what_is_over_holds_no_memory(fetch: CompletedFetch) -> None:
    assert fetch.portion(RECORDS, 2) is not None
    size = fetch.size
    fetch.end()
    assert fetch.over
    assert fetch.size == size > 0
    assert not fetch._data
