"""Batches of every magic, built record by record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.compress import CompressionType
from kclient.record import LegacyBatch, MemoryRecordsBuilder, RecordBatch, TimestampType, iter_batches

OPTIONAL = st.none() | st.binary(max_size=100)


@given(
    magic=st.integers(0, 2),
    codec=st.sampled_from(
        [CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4]
    ),
    base_offset=st.integers(0, 2**40),
    records=st.lists(
        st.tuples(st.integers(1, 50), st.integers(0, 2**41), OPTIONAL, OPTIONAL), min_size=1, max_size=40
    ),
)
def test_what_is_built_is_read_back(
    magic: int, codec: CompressionType, base_offset: int, records: list[tuple[Any, ...]]
) -> None:
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP_TYPE
    builder = MemoryRecordsBuilder(
        magic=magic, compression=codec, base_offset=base_offset, timestamp_type=kind
    )
    offset = base_offset
    expected = []
    for step, timestamp, key, value in records:
        offset += step
        builder.append(timestamp, key, value, offset=offset)
        expected.append((offset, timestamp if magic else -1, key, value))
    batches = list(iter_batches(builder.close()))
    for batch in batches:
        batch.ensure_valid()
    found = [(r.offset, r.timestamp_ms, r.key, r.value) for batch in batches for r in batch.records()]
    assert found == expected
    assert batches[-1].last_offset == offset


def test_offsets_count_on_by_themselves() -> None:
    builder = MemoryRecordsBuilder(base_offset=7)
    builder.append(1, None, b"a")
    builder.append(1, None, b"b", offset=20)
    builder.append(1, None, b"c")
    assert (builder.next_offset, builder.count) == (22, 3)
    [batch] = iter_batches(builder.close())
    assert [record.offset for record in batch.records()] == [7, 20, 21]


def test_an_offset_may_not_go_back() -> None:
    builder = MemoryRecordsBuilder()
    builder.append(1, None, b"a", offset=5)
    with pytest.raises(ValueError, match="offset 5 does not come after 5"):
        builder.append(1, None, b"b", offset=5)


def test_the_size_so_far_is_that_of_the_uncompressed_batch() -> None:
    builder = MemoryRecordsBuilder()
    builder.append(1, b"k", b"v", [("h", None)])
    assert builder.uncompressed_size == len(builder.close())


def test_without_records_there_is_no_batch_unless_it_is_asked_for() -> None:
    assert MemoryRecordsBuilder().close() == b""
    builder = MemoryRecordsBuilder(
        base_offset=5, producer_id=9, producer_epoch=1, base_sequence=3, compression=CompressionType.GZIP
    )
    batch = RecordBatch(memoryview(builder.empty_batch(8, 1234)))
    batch.ensure_valid()
    assert (batch.count, batch.last_offset, batch.last_sequence, batch.max_timestamp_ms) == (0, 8, 6, 1234)
    assert batch.compression_type is CompressionType.NONE
    assert list(batch.records()) == []
    builder.append(1, None, None)
    with pytest.raises(ValueError):
        builder.empty_batch(8, 1)


def test_the_delete_horizon_is_what_timestamps_are_relative_to() -> None:
    builder = MemoryRecordsBuilder(delete_horizon_ms=5000)
    builder.append(3000, b"k", None)
    [batch] = iter_batches(builder.close())
    assert isinstance(batch, RecordBatch)
    assert (batch.delete_horizon_ms, batch.base_timestamp_ms) == (5000, 5000)
    assert [record.timestamp_ms for record in batch.records()] == [3000]


@pytest.mark.parametrize(
    "settings",
    [
        {"magic": 3},
        {"magic": -1},
        {"magic": 1, "timestamp_type": TimestampType.NO_TIMESTAMP_TYPE},
        {"magic": 1, "is_transactional": True},
        {"magic": 0, "delete_horizon_ms": 5},
        {"magic": 1, "compression": CompressionType.ZSTD},
    ],
)
def test_what_a_magic_cannot_express_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="magic"):
        MemoryRecordsBuilder(**settings)


def test_old_formats_have_no_headers() -> None:
    with pytest.raises(ValueError, match="headers"):
        MemoryRecordsBuilder(magic=1).append(1, None, None, [("h", None)])


def test_a_compressed_old_batch_is_one_message_with_relative_offsets() -> None:
    builder = MemoryRecordsBuilder(magic=1, compression=CompressionType.GZIP, base_offset=100)
    for n in range(3):
        builder.append(50 - n, None, b"%d" % n)
    [batch] = iter_batches(builder.close())
    assert isinstance(batch, LegacyBatch)
    assert (batch.base_offset, batch.last_offset, batch.max_timestamp_ms) == (100, 102, 50)
