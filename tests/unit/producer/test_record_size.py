"""RecordSizes: an upper bound of a record alone in its batch, and the two limits it is held against."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.errors import RecordTooLargeError
from kclient.producer.internals.record_size import RecordSizes
from kclient.record import BatchBuilder, BatchResult

NO_LIMIT = RecordSizes(1 << 30, 1 << 30)
contents = st.none() | st.binary(max_size=200)
names = st.sampled_from(["", "h", "é", "€" * 30])
EMPTY_BYTES = NO_LIMIT.check("t", None, None, ())


@given(contents, contents, st.lists(st.tuples(names, contents), max_size=3), st.integers(0, 2**41))
def test_no_record_takes_more_than_its_bound(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], timestamp_ms: int
) -> None:
    builder = BatchBuilder("t", 0, 4096, BatchResult("t", 0), 0)
    assert builder.append(timestamp_ms, key, value, headers or None) is not None
    assert builder.size <= NO_LIMIT.check("t", key, value, headers) <= builder.size + 25


@pytest.mark.parametrize("length", [0, 1, 63, 64, 8191, 8192, 1 << 20, 1 << 27])
def test_a_length_takes_as_many_bytes_as_its_varint(length: int) -> None:
    zigzag_bytes = max(1, -(-(2 * length).bit_length() // 7))
    grown = NO_LIMIT.check("t", None, bytes(length), ()) - EMPTY_BYTES
    assert grown == length + zigzag_bytes - 1


def test_headers_are_measured_in_bytes_of_utf8() -> None:
    assert NO_LIMIT.check("t", None, None, [("é", None)]) == EMPTY_BYTES + 1 + 2 + 1
    assert NO_LIMIT.check("t", None, None, [("", b"")] * 64) == EMPTY_BYTES + 64 * 2 + 1


def test_a_record_may_be_as_large_as_the_limit_and_no_larger() -> None:
    size = NO_LIMIT.check("t", b"key", b"value", [("h", b"v")])
    assert RecordSizes(size, size).check("t", b"key", b"value", [("h", b"v")]) == size
    with pytest.raises(RecordTooLargeError, match=rf"record for t has {size} bytes.*max\.request\.size"):
        RecordSizes(size - 1, size).check("t", b"key", b"value", [("h", b"v")])
    with pytest.raises(RecordTooLargeError, match=r"buffer\.memory"):
        RecordSizes(size, size - 1).check("t", b"key", b"value", [("h", b"v")])


@pytest.mark.parametrize("limit", [100, 1000, 20_000, 1 << 21])
def test_what_is_taken_without_measuring_would_never_be_refused(limit: int) -> None:
    sizes = RecordSizes(limit, limit + 1)
    assert sizes.largest_batch == limit
    for key_bytes in (0, sizes.largest_plain // 2, sizes.largest_plain):
        if sizes.largest_plain >= 0:
            sizes.check("t", bytes(key_bytes), bytes(sizes.largest_plain - key_bytes), ())
    assert RecordSizes(limit + 1, limit).largest_plain == sizes.largest_plain
