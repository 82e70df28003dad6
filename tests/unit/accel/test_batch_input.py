"""Checks of what is given to a batch: timestamps, contents, headers, lists and columns in Arrow's layout."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from kclient._accel.shared.batch_input import (
    MAX_TIMESTAMP_MS,
    Column,
    are_plain,
    check_headers,
    check_many,
    check_timestamp,
    checked_column,
    checked_timestamps,
    given_timestamp,
    rows,
)


class Indexed:
    """A whole number that is no int, as numpy has them."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __index__(self) -> int:
        return self._number


class Text(str):
    __slots__ = ()


class Pair(tuple[str, bytes]):
    __slots__ = ()


def column(*strings: bytes, code: str = "i", validity: bytes | None = None, first_bit: int = 0) -> Column:
    ends = [0]
    for string in strings:
        ends.append(ends[-1] + len(string))
    return memoryview(array(code, ends)), b"".join(strings), validity, first_bit


def keys_of(given: Column, start: int, stop: int) -> list[bytes | None]:
    return [key for _, key, _ in rows(0, checked_column(given, "keys", start, stop), None, start, stop)]


@pytest.mark.parametrize("number", [-1, 0, MAX_TIMESTAMP_MS])
def test_a_timestamp_may_be_any_whole_number_that_a_record_can_have(number: int) -> None:
    found = given_timestamp(Indexed(number))  # type: ignore[arg-type]
    assert (found, type(found)) == (number, int)


@pytest.mark.parametrize("number", [-2, MAX_TIMESTAMP_MS + 1])
def test_a_timestamp_beyond_what_a_record_can_have_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"not {number}"):
        given_timestamp(number)


def test_a_timestamp_is_refused_whose_distance_from_the_first_one_has_no_64_bits() -> None:
    check_timestamp(MAX_TIMESTAMP_MS, 0)
    with pytest.raises(ValueError, match="a timestamp must be"):
        check_timestamp(MAX_TIMESTAMP_MS, -1)


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ([("a", b""), (b"b", b"")], "the name of a header must be a str, not bytes"),
        ([("a", "text")], "the value of a header must be bytes or None, not str"),
        ([("a", bytearray())], "not bytearray"),
    ],
)
def test_headers_of_other_types_are_refused_with_the_type(headers: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        check_headers(headers)


def test_only_lists_and_tuples_can_be_taken_and_keys_may_be_missing() -> None:
    check_many(None, (b"v",), 0, 1)
    for keys, values, name in (
        ("k", [b"v"], "keys"),
        (None, None, "values"),
        ([b"k"], iter([b"v"]), "values"),
    ):
        with pytest.raises(TypeError, match=f"{name} must be a list or a tuple"):
            check_many(keys, values, 0, 1)


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (2, 1), (0, 3)])
def test_records_that_are_not_there_cannot_be_taken(start: int, stop: int) -> None:
    with pytest.raises(ValueError, match="there are 2 keys"):
        check_many([b"k"] * 2, [b"v"] * 9, start, stop)
    with pytest.raises(ValueError, match="there are 2 timestamps"):
        checked_timestamps(memoryview(array("q", [1, 2])), start, stop)
    with pytest.raises(ValueError, match="there are 2 keys"):
        checked_column(column(b"a", b"b"), "keys", start, stop)


@pytest.mark.parametrize(
    "buffer",
    [
        memoryview(array("Q", [1, 2])),
        memoryview(array("d", [1, 2])),
        memoryview(array("i", [1, 2])),
        memoryview(array("q", [1, 2, 3, 4]))[::2],
        memoryview(bytes(32)).cast("q", (2, 2)),
        bytes(16),
    ],
    ids=["unsigned", "double", "int32", "in pieces", "two dimensions", "bytes"],
)
def test_timestamps_are_a_flat_buffer_of_int64(buffer: memoryview) -> None:
    with pytest.raises(TypeError, match="timestamps must be a buffer of int64"):
        checked_timestamps(buffer, 0, 1)


