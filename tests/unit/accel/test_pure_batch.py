"""Batches under construction."""

from __future__ import annotations

import threading
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient._accel import BatchBuilder, BatchResult, Future
from kclient._accel.reference.batch import BatchBuilder as PureBuilder
from kclient.compress import CompressionType, compress
from kclient.errors import CorruptRecordError
from kclient.record import RecordBatch

OPTIONAL = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.tuples(
        st.integers(0, 2**62),
        OPTIONAL,
        OPTIONAL,
        st.lists(st.tuples(st.text(max_size=8), OPTIONAL), max_size=3),
    ),
    min_size=1,
    max_size=200,
)


def builder(limit: int = 16384) -> BatchBuilder:
    return BatchBuilder("t", 0, limit, BatchResult("t", 0), 0)


def read(batch: BatchBuilder) -> RecordBatch:
    found = RecordBatch(memoryview(b"".join(batch.views())))
    found.ensure_valid()
    return found


def contents(batch: RecordBatch) -> list[tuple[Any, ...]]:
    return [(r.timestamp_ms, r.key, r.value, list(r.headers)) for r in batch.records()]


@given(RECORDS)
def test_what_is_appended_is_read_back(records: list[tuple[Any, ...]]) -> None:
    batch = builder(1 << 30)
    for timestamp, key, value, headers in records:
        assert batch.append(timestamp, key, value, headers) is not None
    batch.close(-1, -1, -1, 0)
    found = read(batch)
    assert contents(found) == records
    assert [r.offset for r in found.records()] == list(range(len(records)))
    assert found.max_timestamp_ms == max(record[0] for record in records)
    assert found.size_in_bytes == batch.size == batch.uncompressed_size


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(60, 70)), min_size=1, max_size=150))
def test_the_short_cut_for_alike_records_writes_what_the_long_way_writes(
    records: list[tuple[int, int]],
) -> None:
    short, long = (PureBuilder("t", 0, 1 << 30, BatchResult("t", 0), 0) for _ in range(2))
    for timestamp, size in records:
        short.append(timestamp, None, b"x" * size, None)
        long._cached_ts = -2
        long.append(timestamp, None, b"x" * size, ())
    assert bytes(short.freeze()) == bytes(long.freeze())


def test_offsets_of_three_bytes_are_written_right() -> None:
    batch = builder(1 << 30)
    for _ in range(9000):
        batch.append(5, None, b"v", None)
    batch.close(-1, -1, -1, 0)
    assert [r.offset for r in read(batch).records()] == list(range(9000))


def test_the_first_record_always_fits() -> None:
    batch = builder(100)
    assert batch.append(1, None, b"v" * 1000, None) is not None
    assert batch.append(1, None, b"", None) is None
    assert batch.count == 1


def test_a_batch_never_grows_beyond_its_limit() -> None:
    batch = builder(200)
    while batch.append(1, b"k", b"0123456789", None):
        assert batch.size <= 200
    assert batch.size > 200 - 20


def test_a_full_batch_takes_more_when_its_limit_grows() -> None:
    batch = builder(100)
    batch.append(1, None, b"v" * 50, None)
    assert batch.append(1, None, b"v" * 50, None) is None
    batch.grow_limit(200)
    batch.grow_limit(50)
    assert batch.append(1, None, b"v" * 50, None) is not None


def test_a_refused_value_leaves_the_batch_as_it_was() -> None:
    batch = builder()
    batch.append(1, None, b"good", None)
    size = batch.size
    for key, value, headers in ((None, "text", None), ("text", b"", None), (None, b"", [("h", "text")])):
        with pytest.raises(TypeError):
            batch.append(1, key, value, headers)  # type: ignore[arg-type]
    assert (batch.size, batch.count) == (size, 1)


def test_without_a_timestamp_the_record_has_that_of_now() -> None:
    batch = builder()
    batch.append(None, None, b"v", None)
    assert batch.max_timestamp_ms > 1_600_000_000_000


def test_nothing_can_be_appended_once_the_body_was_taken() -> None:
    batch = builder()
    batch.append(1, None, b"v", None)
    body = batch.freeze()
    assert batch.closed
    assert batch.append(1, None, b"v", None) is None
    assert len(body) == batch.size - 61


def test_a_compressed_body_takes_the_place_of_the_records() -> None:
    batch = builder()
    for _ in range(100):
        batch.append(1, b"key", b"value" * 10, None)
    batch.close(-1, -1, -1, CompressionType.GZIP, compress(CompressionType.GZIP, batch.freeze()))
    assert batch.size < batch.uncompressed_size
    found = read(batch)
    assert found.compression_type is CompressionType.GZIP
    assert contents(found) == [(1, b"key", b"value" * 10, [])] * 100


def test_closing_stamps_the_producers_place() -> None:
    batch = builder()
    batch.append(1, None, b"v", None)
    batch.close(99, 3, 17, 0x10)
    found = read(batch)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (99, 3, 17)
    assert found.is_transactional


def test_restamping_changes_what_is_sent_next_and_not_what_is_being_sent() -> None:
    batch = builder()
    batch.append(1, None, b"v", None)
    batch.close(99, 3, 17, 0)
    in_flight = batch.views()
    before = b"".join(in_flight)
    batch.restamp(99, 4, 0)
    assert b"".join(in_flight) == before
    assert (read(batch).producer_epoch, read(batch).base_sequence) == (4, 0)


