"""end_of_batches of the reference body: the offset behind fetched batches, from their headers alone."""

from __future__ import annotations

import struct

import pytest

from kclient._accel.reference.batch_end import end_of_batches
from kclient.record import MemoryRecordsBuilder

HEADER = struct.Struct(">qiibIhi")


def batch(base_offset: int, count: int, magic: int = 2) -> bytes:
    builder = MemoryRecordsBuilder(base_offset=base_offset, magic=magic)
    for _ in range(count):
        builder.append(1000, b"k", b"value")
    return builder.close()


def header(base: int = 0, length: int = 15, magic: int = 2, last_delta: int = 0) -> bytes:
    return HEADER.pack(base, length, 0, magic, 0, 0, last_delta)


@pytest.mark.parametrize("data", [b"", bytes(26), batch(5, 2)[:-1]], ids=["nothing", "too short", "cut off"])
def test_without_a_whole_batch_there_is_no_end(data: bytes) -> None:
    assert end_of_batches(data) is None


def test_the_end_is_that_of_the_last_whole_batch() -> None:
    data = batch(5, 3) + batch(10, 2)
    assert end_of_batches(memoryview(data)) == 12
    for size in (len(data) - 1, len(batch(5, 3)) + 30, len(batch(5, 3)) + 1):
        assert end_of_batches(data[:size]) == 8


def test_offsets_that_compaction_removed_at_a_batchs_end_are_passed() -> None:
    builder = MemoryRecordsBuilder(base_offset=20)
    builder.append(1, None, b"v")
    assert end_of_batches(builder.close(last_offset=29)) == 30
    assert end_of_batches(MemoryRecordsBuilder(base_offset=30).empty_batch(34, -1)) == 35


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_entry_has_the_offset_of_its_last_record(magic: int) -> None:
    assert end_of_batches(batch(7, 3, magic)) == 10
    # What stands at the place of a last offset delta there is something else.
    assert end_of_batches(header(base=7, magic=magic, last_delta=-1)) == 8


@pytest.mark.parametrize("length", [-1, 0, 13, -(2**31)])
def test_a_length_that_cannot_be_makes_all_of_it_unknown(length: int) -> None:
    assert end_of_batches(batch(5, 3) + header(base=8, length=length)) is None


def test_a_negative_last_offset_delta_makes_all_of_it_unknown() -> None:
    assert end_of_batches(batch(5, 3) + header(base=8, last_delta=-1)) is None


def test_a_length_beyond_the_data_is_a_batch_that_was_cut_off() -> None:
    assert end_of_batches(batch(5, 3) + header(base=8, length=2**31 - 1)) == 8
