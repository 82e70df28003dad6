"""The functions that generated codecs call, by themselves: tags in order, costs of elements, shared Uuids."""

from __future__ import annotations

import pytest

from kclient.common.uuid import Uuid
from kclient.errors import SchemaError, UnsupportedVersionError
from kclient.protocol import guard, wire
from kclient.protocol.schema import Structure, structure
from kclient.protocol.schema import wire as field
from kclient.protocol.wire import Array, unsigned_varint


@structure
class Empty(Structure):
    pass


@structure
class Two(Structure):
    a: int = field(wire.Int8, "0+")
    b: str = field(wire.String, "0+")


@structure
class Nested(Structure):
    inner: Two = field(Two, "0+")
    maybe: Two | None = field(Two, "0+", nullable="0+", default=None)
    listed: list[int] = field(Array(wire.Int32), "0+")


def test_a_struct_costs_its_slots_and_those_of_the_structs_it_always_has() -> None:
    number = guard.cost(wire.Int64)
    assert guard.cost(wire.String) == number
    assert guard.cost(Two) - guard.cost(Empty) == 2 * number
    lists = 56
    assert guard.cost(Nested) == guard.cost(Empty) + 3 * number + guard.cost(Two) + lists


def test_the_budget_grows_with_the_input_from_what_any_may_ask_for() -> None:
    assert guard.budget(0) == guard.BUDGET_SLACK
    assert guard.budget(1000) - guard.budget(0) == 1000 * guard.BUDGET_RATIO


def test_tags_are_written_in_order_the_unknown_behind_the_known() -> None:
    out = bytearray(b"before")
    guard.write_tags(out, [(0, bytearray(b"a")), (1, bytearray())], {300: b"c" * 200, 7: b"b"}, 2)
    assert out == b"before" + b"\4" + b"\0\1a" + b"\1\0" + b"\7\1b" + b"\xac\2\xc8\1" + b"c" * 200


def test_without_tags_there_is_their_number() -> None:
    out = bytearray()
    guard.write_tags(out, None, None, 0)
    assert out == b"\0"


def test_an_unknown_tag_below_the_next_known_one_is_refused() -> None:
    with pytest.raises(SchemaError, match="Tag 1 is a field"):
        guard.write_tags(bytearray(), None, {5: b"", 1: b""}, 2)
    guard.write_tags(bytearray(), None, {5: b"", 2: b""}, 2)


def test_unknown_tags_are_copied_out_of_the_input() -> None:
    raw = bytearray(b"?\0\1a\5\2bb!")
    found, position = guard.read_unknown_tags(memoryview(raw), 1, len(raw), 2)
    raw[:] = bytes(len(raw))
    assert (found, position) == ({0: b"a", 5: b"bb"}, 8)


@pytest.mark.parametrize(
    ("raw", "last", "complaint"),
    [
        (b"\3\0", 3, "Tag 3 follows tag 3"),
        (b"\2\0", 3, "Tag 2 follows tag 3"),
        (unsigned_varint(-5) + b"\0", -1, "Tag -5 follows tag -1"),
        (b"\4\3ab", 3, "Size 3 of tagged field 4 cannot be: 2 bytes are left"),
        (b"\4" + unsigned_varint(-1), 3, "Size -1 of tagged field 4"),
    ],
)
def test_a_tag_must_be_above_the_last_and_end_within_the_message(
    raw: bytes, last: int, complaint: str
) -> None:
    with pytest.raises(SchemaError, match=complaint):
        guard.read_tag(raw, 0, len(raw), last)


def test_a_value_may_reach_the_end_of_the_message_and_no_further() -> None:
    raw = b"\4\2ab" + b"behind"
    assert guard.read_tag(raw, 0, 4, 3) == (4, 2, 4)
    with pytest.raises(SchemaError, match="1 bytes are left"):
        guard.read_tag(raw, 0, 3, 3)


@pytest.mark.parametrize("count", [-1, guard.MAX_TAGS + 1, 2**31 - 1])
def test_a_number_of_tags_that_no_struct_has_is_refused(count: int) -> None:
    with pytest.raises(SchemaError, match=f"cannot have {count} tagged"):
        guard.read_tag_count(unsigned_varint(count), 0)
    assert guard.read_tag_count(unsigned_varint(guard.MAX_TAGS), 0) == (guard.MAX_TAGS, 2)


def test_more_tags_than_there_are_bytes_for_are_refused_before_the_first_is_read() -> None:
    with pytest.raises(SchemaError, match="3 elements of tagged fields"):
        guard.read_unknown_tags(b"\0\0\1\0\2", 0, 5, 3)


def test_a_uuid_is_made_once_and_the_one_of_zeros_is_shared() -> None:
    assert guard.uuid(bytes(16)) is Uuid.ZERO
    assert guard.uuid(b"u" * 16) is guard.uuid(b"u" * 16)
    assert guard.uuid(b"u" * 16) == Uuid(b"u" * 16)
    with pytest.raises(SchemaError, match="after 15 bytes"):
        guard.uuid(b"u" * 15)


def test_what_a_version_lacks_is_told_with_its_name() -> None:
    for made in (guard.lacks_field("Fetch.x", 3), guard.lacks_tags("Fetch", 3)):
        assert isinstance(made, UnsupportedVersionError)
        assert "Fetch" in str(made)
        assert "version 3" in str(made)
