"""Both record readers give the same records, columns, positions and errors, in the same places."""

from __future__ import annotations

import base64
import random
import struct
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.accel.readers import LOWEST, PLANS, Call, agree, both, flat, native, packed
from harness.golden import golden_lines
from kclient._accel.reference import reader as reference_reader
from kclient.compress import CompressionType
from kclient.consumer.types import ConsumerRecord
from kclient.errors import InvalidRecordError
from kclient.record import (
    ControlRecordType,
    EndTransactionMarker,
    MemoryRecordsBuilder,
    TimestampType,
    batch_headers,
)
from kclient.record import constants as c

GOLDEN = [bytes.fromhex(line["hex"]) for line in golden_lines("record_batches")]


@pytest.mark.golden
@pytest.mark.parametrize("check_crc", [True, False], ids=["check_crc", "no_check"])
@pytest.mark.parametrize("part", range(8))
def test_all_golden_batches_are_read_alike(part: int, check_crc: bool) -> None:
    for data in GOLDEN[part::8]:
        agree(data, check_crc=check_crc, decompress_max=1 << 26)


@pytest.mark.golden
def test_golden_batches_are_read_alike_from_every_offset() -> None:
    for data in [data for data in GOLDEN if len(data) < 2000][::5]:
        ends = {header.next_offset for header in valid_headers(data)}
        for from_offset in sorted({0, 1, *(end + step for end in ends for step in (-2, -1, 0, 1))}):
            if abs(from_offset) < 2**63 - 1:
                both(data, PLANS[5], from_offset)
                both(data, PLANS[2], from_offset, aborted=[])


def valid_headers(data: bytes) -> Iterator[Any]:
    try:
        yield from batch_headers(data)
    except Exception:
        return


@pytest.mark.golden
def test_all_compressed_payloads_end_alike() -> None:
    for line in golden_lines("compression"):
        if line["magic"] == 2:
            codec = CompressionType.for_name(line["codec"])
            data = packed(codec, base64.b64decode(line["payload"]), 3)
            for plan in (PLANS[0], PLANS[2]):
                both(data, plan, decompress_max=1 << 26)


# Made batches.

SMALL = st.one_of(st.none(), st.binary(max_size=20), st.binary(min_size=100, max_size=200))
NAMES = st.one_of(st.sampled_from(["", "a", "trace-id", "überschrift", "🎉"]), st.text(max_size=5))
TIMES = st.one_of(
    st.integers(0, 2000), st.sampled_from([-1, 0, 2**62, 2**63 - 1, -(2**63)]), st.integers(LOWEST, 2**63 - 1)
)


def encodable(text: str) -> bool:
    return not any(0xD800 <= ord(each) < 0xE000 for each in text)


