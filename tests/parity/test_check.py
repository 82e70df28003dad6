"""Both bodies say the same of records that are about to be appended: sound or not, and how late the latest is."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.golden import golden_lines
from kclient._accel import encode_record
from kclient._accel.reference.check import largest_timestamp
from kclient.record import MemoryRecordsBuilder, RecordBatch, iter_batches

native = pytest.importorskip("kclient._accel.native.reader", reason="the native body is not built")

TIMES = st.integers(-(2**63), 2**63 - 1)


def outcome(body: Any, *arguments: Any) -> int | str:
    try:
        return int(body(*arguments))
    except ValueError as error:
        return str(error)


def agree(data: bytes, count: int, base_ms: int = 0) -> int | str:
    found = outcome(largest_timestamp, data, count, base_ms)
    assert outcome(native.largest_timestamp, memoryview(data), count, base_ms) == found
    return found


@given(st.binary(max_size=60), st.integers(0, 4), TIMES)
def test_any_bytes_are_judged_alike(data: bytes, count: int, base_ms: int) -> None:
    agree(data, count, base_ms)


@pytest.mark.golden
def test_golden_records_are_judged_alike_wherever_they_are_cut_or_damaged() -> None:
    for line in islice(golden_lines("record_batches"), 60):
        for found in iter_batches(bytes.fromhex(line["hex"])):
            if isinstance(found, RecordBatch) and not found.compression_type and found.count:
                payload = bytes(found.payload)
                agree(payload, found.count, found.base_timestamp_ms)
                for at in range(0, len(payload), 1 + len(payload) // 40):
                    agree(payload[:at], found.count)
                    agree(payload[:at] + b"\x81" + payload[at + 1 :], found.count)


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([5, 9, 3], 109),
        ([7] * 40, 107),
        ([*range(30), 7], 129),
        ([-101, -200], -1),
        ([2**63 - 1], -1),
        ([], -1),
    ],
)
def test_the_latest_is_found_wherever_it_is(deltas: list[int], expected: int) -> None:
    data = b"".join(encode_record(delta, number, b"k", b"v", ()) for number, delta in enumerate(deltas))
    assert agree(data, len(deltas), 100) == expected
    assert isinstance(agree(data, len(deltas) + 1), str)
    assert agree(data + b"\0", len(deltas)) == "1 bytes follow the last record"


def test_a_long_batch_is_judged_alike() -> None:
    builder = MemoryRecordsBuilder()
    for number in range(70_000):
        builder.append(number, None, b"v")
    (found,) = iter_batches(builder.close())
    assert agree(bytes(found.payload), found.count) == 69_999
