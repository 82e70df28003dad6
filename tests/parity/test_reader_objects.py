"""Both record readers and Python's objects: deserializers, interrupts, other record types, memory."""

from __future__ import annotations

import copy
import enum
import gc
import pickle
import sys
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from kclient._accel import hooks
from kclient._accel.reference import reader as reference_reader
from kclient.compress import CompressionType
from kclient.consumer.types import ConsumerRecord
from kclient.errors import InvalidRecordError, RecordDeserializationError
from kclient.record import ControlRecordType, EndTransactionMarker, MemoryRecordsBuilder, RecordBatch

native = pytest.importorskip("kclient._accel.native.reader", reason="the native body is not built")


@pytest.fixture(params=[reference_reader, native], ids=["python", "c"])
def body(request: pytest.FixtureRequest) -> Any:
    return request.param


def batch(base_offset: int, values: list[bytes | None], **settings: Any) -> bytes:
    builder = MemoryRecordsBuilder(base_offset=base_offset, **settings)
    for value in values:
        builder.append(
            1000, b"k", value, [("h", b"1"), ("none", None)] if settings.get("magic", 2) == 2 else ()
        )
    return builder.close()


def reader(body: Any, data: Any, record_type: type = ConsumerRecord, **settings: Any) -> Any:
    return body.RecordReader(data, 0, len(data), "topic", 3, 0, True, record_type, **settings)


# Deserializers and interrupts.


def log() -> bytes:
    """Batches of every kind; of producer 1 all is aborted up to its marker."""
    return b"".join(
        (
            batch(0, [b"0", b"1", None], compression=CompressionType.GZIP),
            batch(3, [b"x"], producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),
            batch(4, [b"4", b"5"]),
            EndTransactionMarker(ControlRecordType.ABORT, 0).batch(6, 1, 0, 1, 0),
            batch(7, [b"7"], producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),
            batch(8, [b"8", b"9"], magic=1),
            batch(10, [b"10", b"11"], compression=CompressionType.ZSTD),
        )
    )


OFFSETS = [0, 1, 2, 4, 5, 7, 8, 9, 10, 11]


class Interrupts:
    """Raises KeyboardInterrupt at one of its calls; `over` when that did not happen any more."""

    def __init__(self, at: int) -> None:
        self.left = at

    def may_come(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt

    @property
    def over(self) -> bool:
        return self.left > 0


def read_interrupted(
    body: Any, at: int, monkeypatch: pytest.MonkeyPatch, how: Callable[[Any, int], list[int]]
) -> tuple[list[int], bool]:
    """The offsets that come although the `at`-th call of anything of Python's is interrupted."""
    interrupts = Interrupts(at)
    decompress, read_legacy = hooks.decompress, hooks.read_legacy

    def deserialize(_topic: str, _headers: Any, data: bytes) -> bytes:
        interrupts.may_come()
        return data

    def interrupted_decompress(*arguments: Any) -> Any:
        interrupts.may_come()
        found = decompress(*arguments)
        interrupts.may_come()
        return found

    def interrupted_legacy(*arguments: Any) -> Iterator[Any]:
        for record in read_legacy(*arguments):
            interrupts.may_come()
            yield record

    with monkeypatch.context() as patch:
        patch.setattr(hooks, "decompress", interrupted_decompress)
        patch.setattr(hooks, "read_legacy", interrupted_legacy)
        source = reader(body, log(), value_deserializer=deserialize, aborted=[(1, 3)])
        found: list[int] = []
        for turn in range(40):
            before = source.next_offset, source.exhausted
            try:
                found += how(source, turn)
            except KeyboardInterrupt:
                assert (source.next_offset, source.exhausted) == before
            if source.exhausted:
                break
        assert source.next_offset == 12
        return found, interrupts.over


def read_some(source: Any, turn: int) -> list[int]:
    return [record.offset for record in source.read(turn % 3 + 1)]


def read_all(source: Any, turn: int) -> list[int]:
    return [record.offset for record in source.read(100)]


def read_columns(source: Any, turn: int) -> list[int]:
    columns = source.read_columns(None, turn % 2 == 0)
    return [] if columns is None else list(memoryview(columns.offsets).cast("B").cast("q"))


def read_in_turns(source: Any, turn: int) -> list[int]:
    if turn % 2:
        return read_some(source, turn)
    columns = source.read_columns(2, turn % 4 == 0)
    return [] if columns is None else list(memoryview(columns.offsets).cast("B").cast("q"))


@pytest.mark.parametrize("how", [read_some, read_all, read_columns, read_in_turns])
def test_an_interrupt_anywhere_loses_and_repeats_nothing(
    body: Any, monkeypatch: pytest.MonkeyPatch, how: Callable[[Any, int], list[int]]
) -> None:
    at = 1
    while True:
        found, over = read_interrupted(body, at, monkeypatch, how)
        assert found == OFFSETS, f"interrupted at call {at}"
        if over:
            break
        at += 1
    assert at > 5


def test_a_failed_deserializer_gives_the_records_before_and_the_error_from_then_on(body: Any) -> None:
    def deserialize(_topic: str, headers: Any, data: bytes) -> int:
        assert headers == (("h", b"1"), ("none", None))
        return int(data)

    source = reader(body, batch(0, [b"0", b"1", b"x", b"3"]), value_deserializer=deserialize)
    assert [record.value for record in source.read(10)] == [0, 1]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError, match="offset 2 of topic-3") as caught:
            source.read(10)
        assert isinstance(caught.value.__cause__, ValueError)
        assert "ValueError: invalid literal for int() with base 10: b'x'" in str(caught.value)
        assert (caught.value.key, caught.value.value) == (b"k", b"x")
        assert caught.value.headers == (("h", b"1"), ("none", None))
    assert source.next_offset == 2


