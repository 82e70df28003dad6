"""The offset map knows the last record of each key, in bounded memory."""

from __future__ import annotations

import tracemalloc
from hashlib import md5

import pytest

from kclient.broker.log.cleaner.offset_map import BYTES_PER_KEY, OffsetMap


def test_later_records_supersede_earlier_ones() -> None:
    offsets = OffsetMap(10)
    assert offsets.put_all([b"a", b"b", b"a"], [5, 6, 7])
    assert offsets.find_last([b"a", b"b", b"a", b"c"], [5, 6, 7, 8]) == [False, True, True, True]
    assert offsets.find_last([b"b", b"a"], [6, 9]) is None


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 31, 32, 100_000])
def test_keys_of_any_size_are_told_apart(size: int) -> None:
    offsets = OffsetMap(10)
    key, other = b"a" * size, b"a" * (size + 1)
    assert offsets.put_all([key, other], [1, 2])
    assert offsets.find_last([key, key, other], [0, 1, 1]) == [False, True, False]


def test_no_key_stands_for_the_hash_of_another() -> None:
    offsets = OffsetMap(10)
    long = b"a" * 100
    offsets.put_all([md5(long).digest()], [5])
    assert offsets.find_last([long], [0]) is None


def test_records_without_a_key_are_last_only_behind_what_it_knows() -> None:
    offsets = OffsetMap(10)
    assert offsets.put_all([None, b"a"], [1, 2])
    offsets.latest_offset = 2
    assert len(offsets) == 1
    assert offsets.find_last([None, b"a", None], [1, 2, 3]) == [False, True, True]


def test_what_has_no_room_is_not_known() -> None:
    offsets = OffsetMap(2)
    assert not offsets.put_all([b"a", None, b"b", b"a", b"c", b"a"], [1, 2, 3, 4, 5, 6])
    assert (offsets.latest_offset, offsets.utilization) == (4, 1.0)
    assert offsets.find_last([b"a", b"a"], [1, 4]) == [False, True]


def test_cleared_it_knows_nothing() -> None:
    offsets = OffsetMap(2)
    offsets.put_all([b"a"], [1])
    offsets.clear()
    assert (len(offsets), offsets.latest_offset) == (0, -1)
    assert offsets.find_last([b"a"], [0]) is None


def test_it_keeps_to_its_memory_whatever_its_size() -> None:
    for count in (1000, 87_382, 180_000):  # just above where a dict grows, and elsewhere
        memory = count * BYTES_PER_KEY
        tracemalloc.start()
        offsets = OffsetMap.of_size(memory, 1.0)
        assert offsets.capacity == count
        for first in range(0, count, 500):
            part = range(first, min(first + 500, count))
            assert offsets.put_all([b"key-%020d" % i for i in part], [2**40 + i for i in part])
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held <= memory * 1.05
        assert not offsets.put_all([b"one more"], [2**50])