def test_releasing_leaves_the_bytes_to_requests_that_carry_them() -> None:
    batch = builder()
    batch.append(1, None, b"v", None)
    batch.close(-1, -1, -1, 0)
    in_flight = batch.views()
    before = b"".join(in_flight)
    batch.release()
    assert b"".join(in_flight) == before
    with pytest.raises(ValueError):
        batch.views()


def test_what_does_not_fit_the_state_is_refused() -> None:
    batch = builder()
    with pytest.raises(ValueError):
        batch.close(-1, -1, -1, 0)
    batch.append(1, None, b"v", None)
    with pytest.raises(ValueError):
        batch.views()
    with pytest.raises(ValueError):
        batch.restamp(1, 1, 1)
    batch.close(-1, -1, -1, 0)
    with pytest.raises(ValueError):
        batch.close(-1, -1, -1, 0)


def test_futures_know_the_sizes_of_key_and_value() -> None:
    batch = builder()
    with_both = batch.append(5, b"key", b"value", None)
    with_none = batch.append(6, None, None, None)
    batch.result.complete(10)
    assert with_both is not None
    assert with_none is not None
    assert with_both.result() == ("t", 0, 10, 5, 3, 5)
    assert with_none.result() == ("t", 0, 11, 6, -1, -1)


def test_a_callback_given_with_a_record_hears_of_it() -> None:
    batch = builder()
    seen: list[Any] = []
    batch.append(5, None, b"a", None, lambda metadata, error: seen.append((metadata[2], error)))
    batch.append(5, None, b"b", None)
    batch.append(5, None, b"c", None, lambda metadata, error: seen.append((metadata[2], error)))
    batch.result.complete(10)
    assert seen == [(10, None), (12, None)]


@given(RECORDS, st.integers(62, 2000))
def test_splitting_keeps_every_record_and_its_future(records: list[tuple[Any, ...]], limit: int) -> None:
    batch = builder(1 << 30)
    futures = [batch.append(*record) for record in records]
    parts = batch.split(limit, lambda: BatchResult("t", 0))
    found: list[Any] = []
    for part in parts:
        assert part.size <= limit or part.count == 1
        part.close(-1, -1, -1, 0)
        found += contents(read(part))
        part.result.complete(1000 * len(found))
    assert found == records
    offsets = [future.result()[2] for future in futures if future is not None]
    assert offsets == sorted(set(offsets))
    assert len(offsets) == len(records)


def test_records_of_a_compressed_batch_can_be_listed_for_splitting() -> None:
    batch = builder()
    batch.append(7, b"k", b"v", [("h", None)])
    batch.close(-1, -1, -1, CompressionType.ZSTD, compress(CompressionType.ZSTD, batch.freeze()))
    [(timestamp, key, value, headers, future)] = batch.records()
    assert (timestamp, key, value, headers) == (7, b"k", b"v", (("h", None),))
    assert isinstance(future, Future)


def test_a_batch_closed_compressed_lets_go_of_its_uncompressed_records() -> None:
    batch = builder(1 << 30)
    tracemalloc.start()
    try:
        while batch.append(7, b"key", b"value" * 200, None) and batch.count < 1000:
            pass
        before = batch.uncompressed_size
        assert tracemalloc.get_traced_memory()[0] > before - 1000
        batch.close(-1, -1, -1, CompressionType.GZIP, compress(CompressionType.GZIP, batch.freeze()))
        assert tracemalloc.get_traced_memory()[0] < batch.size + 10_000 < before // 10
    finally:
        tracemalloc.stop()
    assert batch.uncompressed_size == before
    assert len(batch.freeze()) == before - 61
    assert [value for _, _, value, _, _ in batch.records()] == [b"value" * 200] * 1000


@pytest.mark.parametrize("damage", ["cut off", "another"])
def test_records_that_cannot_be_decompressed_are_an_error_and_change_nothing(damage: str) -> None:
    batch = builder()
    future = batch.append(7, b"k", b"v" * 100, None)
    compressed = compress(CompressionType.GZIP, batch.freeze())
    other = compress(CompressionType.GZIP, b"less")
    batch.close(-1, -1, -1, CompressionType.GZIP, compressed[:-10] if damage == "cut off" else other)
    for use in (batch.freeze, lambda: list(batch.records()), lambda: batch.split(70, lambda: batch.result)):
        with pytest.raises(CorruptRecordError):
            use()
    batch.result.complete(5)
    assert future is not None
    assert future.result(0)[2] == 5


def test_a_released_batch_cannot_be_closed() -> None:
    batch = builder()
    batch.append(1, None, b"v", None)
    batch.release()
    with pytest.raises(ValueError):
        batch.close(-1, -1, -1, 0)


def test_threads_append_while_another_closes_and_nothing_is_lost() -> None:
    for _ in range(20):
        batch = builder(1 << 30)
        batch.append(1, None, b"first", None)
        taken: list[int] = []
        start = threading.Barrier(3)

        def append(batch: BatchBuilder = batch, taken: list[int] = taken, start: Any = start) -> None:
            start.wait()
            while batch.append(1, None, b"v", None):
                taken.append(1)

        threads = [threading.Thread(target=append) for _ in range(2)]
        for thread in threads:
            thread.start()
        start.wait()
        batch.close(-1, -1, -1, 0)
        for thread in threads:
            thread.join()
        assert batch.count == len(taken) + 1
        assert len(list(read(batch).records())) == batch.count