def odd(_topic: str, _headers: Any, data: bytes) -> int:
    if int(data) % 2 == 0:
        raise ValueError
    return int(data)


def test_records_that_no_deserializer_can_read_are_left_out_if_that_is_wanted(body: Any) -> None:
    errors: list[Any] = []
    data = batch(0, [b"0", b"1", None, b"3", b"4"]) + batch(5, [b"5", b"6"], compression=CompressionType.GZIP)
    source = reader(body, data, value_deserializer=odd, on_undecodable=errors.append)
    assert [record.value for record in source.read(2)] == [1, None]
    assert source.next_offset == 3
    assert [record.value for record in source.read(10)] == [3, 5]
    assert source.next_offset == 7
    assert source.read(10) == []
    assert [(error.offset, error.which, error.timestamp_type) for error in errors] == [
        (0, "value", 0),
        (4, "value", 0),
        (6, "value", 0),
    ]
    assert isinstance(errors[0].__cause__, ValueError)


def test_what_is_found_instead_is_the_key_or_the_value(body: Any) -> None:
    def refuse(_topic: str, _headers: Any, data: bytes) -> Any:
        raise ValueError(data)

    source = reader(
        body,
        batch(0, [b"0", None]),
        key_deserializer=refuse,
        value_deserializer=refuse,
        on_undecodable=lambda error: (error.which, error.key, error.value),
    )
    first, second = source.read(10)
    assert (first.key, first.value) == (("key", b"k", b"0"), ("value", b"k", b"0"))
    assert (second.key, second.value) == (("key", b"k", None), None)
    assert (first.serialized_key_size, first.serialized_value_size) == (1, 1)


@pytest.mark.parametrize("which", ["key_deserializer", "value_deserializer"])
def test_a_record_that_is_found_instead_is_taken_as_it_is(body: Any, which: str) -> None:
    [other] = reader(body, batch(0, [b"other"])).read(1)

    def refuse(_topic: str, _headers: Any, data: bytes) -> Any:
        raise ValueError(data)

    source = reader(body, batch(7, [b"7", b"8"]), **{which: refuse}, on_undecodable=lambda _error: other)
    assert source.read(1)[0] is other
    assert source.next_offset == 8
    assert source.read(1)[0] is other
    assert source.next_offset == 9


def test_an_error_of_the_data_in_place_of_a_record_comes_after_the_records_before_it(body: Any) -> None:
    def refuse(error: Any) -> Any:
        raise InvalidRecordError(f"no {error.offset}")

    source = reader(body, batch(0, [b"1", b"3", b"4"]), value_deserializer=odd, on_undecodable=refuse)
    assert [record.value for record in source.read(10)] == [1, 3]
    for _ in range(2):
        with pytest.raises(InvalidRecordError, match="no 2"):
            source.read(10)
    assert source.next_offset == 2