@pytest.mark.parametrize(
    "offsets",
    [
        memoryview(array("I", [0, 1])),
        memoryview(array("i", [0, 0, 1, 1]))[::2],
        memoryview(bytes(4)).cast("h"),
    ],
    ids=["unsigned", "in pieces", "int16"],
)
def test_offsets_of_a_column_are_a_flat_buffer_of_int32_or_int64(offsets: memoryview) -> None:
    with pytest.raises(TypeError, match="the offsets of values must be a buffer of int32 or int64"):
        checked_column((offsets, b"a", None, 0), "values", 0, 1)


def test_a_column_of_no_offsets_at_all_has_no_strings() -> None:
    empty: Column = (memoryview(array("i")), b"", None, 0)
    with pytest.raises(ValueError, match="there are -1 keys"):
        checked_column(empty, "keys", 0, 0)


@pytest.mark.parametrize("code", ["i", "q"])
def test_strings_are_cut_out_where_the_offsets_say_and_bits_count_from_the_first_one(code: str) -> None:
    given = column(b"one", b"", b"three", code=code, validity=bytes((0b0110_0000, 0b1)), first_bit=6)
    assert keys_of(given, 0, 3) == [b"one", None, b"three"]
    assert keys_of(given, 1, 2) == [None]
    assert keys_of(column(b"one", b""), 0, 2) == [b"one", b""]


@pytest.mark.parametrize("first_bit", [-1, 7, 2**40])
def test_a_bitmap_that_is_too_short_is_refused(first_bit: int) -> None:
    checked_column(column(b"a", b"b", validity=b"\xff", first_bit=6), "keys", 0, 2)
    with pytest.raises(ValueError, match="the validity bitmap of keys has 8 bits"):
        checked_column(column(b"a", b"b", validity=b"\xff", first_bit=first_bit), "keys", 0, 2)


@pytest.mark.parametrize("ends", [(-1, 1), (2, 1), (0, 4)])
def test_offsets_that_point_outside_of_the_data_are_told_with_their_row_when_they_are_used(
    ends: tuple[int, int],
) -> None:
    hostile: Column = (memoryview(array("i", [0, 0, *ends])), b"abc", None, 0)
    assert keys_of(hostile, 0, 1) == [b""]
    with pytest.raises(ValueError, match="the offsets of row 2 of keys lie outside of its data"):
        keys_of(hostile, 2, 3)


def test_a_null_is_not_looked_up_in_the_data() -> None:
    hostile: Column = (memoryview(array("i", [-5, 99])), b"", b"\0", 0)
    assert keys_of(hostile, 0, 1) == [None]


def test_rows_have_their_own_timestamps_or_all_the_same() -> None:
    values = checked_column(column(b"a", b"b", b"c"), "values", 0, 3)
    own = checked_timestamps(memoryview(array("q", [7, 8, 9])), 0, 3)
    assert list(rows(own, None, values, 1, 3)) == [(8, None, b"b"), (9, None, b"c")]
    assert list(rows(5, None, values, 0, 2)) == [(5, None, b"a"), (5, None, b"b")]


@pytest.mark.parametrize(
    ("headers", "plain"),
    [
        ((), True),
        ([("a", b""), ("ключ", None)], True),
        pytest.param(iter(()), False, id="an iterator"),
        (None, False),
        ([["a", b""]], False),
        ([Pair(("a", b""))], False),
        ([("a", b"", 1)], False),
        ([("a",)], False),
        ([(Text("a"), b"")], False),
        ([("a", bytearray())], False),
        ([("\ud800", b"")], False),
        ([("a", b""), (b"b", b"")], False),
    ],
    ids=str,
)
def test_headers_are_plain_if_they_are_of_the_very_types_and_can_be_encoded(
    headers: Any, plain: bool
) -> None:
    assert are_plain(headers) is plain
