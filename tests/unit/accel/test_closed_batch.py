"""The records of a closed batch, listed, spread over smaller batches, and decompressed."""

from __future__ import annotations

from typing import Any

import pytest

import kclient.record  # noqa: F401 - plugs in the codecs
from kclient._accel.reference import BatchBuilder, BatchResult, Future
from kclient._accel.shared.closed_batch import decompressed, records_of, spread
from kclient.compress import CompressionType, compress
from kclient.errors import CorruptRecordError

CREATED_MS = 77
MAX = 2**63 - 1


def batch(*records: tuple[Any, ...]) -> BatchBuilder:
    made = BatchBuilder("t", 3, 1 << 20, BatchResult("t", 3), CREATED_MS)
    for timestamp_ms, key, value in records:
        assert made.append(timestamp_ms, key, value, (("h", None),)) is not None
    return made


def parts_of(whole: BatchBuilder, limit: int) -> list[BatchBuilder]:
    return spread(whole, limit, lambda: BatchResult("t", 3), BatchBuilder)


def values(one: BatchBuilder) -> list[bytes | None]:
    return [value for _, _, value, _, _ in one.records()]


def test_records_have_their_times_and_a_future_with_their_sizes() -> None:
    made = batch((1000, b"key", b"value"), (998, None, b""), (1003, b"", None))
    found = list(records_of(made, 1000, lambda *facts: facts))
    assert [record[:4] for record in found] == [
        (1000, b"key", b"value", (("h", None),)),
        (998, None, b"", (("h", None),)),
        (1003, b"", None, (("h", None),)),
    ]
    assert [future for *_, future in found] == [
        (made.result, 0, (1000, 3, 5)),
        (made.result, 1, (998, -1, 0)),
        (made.result, 2, (1003, 0, -1)),
    ]


def test_parts_are_filled_in_order_as_far_as_the_limit_allows() -> None:
    whole = batch(*((5, None, b"%02d" % number * 10) for number in range(7)))
    size = (whole.size - 61) // 7
    parts = parts_of(whole, 61 + 3 * size)
    assert [values(part) for part in parts] == [values(whole)[:3], values(whole)[3:6], values(whole)[6:]]
    for part in parts:
        assert (part.topic, part.partition, part.created_ms, part.limit) == (
            "t",
            3,
            CREATED_MS,
            61 + 3 * size,
        )


def test_a_record_that_is_larger_than_the_limit_has_a_part_of_its_own() -> None:
    whole = batch((5, None, b"a"), (5, None, b"b" * 500), (5, None, b"c"), (5, None, b"d"))
    assert [values(part) for part in parts_of(whole, 100)] == [[b"a"], [b"b" * 500], [b"c", b"d"]]


def test_a_record_too_far_in_time_from_the_first_one_of_a_part_begins_another() -> None:
    whole = batch((5, None, b"x" * 50), (-1, None, b"b"), (MAX, None, b"c"))
    parts = parts_of(whole, 61 + 40)
    assert [values(part) for part in parts] == [[b"x" * 50], [b"b"], [b"c"]]
    assert [next(iter(part.records()))[0] for part in parts] == [5, -1, MAX]


def test_the_parts_results_take_the_place_of_the_batchs() -> None:
    whole = batch(*((5, None, b"x" * 10) for _ in range(5)))
    futures = [Future(whole.result, index, (5, -1, 10)) for index in range(5)]
    first, second, third = parts_of(whole, 61 + 2 * (whole.size - 61) // 5)
    for part, base_offset in ((second, 200), (third, 300), (first, 100)):
        part.result.complete(base_offset)
    assert [future.result(0)[2] for future in futures] == [100, 101, 200, 201, 300]
    assert not whole.result.complete(5)


def test_a_batch_whose_outcome_is_known_is_not_spread() -> None:
    whole = batch((5, None, b"a"))
    whole.result.complete(1)
    with pytest.raises(ValueError, match="complete"):
        parts_of(whole, 100)


def test_an_empty_batch_has_no_parts_to_take_its_place() -> None:
    with pytest.raises(ValueError, match="at least one successor"):
        parts_of(batch(), 100)


def test_records_that_come_back_in_another_size_are_corrupt_and_say_which_batch() -> None:
    packed = memoryview(compress(CompressionType.GZIP, b"12345"))
    made = batch()
    assert bytes(decompressed(made, CompressionType.GZIP, packed, 5)) == b"12345"
    with pytest.raises(CorruptRecordError, match="t-3: 6 bytes of records were compressed, and 5 come back"):
        decompressed(made, CompressionType.GZIP, packed, 6)


def test_what_the_codec_says_of_damaged_bytes_is_raised() -> None:
    packed = compress(CompressionType.GZIP, bytes(5000))
    with pytest.raises(CorruptRecordError) as caught:
        decompressed(batch(), CompressionType.GZIP, memoryview(packed)[:-8], 5000)
    assert "come back" not in str(caught.value)