def test_an_interrupt_while_something_else_is_found_has_not_been(body: Any) -> None:
    asked: list[int] = []

    def interrupted(error: Any) -> None:
        asked.append(error.offset)
        if len(asked) == 2:
            raise KeyboardInterrupt

    source = reader(
        body, batch(0, [b"0", b"1", b"2", b"3"]), value_deserializer=odd, on_undecodable=interrupted
    )
    with pytest.raises(KeyboardInterrupt):
        source.read(10)
    assert source.next_offset == 0
    assert [record.value for record in source.read(10)] == [1, 3]
    assert asked == [0, 2, 0, 2]


def test_a_reader_that_is_read_by_its_own_deserializer_refuses(body: Any) -> None:
    def deserialize(_topic: str, _headers: Any, data: bytes) -> Any:
        source.read(10)
        return source.read_columns(None, True)

    source = reader(body, batch(0, [b"0", b"1"]), value_deserializer=deserialize)
    with pytest.raises(RecordDeserializationError) as caught:
        source.read(10)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_invalid_control_batch_is_an_error_of_the_data(body: Any) -> None:
    data = bytearray(EndTransactionMarker(ControlRecordType.ABORT, 0).batch(1, 1, 0, 1, 0))
    data[61] = 0x55
    RecordBatch(memoryview(data)).update_checksum()
    source = reader(body, data, aborted=[(1, 0)])
    with pytest.raises(InvalidRecordError, match="topic-3, offset 0"):
        source.read(10)


# Record types.


@attrs.frozen
class Converted:
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: Any
    value: Any = attrs.field(converter=lambda value: value.decode())
    headers: Any
    leader_epoch: Any
    serialized_key_size: int
    serialized_value_size: int


@attrs.frozen
class Counting(ConsumerRecord[Any, Any]):
    def __attrs_post_init__(self) -> None:
        made.append(self.offset)


made: list[int] = []


class Loose:
    def __init__(self, *fields: Any) -> None:
        self.fields = fields


def test_types_whose_constructor_does_something_are_made_by_it(body: Any) -> None:
    data = batch(0, [b"a", b"b"])
    assert [record.value for record in reader(body, data, Converted).read(9)] == ["a", "b"]
    made.clear()
    assert [record.offset for record in reader(body, data, Counting).read(9)] == made == [0, 1]
    [first, _] = reader(body, data, Loose).read(9)
    assert first.fields == ("topic", 3, 0, 1000, 0, b"k", b"a", (("h", b"1"), ("none", None)), None, 1, 1)


def test_a_topic_may_be_any_kind_of_text(body: Any) -> None:
    class Topics(enum.StrEnum):
        ORDERS = "orders"

    data = batch(0, [b"a"])
    [record] = body.RecordReader(data, 0, len(data), Topics.ORDERS, 0, 0, True, ConsumerRecord).read(1)
    assert record.topic is Topics.ORDERS


def test_a_type_that_cannot_be_made_costs_nothing(body: Any) -> None:
    class Refusing:
        def __init__(self, *fields: Any) -> None:
            raise TypeError("no")

    source = reader(body, batch(0, [b"a"]), Refusing)
    for _ in range(2):
        with pytest.raises(TypeError, match="no"):
            source.read(1)
    assert source.next_offset == 0


def test_records_are_like_those_of_the_constructor(body: Any) -> None:
    [record] = reader(body, batch(0, [b"a"], partition_leader_epoch=4)).read(1)
    twin = ConsumerRecord("topic", 3, 0, 1000, 0, b"k", b"a", (("h", b"1"), ("none", None)), 4, 1, 1)
    assert record == twin
    assert hash(record) == hash(twin)
    assert repr(record) == repr(twin)
    assert pickle.loads(pickle.dumps(record)) == copy.copy(record) == copy.deepcopy(record) == twin
    assert weakref.ref(record)() is record
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        record.value = b""


# Memory.


def test_the_collector_knows_only_records_that_can_be_part_of_a_cycle() -> None:
    data = batch(0, [b"a", None])
    for record in reader(native, data).read(9):
        assert not gc.is_tracked(record)
        assert not gc.is_tracked(record.headers)
        assert not any(gc.is_tracked(header) for header in record.headers)
    [first, second] = reader(native, data, value_deserializer=lambda _topic, _headers, data: [data]).read(9)
    assert gc.is_tracked(first)
    assert not gc.is_tracked(second)
    texts = reader(native, data, key_deserializer=lambda _topic, _headers, data: data.decode()).read(9)
    assert not any(gc.is_tracked(record) for record in texts)


