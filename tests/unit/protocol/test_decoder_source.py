"""DecoderSource: least sizes, defaults of a message's own, sizes that cannot be, and the budget."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kclient.common.uuid import Uuid
from kclient.errors import SchemaError
from kclient.protocol import guard, wire
from kclient.protocol.codegen import build
from kclient.protocol.decoder_source import DecoderSource, least_size
from kclient.protocol.schema import Message, Structure, message, structure
from kclient.protocol.schema import wire as field
from kclient.protocol.wire import Array, unsigned_varint

PLENTY = 1 << 30


@structure
class Inner(Structure):
    number: int = field(wire.Int32, "0+", default=-1)
    listed: list[int] = field(Array(wire.Int16), "0+")


@structure
class Element(Structure):
    name: str = field(wire.String, "0+")
    old: str = field(wire.String, "0+", flexible=False)
    late: int = field(wire.Int64, "2+")
    tagged: int = field(wire.Int64, "1+", tag=0)
    inner: Inner = field(Inner, "0+")
    maybe: Inner | None = field(Inner, "1+", nullable="1+", default=None)


@structure
class Nothing(Structure):
    late: int = field(wire.Int8, "1+")


@message(kind="data", versions="0-2", flexible="1+")
class Given(Message):
    number: int = field(wire.Int16, "0+")
    topic_id: Uuid = field(wire.UUID, "0+")
    name: str = field(wire.String, "0+")
    maybe: str | None = field(wire.String, "0+", nullable="1+")
    items: list[Element] | None = field(Array(Element), "0+", nullable="0+")
    late: Inner = field(Inner, "2+")
    later: list[int] = field(Array(wire.Int8), "2+", tag=0)


@message(kind="data", versions="0-1", flexible="1+")
class Carried(Message):
    records: bytes | memoryview | None = field(wire.Records, "0+")
    raw: bytes = field(wire.Bytes, "0+")


def decoded(cls: type[Message], version: int, raw: bytes, budget: int = PLENTY) -> tuple[Any, int]:
    return build(cls, version)[1](raw, 0, len(raw), budget)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("kind", "version", "flexible", "size"),
    [
        (wire.Int64, 0, False, 8),
        (wire.Int64, 0, True, 8),
        (wire.String, 0, False, 2),
        (wire.String, 0, True, 1),
        (wire.Bytes, 0, False, 4),
        (Array(wire.UUID), 0, False, 4),
        (Array(wire.UUID), 0, True, 1),
        (Inner, 0, False, 8),
        (Inner, 1, True, 6),
        (Element, 0, False, 2 + 2 + 8),
        (Element, 1, True, 1 + 2 + 6 + 1 + 1),
        (Element, 2, True, 1 + 2 + 8 + 6 + 1 + 1),
        (Nothing, 0, False, 0),
        (Nothing, 0, True, 1),
    ],
)
def test_the_least_size_of_a_value_is_that_of_its_fields_without_contents(
    kind: Any, version: int, flexible: bool, size: int
) -> None:
    assert least_size(kind, version, flexible=flexible) == size


def test_fields_of_fixed_size_and_the_length_behind_them_are_one_call() -> None:
    assert "number, u1, n = unpack_hUh(buf, pos)" in DecoderSource(Given, 0).text()


def test_what_a_version_lacks_has_its_default_and_lists_and_structs_of_its_own() -> None:
    raw = b"\0\7" + b"u" * 16 + b"\0\1n" + b"\0\0" + b"\0\0\0\0"
    (first, end), (second, _) = decoded(Given, 0, raw), decoded(Given, 0, raw)
    assert end == len(raw)
    assert first == Given(number=7, topic_id=Uuid(b"u" * 16), name="n", maybe="", items=[])
    for one, other in ((first.late, second.late), (first.later, second.later), (first.items, second.items)):
        assert one == other
        assert one is not other
    assert first.late.listed is not second.late.listed


def test_a_message_within_others_ends_where_the_next_begins() -> None:
    raw = b"??" + b"\0\7" + bytes(16) + b"\0\0\0\0\xff\xff\xff\xff" + b"??"
    found, position = build(Given, 0)[1](raw, 2, len(raw), PLENTY)
    assert (found.number, found.items, position) == (7, None, len(raw) - 2)


@pytest.mark.parametrize(
    ("version", "tail", "complaint"),
    [
        (0, b"\xff\xff", "Size -1 of name"),
        (0, b"\0\5abcd", "Size 5 of name cannot be: 4 bytes are left"),
        (1, b"\0", "Size -1 of name"),
        (1, b"\6abcd", "Size 5 of name cannot be: 4 bytes are left"),
        (1, b"\1\6abcd", "Size 5 of maybe"),
        (0, b"\0\0\0\0" + b"\0\0\0\2" + bytes(23), "2 elements of items cannot be: 23 bytes"),
        (1, b"\1\0" + b"\3" + bytes(20), "2 elements of items cannot be: 20 bytes"),
        (1, b"\1\0" + unsigned_varint(-4), "-5 elements of items"),
    ],
)
def test_a_size_that_cannot_be_is_told_with_the_name_of_its_field(
    version: int, tail: bytes, complaint: str
) -> None:
    with pytest.raises(SchemaError, match=complaint):
        decoded(Given, version, bytes(18) + tail)


def test_null_is_none_where_the_version_has_it() -> None:
    assert decoded(Given, 1, bytes(18) + b"\1\0\0\0")[0] == Given(maybe=None, items=None)


def test_an_array_is_paid_for_before_it_is_made() -> None:
    raw = bytes(18) + b"\0\0\0\0" + b"\0\0\0\3" + bytes(36)
    price = 3 * guard.cost(Element)
    assert len(decoded(Given, 0, raw, price)[0].items) == 3
    with pytest.raises(SchemaError, match="far more objects"):
        decoded(Given, 0, raw, price - 1)


def test_each_tag_is_paid_for() -> None:
    raw = bytes(18) + b"\1\0\0" + b"\2" + b"\5\0\6\0"
    assert decoded(Given, 1, raw, 2 * guard.TAG_COST)[0].unknown_tagged_fields == {5: b"", 6: b""}
    with pytest.raises(SchemaError, match="far more objects"):
        decoded(Given, 1, raw, 2 * guard.TAG_COST - 1)


def test_a_known_tag_has_exactly_the_bytes_of_its_value_and_unknown_ones_are_kept() -> None:
    head = bytes(18) + b"\1\0\0" + b"\0\0\0\0\1\0"
    found, _ = decoded(Given, 2, head + b"\2" + b"\0\3\3\1\2" + b"\7\1x")
    assert (found.later, found.unknown_tagged_fields) == ([1, 2], {7: b"x"})
    with pytest.raises(SchemaError, match=r"tagged field 0 \(later\)"):
        decoded(Given, 2, head + b"\1" + b"\0\4\3\1\2\0")


def test_records_are_a_view_of_the_input_and_other_bytes_a_copy() -> None:
    raw = b"\0\0\0\3rec\0\0\0\3raw"
    found, _ = decoded(Carried, 0, raw)
    assert isinstance(found.records, memoryview)
    assert found.records.obj is raw
    assert found.raw == b"raw"
    assert type(found.raw) is bytes
    assert decoded(Carried, 1, b"\0\1\0")[0].records is None


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_message_that_is_cut_off_raises_one_of_the_errors_that_mean_it(version: int) -> None:
    element = Element(name="n", old="o", inner=Inner(listed=[1]))
    out = bytearray()
    build(Given, version)[0](Given(name="abc", maybe="d", items=[element]), out, None)
    assert decoded(Given, version, bytes(out))[1] == len(out)
    for size in range(len(out)):
        with pytest.raises((SchemaError, struct.error, IndexError)):
            decoded(Given, version, bytes(out[:size]))
