"""From fetched bytes to the application's records."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import attrs
import pytest

from kclient._accel import hooks
from kclient._accel.reference import fast_construction
from kclient.compress import CompressionType, DecompressionLimitError
from kclient.consumer.types import ConsumerRecord
from kclient.errors import CorruptRecordError, InvalidRecordError, RecordDeserializationError
from kclient.record import (
    ControlRecordType,
    EndTransactionMarker,
    MemoryRecordsBuilder,
    RecordBatch,
    RecordReader,
)

T = TypeVar("T")


def batch(base_offset: int, values: Sequence[bytes | None], **settings: Any) -> bytes:
    builder = MemoryRecordsBuilder(base_offset=base_offset, **settings)
    for value in values:
        builder.append(1000, b"k", value)
    return builder.close()


def reader(data: bytes, from_offset: int = 0, **settings: Any) -> RecordReader:
    return RecordReader(data, 0, len(data), "t", 3, from_offset, True, ConsumerRecord, **settings)


def values(records: list[Any]) -> list[Any]:
    return [record.value for record in records]


def test_a_record_has_all_the_fields_of_its_batch() -> None:
    data = batch(5, [b"value"], partition_leader_epoch=8)
    [record] = reader(data, 5).read(10)
    assert record == ConsumerRecord("t", 3, 5, 1000, 0, b"k", b"value", (), 8, 1, 5)
    assert type(record) is ConsumerRecord


def test_reading_goes_on_where_it_stopped() -> None:
    data = batch(0, [b"a", b"b", b"c"]) + batch(3, [b"d", b"e"])
    source = reader(data)
    assert values(source.read(2)) == [b"a", b"b"]
    assert source.next_offset == 2
    assert values(source.read(2)) == [b"c", b"d"]
    assert not source.exhausted
    assert values(source.read(2)) == [b"e"]
    assert source.next_offset == 5
    assert source.exhausted
    assert source.read(2) == []
    assert source.bytes_read == len(data)


def test_only_the_given_part_of_the_buffer_is_read() -> None:
    data = batch(0, [b"a"])
    source = RecordReader(b"??" + data + b"??", 2, len(data), "t", 0, 0, True, ConsumerRecord)
    assert values(source.read(10)) == [b"a"]


def test_records_below_the_wanted_offset_are_left_out() -> None:
    data = batch(0, [b"a", b"b", b"c"]) + batch(3, [b"d"])
    assert values(reader(data, 2).read(10)) == [b"c", b"d"]
    assert values(reader(data, 3).read(10)) == [b"d"]


def test_the_position_passes_what_compaction_removed() -> None:
    builder = MemoryRecordsBuilder(base_offset=0)
    builder.append(1, None, b"a", offset=2)
    only = reader(builder.close(last_offset=9))
    assert values(only.read(10)) == [b"a"]
    assert only.next_offset == 10
    data = builder.close(last_offset=9) + MemoryRecordsBuilder(base_offset=10).empty_batch(14, -1)
    source = reader(data)
    assert values(source.read(10)) == [b"a"]
    assert source.next_offset == 15


def test_control_batches_are_passed_and_not_returned() -> None:
    data = EndTransactionMarker(ControlRecordType.COMMIT, 0).batch(0, 1, 0, 1, 0) + batch(1, [b"a"])
    source = reader(data)
    assert values(source.read(10)) == [b"a"]
    only_control = reader(data[: -len(batch(1, [b"a"]))])
    assert only_control.read(10) == []
    assert only_control.next_offset == 1


def test_a_batch_cut_off_at_the_end_is_left_out() -> None:
    first, second = batch(0, [b"a"]), batch(1, [b"b"])
    for cut in (1, 17, 30, len(second) - 1):
        source = reader(first + second[:cut])
        assert values(source.read(10)) == [b"a"]
        assert source.read(10) == []
        assert source.exhausted
        assert source.next_offset == 1


def test_a_wrong_checksum_costs_nothing_before_it_and_is_raised_from_then_on() -> None:
    data = bytearray(batch(0, [b"a"]) + batch(1, [b"b"]))
    data[-1] ^= 1
    source = reader(bytes(data))
    assert values(source.read(10)) == [b"a"]
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="t-3, offset 1"):
            source.read(10)
    assert not source.exhausted


def test_a_malformed_record_is_raised_after_the_ones_before_it() -> None:
    data = bytearray(batch(0, [b"aaaa", b"bbbb", b"cccc"]))
    data[-8] = 0x55
    RecordBatch(memoryview(data)).update_checksum()
    source = reader(bytes(data))
    assert values(source.read(10)) == [b"aaaa", b"bbbb"]
    with pytest.raises(InvalidRecordError, match="offset 2"):
        source.read(10)
    assert source.next_offset == 2


@pytest.mark.parametrize("codec", CompressionType)
def test_every_codec_is_read(codec: CompressionType) -> None:
    data = batch(0, [b"x" * 100] * 50, compression=codec)
    assert values(reader(data).read(100)) == [b"x" * 100] * 50


def test_a_batch_may_not_decompress_beyond_the_limit() -> None:
    data = batch(0, [bytes(100_000)], compression=CompressionType.ZSTD)
    with pytest.raises(DecompressionLimitError, match=r"kclient\.decompress\.max\.bytes"):
        reader(data, decompress_max=50_000).read(1)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_old_formats_are_read(magic: int, codec: CompressionType) -> None:
    data = batch(7, [b"a", b"b", None], magic=magic, compression=codec)
    source = reader(data, 8)
    records = source.read(10)
    assert [(r.offset, r.value, r.leader_epoch) for r in records] == [(8, b"b", None), (9, None, None)]
    assert {r.timestamp_type for r in records} == {-1 if magic == 0 else 0}
    assert {r.timestamp_ms for r in records} == {-1 if magic == 0 else 1000}
    assert source.next_offset == 10


def test_old_formats_are_checked_down_to_the_inner_messages() -> None:
    inner = bytearray(batch(0, [b"abc"], magic=1))
    inner[-1] ^= 1
    from kclient.compress import compress
    from kclient.record.legacy import message

    data = message(1, 0, 1000, None, compress(CompressionType.GZIP, inner, magic=1), CompressionType.GZIP)
    with pytest.raises(CorruptRecordError):
        reader(data).read(10)
    unchecked = RecordReader(data, 0, len(data), "t", 0, 0, False, ConsumerRecord)
    assert values(unchecked.read(10)) == [b"abb"]


def test_deserializers_get_topic_headers_and_bytes_but_never_null() -> None:
    builder = MemoryRecordsBuilder()
    builder.append(1, b"key", b"value", [("h", b"x")])
    builder.append(1, None, None)
    seen: list[Any] = []

    def deserialize(topic: str, headers: Any, data: bytes) -> str:
        seen.append((topic, headers, data))
        return data.decode()

    first, second = reader(
        builder.close(), key_deserializer=deserialize, value_deserializer=deserialize
    ).read(10)
    assert (first.key, first.value, first.serialized_key_size, first.serialized_value_size) == (
        "key",
        "value",
        3,
        5,
    )
    assert (second.key, second.value, second.serialized_value_size) == (None, None, -1)
    assert seen == [("t", (("h", b"x"),), b"key"), ("t", (("h", b"x"),), b"value")]


def test_a_failed_deserializer_names_the_record_and_hands_over_its_bytes() -> None:
    def deserialize(_topic: str, _headers: Any, data: bytes) -> bytes:
        if data == b"bad":
            raise ZeroDivisionError
        return data

    source = reader(batch(0, [b"good", b"bad", b"good"]), value_deserializer=deserialize)
    assert values(source.read(10)) == [b"good"]
    with pytest.raises(RecordDeserializationError, match="offset 1 of t-3") as caught:
        source.read(10)
    error = caught.value
    assert (error.offset, error.which, error.key, error.value, error.timestamp_ms) == (
        1,
        "value",
        b"k",
        b"bad",
        1000,
    )
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert source.next_offset == 1


def test_an_interrupted_read_loses_and_repeats_nothing() -> None:
    interrupts = iter([False, False, True, False, False, True])

    def deserialize(_topic: str, _headers: Any, data: bytes) -> bytes:
        if next(interrupts, False):
            raise KeyboardInterrupt
        return data

    source = reader(batch(0, [b"a", b"b", b"c", b"d", b"e"]), value_deserializer=deserialize)
    found: list[bytes] = []
    for at_once in (10, 1, 10, 10):
        try:
            found += values(source.read(at_once))
        except KeyboardInterrupt:
            continue
    assert found == [b"a", b"b", b"c", b"d", b"e"]


def test_what_a_signal_handler_raises_inside_a_read_is_not_taken_for_an_error_of_the_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class AlarmError(Exception):
        pass

    alarms = iter([True])
    decompress = hooks.decompress

    def interrupted(codec: int, data: memoryview, max_bytes: int) -> Any:
        if next(alarms, False):
            raise AlarmError
        return decompress(codec, data, max_bytes)

    monkeypatch.setattr(hooks, "decompress", interrupted)
    source = reader(batch(0, [b"a", b"b"], compression=CompressionType.GZIP))
    with pytest.raises(AlarmError):
        source.read(10)
    assert values(source.read(10)) == [b"a", b"b"]


def transactional(base_offset: int, producer_id: int, found: list[bytes]) -> bytes:
    return batch(
        base_offset, found, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
    )


def marker(offset: int, producer_id: int, kind: ControlRecordType = ControlRecordType.ABORT) -> bytes:
    return EndTransactionMarker(kind, 0).batch(offset, 1, 0, producer_id, 0)


def test_aborted_transactions_are_left_out_until_their_marker() -> None:
    data = (
        transactional(0, 1, [b"aborted"])
        + transactional(1, 2, [b"committed"])
        + transactional(2, 1, [b"aborted"])
        + marker(3, 1)
        + transactional(4, 1, [b"next"])
        + marker(5, 1, ControlRecordType.COMMIT)
        + marker(6, 2, ControlRecordType.COMMIT)
    )
    source = reader(data, aborted=[(1, 0)])
    assert values(source.read(10)) == [b"committed", b"next"]
    assert source.next_offset == 7
    assert values(reader(data, aborted=None).read(10)) == [b"aborted", b"committed", b"aborted", b"next"]


def test_aborted_transactions_may_overlap_and_come_in_any_order() -> None:
    data = (
        transactional(0, 1, [b"x"])
        + transactional(1, 2, [b"x"])
        + marker(2, 1)
        + transactional(3, 1, [b"good"])
        + marker(4, 1, ControlRecordType.COMMIT)
        + marker(5, 2)
        + transactional(6, 2, [b"good"])
        + transactional(7, 1, [b"x"])
        + marker(8, 1)
    )
    for aborted in ([(1, 7), (2, 1), (1, 0)], [(1, 0), (1, 7), (2, 1)]):
        assert values(reader(data, aborted=aborted).read(10)) == [b"good", b"good"]


def test_a_second_abort_marker_is_harmless() -> None:
    data = transactional(0, 1, [b"x"]) + marker(1, 1) + marker(2, 1) + transactional(3, 1, [b"good"])
    assert values(reader(data, aborted=[(1, 0)]).read(10)) == [b"good"]


def test_data_outside_transactions_of_the_same_producer_is_kept() -> None:
    plain = batch(0, [b"plain"], producer_id=1, producer_epoch=0, base_sequence=0)
    assert values(reader(plain, aborted=[(1, 0)]).read(10)) == [b"plain"]


def test_log_append_time_is_the_time_of_every_record() -> None:
    data = bytearray(batch(0, [b"a", b"b"]))
    RecordBatch(memoryview(data)).set_log_append_time(5555)
    records = reader(bytes(data)).read(10)
    assert [(r.timestamp_ms, r.timestamp_type) for r in records] == [(5555, 1)] * 2


@pytest.mark.parametrize("length", [-1, 0, 13, 2**31 - 1])
def test_an_impossible_batch_size_is_corrupt(length: int) -> None:
    data = bytearray(batch(0, [b"a"]))
    struct.pack_into(">i", data, 8, length)
    with pytest.raises(CorruptRecordError):
        reader(bytes(data)).read(1)


def test_record_types_of_other_shapes_work_with_their_constructor() -> None:
    class Plain:
        def __init__(self, *fields: Any) -> None:
            self.fields = fields

    data = batch(5, [b"v"])
    assert fast_construction.shell_of(Plain) is None
    [record] = RecordReader(data, 0, len(data), "t", 0, 5, True, Plain).read(1)
    assert record.fields == ("t", 0, 5, 1000, 0, b"k", b"v", (), None, 1, 1)


def test_frozen_and_generic_record_types_are_filled_without_their_constructor() -> None:
    @attrs.frozen
    class Frozen(Generic[T]):
        topic: str
        partition: int
        offset: int
        timestamp_ms: int
        timestamp_type: int
        key: T
        value: T
        headers: Any
        leader_epoch: Any
        serialized_key_size: int
        serialized_value_size: int

    for kind in (Frozen, ConsumerRecord):
        shell = fast_construction.shell_of(kind)
        assert shell is not None
        assert shell is fast_construction.shell_of(kind)
    data = batch(5, [b"v"])
    [record] = RecordReader(data, 0, len(data), "t", 0, 5, True, Frozen).read(1)
    assert record == Frozen("t", 0, 5, 1000, 0, b"k", b"v", (), None, 1, 1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        record.offset = 3