def test_cycles_through_records_are_collected(body: Any) -> None:
    class Value:
        record: Any = None

    [record] = reader(body, batch(0, [b"a"]), value_deserializer=lambda *_: Value()).read(1)
    record.value.record = record
    gone = weakref.ref(record.value)
    del record
    gc.collect()
    assert gone() is None


def test_a_reader_in_a_cycle_is_collected(body: Any) -> None:
    class Holder:
        source: Any = None

        def deserialize(self, _topic: str, _headers: Any, data: bytes) -> bytes:
            return data

    holder = Holder()
    holder.source = reader(
        body, memoryview(bytearray(batch(0, [b"a", b"b"]))), value_deserializer=holder.deserialize
    )
    holder.source.read(1)
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None


def test_a_view_keeps_what_it_refers_to_and_a_copy_nothing(body: Any) -> None:
    data = bytearray(batch(0, [b"a" * 13, b"b" * 5]))
    columns = reader(body, data).read_columns(None, False)
    data.extend(b"x")  # refused while anything exports the memory
    del data[-1:]
    assert bytes(columns.values.data[0]) == b"a" * 13 + b"b" * 5
    columns = reader(native, data).read_columns(None, True)
    with pytest.raises(BufferError):
        data.extend(b"x")
    assert bytes(columns.values.data[0])[61:].count(b"a" * 13) == 1
    del columns
    data.extend(b"x")
    # Short strings are in the views themselves.
    data = bytearray(batch(0, [b"a" * 12]))
    columns = reader(native, data).read_columns(None, True)
    data.extend(b"x")
    assert columns.values.data == ()


def test_column_buffers_are_read_only_and_outlive_everything_else() -> None:
    columns = reader(native, batch(0, [b"a", None])).read_columns(None, False)
    views = [
        memoryview(each)
        for each in (columns.offsets, columns.values.offsets, columns.values.data[0], columns.values.validity)
    ]
    del columns
    gc.collect()
    assert all(view.readonly for view in views)
    assert list(views[0].cast("q")) == [0, 1]
    assert list(views[1].cast("i")) == [0, 1, 1]
    assert (bytes(views[2]), bytes(views[3])) == (b"a", b"\1")


def test_a_buffer_in_pieces_is_refused() -> None:
    with pytest.raises(BufferError):
        reader(native, memoryview(batch(0, [b"a"]))[::2])


def fill(body: Any, data: bytes) -> None:
    """Everything a reader can do, errors among it."""

    def deserialize(_topic: str, _headers: Any, data: bytes) -> Any:
        if data == b"5":
            raise ZeroDivisionError
        return [data]

    reader(body, data, aborted=[(1, 3)]).read(100)
    for view in (True, False):
        reader(body, data, aborted=[(1, 3)]).read_columns(None, view)
        source = reader(body, data)
        while source.read_columns(1, view, 1) is not None:
            source.read(1)
    source = reader(body, data, value_deserializer=deserialize)
    source.read(100)
    with pytest.raises(RecordDeserializationError):
        source.read(100)
    for cut in (3, 30, 70):
        broken = bytearray(data)
        broken[cut] ^= 0x81
        for read in (lambda source: source.read(100), lambda source: source.read_columns(None, True)):
            source = body.RecordReader(broken, 0, len(broken), "topic", 3, 0, False, ConsumerRecord)
            for _ in range(2):
                try:
                    read(source)
                except Exception:
                    break


def grown_by(body: Any, data: bytes) -> int:
    """The bytes that are in use after many readings, and were not before."""
    tracemalloc.start()
    try:
        fill(body, data)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(50):
            fill(body, data)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_nothing_leaks(body: Any) -> None:
    data = log()
    topic = "topic"
    for _ in range(3):
        fill(body, data)
    gc.collect()
    shared = (None, (), ConsumerRecord, topic, hooks, b"", data)
    counts = [sys.getrefcount(each) for each in shared]
    # Threads of other tests' brokers may take memory meanwhile, but not every time.
    assert min(grown_by(body, data) for _ in range(3)) < 5_000
    for each, count in zip(shared, counts, strict=True):
        assert abs(sys.getrefcount(each) - count) < 40, each