HEADERS = st.one_of(
    st.just(()),
    st.lists(st.tuples(NAMES.filter(encodable), SMALL), max_size=3).map(tuple),
    st.just((("a", b"1"),)),
)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Some batches, one after the other in offset order, with everything that a log can hold."""
    parts: list[bytes] = []
    offset = draw(st.sampled_from([0, 0, 7, 2**40, -5, 2**63 - 150]))
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["plain", "plain", "transaction", "marker", "old", "empty", "gaps"]))
        codec = CompressionType(draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4])))
        producer = draw(st.integers(0, 2))
        if kind == "marker":
            which = draw(st.sampled_from([ControlRecordType.ABORT, ControlRecordType.COMMIT]))
            epoch = draw(st.sampled_from([-1, 0, 9]))
            parts.append(EndTransactionMarker(which, 0).batch(offset, 1, epoch, producer, 0))
            offset += 1
            continue
        settings: dict[str, Any] = {"base_offset": offset, "compression": codec}
        if kind == "old":
            settings["magic"] = draw(st.integers(0, 1))
            if codec is CompressionType.ZSTD:
                settings["compression"] = CompressionType.GZIP
            if offset < 0:
                continue
            if settings["magic"] == 0:
                settings["timestamp_type"] = TimestampType.NO_TIMESTAMP_TYPE
        elif kind == "transaction":
            settings |= {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": 0,
                "is_transactional": True,
            }
        if kind != "old":
            settings["partition_leader_epoch"] = draw(st.sampled_from([-1, 0, 9]))
            if draw(st.booleans()):
                settings |= {"timestamp_type": TimestampType.LOG_APPEND_TIME, "log_append_time_ms": 77}
        builder = MemoryRecordsBuilder(**settings)
        if kind == "empty":
            parts.append(builder.empty_batch(offset + 3, -1))
            offset += 4
            continue
        base_ms = draw(TIMES)
        for _ in range(draw(st.integers(1, 5))):
            at = builder.next_offset + (draw(st.integers(0, 3)) if kind == "gaps" else 0)
            # A difference of two times has to fit in 64 bits, too, where it is written.
            time_ms = (
                base_ms
                if kind == "old"
                else max(min(base_ms + draw(st.integers(-70, 9000)), 2**63 - 1), LOWEST)
            )
            headers = () if kind == "old" else draw(HEADERS)
            builder.append(time_ms, draw(SMALL), draw(SMALL), headers, offset=at)
        last = builder.next_offset - 1
        if kind == "gaps":
            last += draw(st.integers(0, 3))
        parts.append(builder.close(last))
        offset = last + 1
    return b"".join(parts)


ABORTED = st.one_of(st.none(), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), max_size=4))
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(1, 4)),
        st.tuples(st.just("columns"), st.one_of(st.none(), st.integers(1, 4)), st.booleans()),
        st.tuples(st.just("columns"), st.just(None), st.booleans(), st.integers(0, 300)),
    ),
    min_size=1,
    max_size=4,
)
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(batches(), CALLS, st.integers(-6, 30), ABORTED)
def test_valid_batches_are_read_alike(
    data: bytes, calls: list[Call], from_offset: int, aborted: list[tuple[int, int]] | None
) -> None:
    both(data, calls, aborted=aborted)
    both(data, calls, from_offset, aborted=aborted)
    agree(data, aborted=aborted)


@QUICK
@given(batches(), CALLS, ABORTED, st.data())
def test_batches_with_a_changed_byte_are_read_alike(
    data: bytes, calls: list[Call], aborted: list[tuple[int, int]] | None, draw: st.DataObject
) -> None:
    if not data:
        return
    changed = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 2))):
        at = draw.draw(st.integers(0, len(changed) - 1))
        changed[at] = draw.draw(st.one_of(st.integers(0, 255), st.sampled_from([0x80, 0xFF, 0, 1, 0x7F])))
    for check_crc in (True, False):
        both(bytes(changed), calls, check_crc=check_crc, aborted=aborted)
    agree(bytes(changed), check_crc=False, aborted=aborted)


@QUICK
@given(st.binary(max_size=80), st.integers(-1, 12), CALLS, st.sampled_from([0, 0, 0, 0x20, 1, 2, 3, 4, 5]))
def test_a_batch_of_garbage_ends_alike(body: bytes, count: int, calls: list[Call], attributes: int) -> None:
    data = packed(0, body, count, attributes)
    both(data, calls, aborted=[(-1, 0)])
    agree(data)


@QUICK
@given(st.binary(max_size=200), CALLS)
def test_garbage_ends_alike(data: bytes, calls: list[Call]) -> None:
    both(data, calls, check_crc=False)


# Records that are written alike: the pure body reads them together.


@st.composite
def alike(draw: st.DrawFn) -> bytes:
    """A batch of stretches of records of the same sizes."""
    base = draw(st.sampled_from([0, 100, 2**63 - 100]))
    codec = CompressionType(draw(st.sampled_from([0, 0, 1])))
    builder = MemoryRecordsBuilder(base_offset=base, compression=codec)
    time_ms = 1000
    for _ in range(draw(st.integers(1, 3))):
        key, value = draw(SMALL), draw(SMALL)
        headers = draw(st.sampled_from([(), (), (("a", b"1"),)]))
        step = draw(st.sampled_from([0, 0, 1, 40, -1]))
        for _ in range(draw(st.integers(1, 100))):
            if builder.next_offset - base >= 98:
                break
            time_ms += step
            builder.append(time_ms, key, value, headers)
        if draw(st.booleans()) and builder.next_offset - base < 90:
            builder.append(time_ms, key, value, headers, offset=builder.next_offset + 2)
    return builder.close()


MANY = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(1, 60)),
        st.tuples(st.just("columns"), st.one_of(st.none(), st.integers(1, 60)), st.booleans()),
        st.tuples(st.just("columns"), st.just(None), st.booleans(), st.integers(0, 3000)),
    ),
    min_size=1,
    max_size=4,
)


@QUICK
@given(alike(), MANY, st.integers(-3, 200), st.data())
def test_records_that_are_alike_are_read_alike(
    data: bytes, calls: list[Call], from_offset: int, draw: st.DataObject
) -> None:
    both(data, calls)
    both(data, calls, from_offset)
    changed = bytearray(data)
    at = draw.draw(st.integers(0, len(changed) - 1))
    changed[at] = draw.draw(st.one_of(st.integers(0, 255), st.sampled_from([0x80, 0xFF, 0, 1, 0x7F])))
    both(changed, calls, check_crc=False)
    agree(changed, check_crc=False)
    late = bytearray(data)
    struct.pack_into(">q", late, 27, 2**63 - 100)
    both(late, calls, check_crc=False)


def test_every_byte_of_records_that_are_alike_can_be_any_other() -> None:
    builder = MemoryRecordsBuilder(base_offset=3)
    for index in range(20):
        builder.append(1000 + index // 9, b"k%02d" % index, b"value %03d" % index)
    data = builder.close()
    chance = random.Random(5)
    for at in range(len(data)):
        for value in {data[at] ^ 1, data[at] ^ 2, 0x80, 0xFF, chance.randrange(256)}:
            changed = bytearray(data)
            changed[at] = value
            both(changed, PLANS[1], check_crc=False)
            both(changed, [("read", 7), ("columns", 3, False)], 5, check_crc=False)


@pytest.mark.parametrize("size", [0, 1, 500])
def test_a_batch_of_many_records_is_read_alike(size: int) -> None:
    builder = MemoryRecordsBuilder(base_offset=5)
    for index in range(17_000 if size < 500 else 300):
        builder.append(1000 + index // 100, None, bytes(size))
    data = builder.close()
    for plan in ([("read", 500)], [("read", 7000)], [("columns", None, False)], [("columns", 5000, True)]):
        both(data, plan, 70, decompress_max=1 << 26)


def test_every_byte_of_a_batch_can_be_any_other() -> None:
    builder = MemoryRecordsBuilder(base_offset=3)
    builder.append(1000, b"k", b"value", [("name", b"x" * 13), ("n", None)])
    builder.append(1070, None, None)
    builder.append(90_000, b"k" * 100, b"v" * 200)
    data = builder.close()
    chance = random.Random(4)
    for at in range(len(data)):
        for value in {data[at] ^ 1, 0, 0x7F, 0x80, 0xFF, chance.randrange(256)}:
            changed = bytearray(data)
            changed[at] = value
            both(changed, PLANS[5], check_crc=False, aborted=[])


def test_every_cut_ends_alike() -> None:
    builder = MemoryRecordsBuilder()
    builder.append(1000, b"k", b"value", [("name", b"x")])
    builder.append(1070, None, b"v" * 70)
    body = builder.close()[c.BATCH_OVERHEAD :]
    for size in range(len(body)):
        for count in (1, 2, 3):
            agree(packed(0, body[:size], count))


@pytest.mark.parametrize("base_offset", [LOWEST, LOWEST + 1, -3, 2**63 - 5, 2**63 - 3, 2**63 - 2, 2**63 - 1])
@pytest.mark.parametrize("last_delta", [-5, -1, 0, 2, 2**31 - 1])
def test_offsets_at_the_ends_of_what_there_is_end_alike(base_offset: int, last_delta: int) -> None:
    builder = MemoryRecordsBuilder()
    for _ in range(3):
        builder.append(1000, b"k", b"value")
    batch = bytearray(builder.close())
    struct.pack_into(">q", batch, 0, base_offset)
    struct.pack_into(">i", batch, 23, last_delta)
    # The second record lies before the first.
    batch[c.BATCH_OVERHEAD + 13 + 3] = 3
    agree(batch, check_crc=False)
    agree(batch, check_crc=False, aborted=[(-1, LOWEST), (1, 5)])


@pytest.mark.parametrize("base_ms", [LOWEST, -1, 0, 2**63 - 1])
def test_times_add_up_in_64_bits(base_ms: int) -> None:
    builder = MemoryRecordsBuilder()
    for delta in (0, 1, 2**63 - 1, LOWEST, -1):
        builder.append(delta, None, b"v")
    batch = bytearray(builder.close())
    struct.pack_into(">q", batch, 27, base_ms)
    told, _ = flat(both(batch, PLANS[1], check_crc=False))
    assert [facts[1] for facts in told] == [
        (base_ms + delta + 2**63) % 2**64 - 2**63 for delta in (0, 1, 2**63 - 1, LOWEST, -1)
    ]
    agree(batch, check_crc=False)


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_decompressed_data_that_breaks_off_gives_the_records_before(codec: int) -> None:
    builder = MemoryRecordsBuilder(compression=CompressionType(codec))
    for index in range(300):
        builder.append(1000 + index, b"k%d" % index, random.Random(index).randbytes(80))
    data = bytearray(builder.close())
    for at in range(c.BATCH_OVERHEAD, len(data), max(1, len(data) // 40)):
        changed = bytearray(data)
        changed[at] ^= 0x41
        for plan in (PLANS[1], PLANS[2], PLANS[3]):
            both(changed, plan, check_crc=False)


@pytest.mark.parametrize(
    "name", [b"\xff", b"ok\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x8e", b"\xc3\xbc", b"a" * 40]
)
def test_header_names_are_made_valid_alike(name: bytes) -> None:
    builder = MemoryRecordsBuilder()
    builder.append(1, None, b"v", [("x" * len(name), b"1")])
    builder.append(1, None, b"v")
    builder.append(1, None, b"v", [("x" * len(name), None), ("last", b"")])
    data = builder.close()
    agree(packed(0, data[c.BATCH_OVERHEAD :].replace(b"x" * len(name), name), 3))


def test_no_more_is_decompressed_in_one_call_than_the_limit_and_one_batch() -> None:
    parts = []
    for base in range(0, 50, 10):
        builder = MemoryRecordsBuilder(base_offset=base, compression=CompressionType.ZSTD)
        for _ in range(10):
            builder.append(1, None, bytes(1000))
        parts.append(builder.close())
    told = both(b"".join(parts), [("columns", None, False)], decompress_max=15_000)
    assert [len(outcome) for outcome, *_ in told if outcome] == [20, 20, 10]


def test_a_copied_column_has_no_more_bytes_than_allowed_and_one_record_at_least() -> None:
    builder = MemoryRecordsBuilder()
    for size in (5, 5, 5, 100, 1):
        builder.append(1, None, bytes(size))
    told = both(builder.close(), [("columns", None, False, 10)])
    assert [[len(facts[4]) for facts in outcome] for outcome, *_ in told if outcome] == [
        [5, 5],
        [5],
        [100],
        [1],
    ]


@pytest.mark.parametrize("body", [reference_reader, native], ids=["python", "c"])
@pytest.mark.parametrize("how", ["read", "columns"])
def test_a_false_count_costs_no_memory(body: Any, how: str) -> None:
    data = packed(0, bytes(50_000), 2**31 - 1)
    reader = body.RecordReader(data, 0, len(data), "t", 3, 0, True, ConsumerRecord)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRecordError, match="offset 0"):
            reader.read(2**31) if how == "read" else reader.read_columns(None, False)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
