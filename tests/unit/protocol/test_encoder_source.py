"""EncoderSource: which fields become one call, what is left out, refused, or handed on by reference."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.common.uuid import Uuid
from kclient.errors import SchemaError, UnsupportedVersionError
from kclient.protocol import wire
from kclient.protocol.codegen import build
from kclient.protocol.encoder_source import REFERENCE_ABOVE, EncoderSource
from kclient.protocol.schema import Message, Structure, message, structure
from kclient.protocol.schema import wire as field
from kclient.protocol.wire import Array


@structure
class Item(Structure):
    a: int = field(wire.Int16, "0+")
    extra: str = field(wire.String, "1+", tag=0)


@message(kind="data", versions="0-1", flexible="1+")
class Fixed(Message):
    flag: bool = field(wire.Bool, "0+")
    number: int = field(wire.Int64, "0+")
    topic_id: Uuid = field(wire.UUID, "0+")
    name: str = field(wire.String, "0+")


@message(kind="data", versions="0-1", flexible="1+")
class Various(Message):
    text: str | None = field(wire.String, "0+", nullable="0+", default=None)
    raw: bytes | None = field(wire.Bytes, "0+", nullable="0+", default=None)
    numbers: list[int] | None = field(Array(wire.Int8), "0+", nullable="0+", default=None)
    names: list[str] = field(Array(wire.String), "0+")
    ids: list[Uuid] = field(Array(wire.UUID), "0+")
    items: list[Item] = field(Array(Item), "0+")
    maybe: Item | None = field(Item, "0+", nullable="0+", default=None)
    records: bytes | memoryview | None = field(wire.Records, "0+")


@message(kind="data", versions="0-1", flexible="1+")
class Tagged(Message):
    also: list[int] = field(Array(wire.Int8), "1+", tag=1)
    first: int = field(wire.Int32, "1+", tag=0, default=5)


@message(kind="data", versions="0-2", flexible="none")
class Versioned(Message):
    old: int = field(wire.Int8, "0-1", default=1)
    new: int = field(wire.Int8, "1+", default=2, ignorable=True)


def encoded(message: Message, version: int, refs: list[Any] | None = None) -> bytes:
    out = bytearray()
    build(type(message), version)[0](message, out, refs)
    return bytes(out)


def test_fields_of_fixed_size_and_the_length_behind_them_are_one_call() -> None:
    assert EncoderSource(Fixed, 0).text().count("pack_") == 1
    made = Fixed(flag=True, number=-2, topic_id=Uuid(b"u" * 16), name="n")
    assert encoded(made, 0) == b"\1" + b"\xff" * 7 + b"\xfe" + b"u" * 16 + b"\0\1n"


@pytest.mark.parametrize("size", [0, 126, 127, 128, 300, 16_382])
def test_a_compact_length_of_one_byte_goes_with_the_fields_before_it_and_a_longer_one_behind(
    size: int,
) -> None:
    raw = encoded(Fixed(number=1, name="n" * size), 1)
    length = size + 1
    expected = bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
    assert raw == bytes(8) + b"\1" + bytes(16) + expected + b"n" * size + b"\0"


def test_lengths_count_bytes_and_not_characters() -> None:
    assert encoded(Fixed(name="é€"), 0)[25:] == b"\0\5" + "é€".encode()


def test_null_and_nothing_are_different_in_both_forms() -> None:
    null = Various(records=None)
    empty = Various(text="", raw=b"", numbers=[], maybe=Item(), records=b"")
    arrays = 3
    assert encoded(null, 0) == b"\xff" * 10 + bytes(4 * arrays) + b"\xff" + b"\xff" * 4
    assert encoded(null, 1) == b"\0" * 3 + b"\1" * arrays + b"\xff" + b"\0" + b"\0"
    assert encoded(empty, 0) == bytes(10) + bytes(4 * arrays) + b"\1\0\0" + bytes(4)
    assert encoded(empty, 1) == b"\1" * 3 + b"\1" * arrays + b"\1\0\0\0" + b"\1" + b"\0"


def test_elements_follow_their_count_each_in_its_form() -> None:
    made = Various(
        text="",
        raw=b"",
        numbers=[-1, 2],
        names=["a", ""],
        ids=[Uuid(b"u" * 16), Uuid.ZERO],
        items=[Item(a=3), Item(a=4, extra="x")],
        records=None,
    )
    tail = b"\3" + b"\0\3\0" + b"\0\4" + b"\1\0\2\2x" + b"\xff" + b"\0" + b"\0"
    assert encoded(made, 1) == b"\1\1" + b"\3\xff\2" + b"\3\2a\1" + b"\3" + b"u" * 16 + bytes(16) + tail


def test_records_are_handed_on_by_reference_only_if_they_are_large_and_someone_takes_them() -> None:
    small, large = b"r" * REFERENCE_ABOVE, b"r" * (REFERENCE_ABOVE + 1)
    refs: list[Any] = []
    whole = encoded(Various(records=small), 0, refs)
    assert refs == []
    assert whole.endswith(small)
    head = encoded(Various(records=large), 0, refs)
    assert refs == [(len(head), large)]
    assert head.endswith(len(large).to_bytes(4, "big"))
    assert encoded(Various(records=large), 0) == head + large


def test_tagged_fields_are_written_by_their_tags_and_only_if_they_differ_from_their_defaults() -> None:
    assert encoded(Tagged(), 1) == b"\0"
    assert encoded(Tagged(first=6), 1) == b"\1" + b"\0\4\0\0\0\6"
    made = Tagged(first=6, also=[1], unknown_tagged_fields={2: b"?"})
    assert encoded(made, 1) == b"\3" + b"\0\4\0\0\0\6" + b"\1\2\2\1" + b"\2\1?"
    with pytest.raises(SchemaError, match="Tag 1 is a field"):
        encoded(Tagged(unknown_tagged_fields={1: b""}), 1)


def test_a_field_that_the_version_lacks_must_have_its_default_unless_it_may_be_left_out() -> None:
    assert encoded(Versioned(new=9), 0) == b"\1"
    assert encoded(Versioned(), 2) == b"\2"
    with pytest.raises(UnsupportedVersionError, match=r"Versioned\.old is set, but version 2"):
        encoded(Versioned(old=0), 2)
    with pytest.raises(UnsupportedVersionError, match=r"Tagged\.first is set"):
        encoded(Tagged(first=6), 0)


def test_tags_of_elements_are_refused_where_there_are_none() -> None:
    with pytest.raises(UnsupportedVersionError, match="Item has tagged fields"):
        encoded(Various(items=[Item(unknown_tagged_fields={0: b""})]), 0)
