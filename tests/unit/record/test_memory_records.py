"""Batches in a buffer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.errors import CorruptRecordError, KafkaError
from kclient.record import LegacyBatch, MemoryRecordsBuilder, RecordBatch, batch_headers, iter_batches
from kclient.record.memory_records import parse_header


def made(offset: int, magic: int = 2) -> bytes:
    builder = MemoryRecordsBuilder(base_offset=offset, magic=magic, partition_leader_epoch=4)
    builder.append(1000, b"k", b"v")
    return builder.close(offset + 2)


def test_batches_of_all_magics_may_follow_each_other() -> None:
    data = made(0) + made(5, 1) + made(6, 0) + made(7)
    assert [(type(b), b.last_offset) for b in iter_batches(data)] == [
        (RecordBatch, 2),
        (LegacyBatch, 5),
        (LegacyBatch, 6),
        (RecordBatch, 9),
    ]


def test_headers_tell_positions_and_offsets() -> None:
    first, second = made(0), made(5, 1)
    headers = list(batch_headers(first + second))
    assert [(h.position, h.size_in_bytes, h.next_offset, h.magic) for h in headers] == [
        (0, len(first), 3, 2),
        (len(first), len(second), 6, 1),
    ]
    assert [(h.partition_leader_epoch, h.max_timestamp_ms, h.count) for h in headers] == [
        (4, 1000, 1),
        (-1, 1000, -1),
    ]


def test_views_write_through_to_the_buffer() -> None:
    data = bytearray(made(0) + made(3))
    for batch in iter_batches(data):
        assert isinstance(batch, RecordBatch)
        batch.set_base_offset(batch.base_offset + 100)
    assert [batch.base_offset for batch in iter_batches(data)] == [100, 103]


@given(st.integers(0, len(made(0)) - 1))
def test_a_batch_cut_off_at_the_end_is_left_out(cut: int) -> None:
    data = made(0) + made(3)[:cut]
    assert [batch.base_offset for batch in iter_batches(data)] == [0]
    assert [header.base_offset for header in batch_headers(data)] == [0]


def test_where_no_batch_can_be_found_the_position_is_told() -> None:
    with pytest.raises(CorruptRecordError, match=f"position {len(made(0))}"):
        list(iter_batches(made(0) + bytes(100)))


def test_a_header_without_room_is_corrupt() -> None:
    data = bytearray(made(0))
    data[8:12] = (20).to_bytes(4, "big")
    with pytest.raises(CorruptRecordError):
        parse_header(data)
    with pytest.raises(CorruptRecordError):
        list(iter_batches(data))


@given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 3))
def test_hostile_bytes_raise_only_kafkas_errors(noise: bytes, at: int, magic: int) -> None:
    data = bytearray(made(0, min(magic, 2)) * 2)
    data[at : at + len(noise)] = noise
    for read in (
        lambda: list(batch_headers(data)),
        lambda: [list(batch.records(100_000)) for batch in iter_batches(data)],
    ):
        try:
            read()
        except KafkaError:
            pass
