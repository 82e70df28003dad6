"""ColumnBuilder of the reference body: records collected, and their columns in Arrow's layout."""

from __future__ import annotations

import struct
from array import array
from typing import Any

import pytest

from kclient._accel.reference import column_builder
from kclient._accel.reference.column_builder import ColumnBuilder
from kclient._accel.shared.columns import BinaryColumn, Columns
from kclient._accel.shared.types import Headers

LONG = b"a string of more than twelve"


def filled(view: bool, *records: tuple[bytes | None, bytes | None], headers: Headers = ()) -> ColumnBuilder:
    made = ColumnBuilder(view, 1000)
    for key, value in records:
        add(made, key, value, headers)
    return made


def add(builder: ColumnBuilder, key: bytes | None, value: bytes | None, headers: Headers = ()) -> None:
    builder.offsets.append(len(builder))
    builder.timestamps.append(7)
    builder.timestamp_types.append(1)
    builder.keys.append(key)
    builder.values.append(value)
    builder.headers.append(headers)


def built(builder: ColumnBuilder) -> Columns:
    found = builder.build()
    assert found is not None
    return found


def views_of(column: BinaryColumn) -> list[tuple[Any, ...]]:
    """Size and, of a short string, its bytes; of a long one its beginning, its buffer and its place there."""
    assert column.views is not None
    pieces = [bytes(column.views[at : at + 16]) for at in range(0, len(column.views), 16)]
    return [
        struct.unpack("=i12s" if struct.unpack_from("=i", piece)[0] <= 12 else "=i4sii", piece)
        for piece in pieces
    ]


def test_without_records_there_are_no_columns() -> None:
    assert ColumnBuilder(False, 1000).build() is None
    assert ColumnBuilder(True, 1000).build() is None


def test_numbers_have_the_width_that_arrow_wants() -> None:
    found = built(filled(False, (b"k", b"v"), (b"k", b"v")))
    assert (found.count, found.offsets, found.timestamps, found.timestamp_types) == (
        2,
        array("q", [0, 1]),
        array("q", [7, 7]),
        array("b", [1, 1]),
    )
    assert found.headers is None


def test_copied_strings_lie_one_after_the_other_and_a_null_takes_no_place() -> None:
    found = built(filled(False, (b"one", b"x"), (None, b""), (b"", b"yz")))
    assert (found.keys.null_count, found.keys.validity) == (1, b"\x05")
    assert (found.keys.offsets, found.keys.data) == (array("i", [0, 3, 3, 3]), (b"one",))
    assert (found.values.null_count, found.values.validity) == (0, None)
    assert (found.values.offsets, found.values.data) == (array("i", [0, 1, 1, 3]), (b"xyz",))
    assert found.keys.views is None


def test_the_bitmap_has_a_byte_for_eight_strings_and_its_last_bits_are_unset() -> None:
    found = built(filled(False, *((None if number == 3 else b"k", None) for number in range(10))))
    assert found.keys.validity == bytes((0b1111_0111, 0b11))
    assert (found.values.null_count, found.values.validity) == (10, b"\0\0")


def test_a_view_holds_what_is_short_itself_and_says_where_the_rest_is() -> None:
    found = built(filled(True, (b"x" * 12, LONG), (None, LONG + b"!"), (b"y" * 13, b"")))
    assert views_of(found.keys) == [(12, b"x" * 12), (0, bytes(12)), (13, b"yyyy", 0, 0)]
    assert views_of(found.values) == [
        (len(LONG), LONG[:4], 0, 13),
        (len(LONG) + 1, LONG[:4], 0, 13 + len(LONG)),
        (0, bytes(12)),
    ]
    assert found.keys.data == found.values.data == (b"y" * 13 + LONG + LONG + b"!",)
    assert (found.keys.null_count, found.keys.validity) == (1, b"\x05")


def test_each_batch_has_a_buffer_of_its_own_for_what_views_refer_to() -> None:
    made = filled(True, (b"k", LONG))
    made.end_batch(100)
    add(made, b"short", b"too")
    made.end_batch(0)
    add(made, LONG, b"v")
    found = built(made)
    assert found.values.data == (LONG, LONG)
    assert views_of(found.values)[0] == (len(LONG), LONG[:4], 0, 0)
    assert views_of(found.keys)[2] == (len(LONG), LONG[:4], 1, 0)
    assert made.inflated == 100


def test_a_buffer_that_would_be_too_long_for_views_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(column_builder, "LARGEST_COLUMN", 2 * len(LONG))
    found = built(filled(True, *((None, LONG) for _ in range(3))))
    assert found.values.data == (LONG + LONG, LONG)
    assert [view[2:] for view in views_of(found.values)] == [(0, 0), (0, len(LONG)), (1, 0)]


def test_headers_are_columns_with_the_ends_of_each_record() -> None:
    made = filled(False, (None, None))
    add(made, None, None, (("ключ", b"1"), ("n", None)))
    add(made, None, None, (("n", b""),))
    headers = built(made).headers
    assert headers is not None
    assert headers.offsets == array("i", [0, 0, 2, 3])
    assert (headers.names.data, headers.names.offsets) == (("ключnn".encode(),), array("i", [0, 8, 9, 10]))
    assert (headers.values.data, headers.values.validity) == ((b"1",), b"\x05")


@pytest.mark.parametrize("view", [False, True])
def test_there_is_room_up_to_the_limit_of_each_column_and_views_of_contents_take_none(view: bool) -> None:
    made = ColumnBuilder(view, 10)
    add(made, b"k" * 4, b"v" * 6)
    assert made.has_room(b"k" * 6, b"v" * 4, ())
    assert made.has_room(b"k" * 7, None, ()) is view
    assert made.has_room(None, b"v" * 5, ()) is view
    assert made.has_room(None, None, (("ключ", b"1" * 10),))
    assert not made.has_room(None, None, (("ключик", None),))
    assert not made.has_room(None, None, (("", b"1" * 11),))


def test_what_came_without_being_asked_about_counts() -> None:
    made = filled(False, (b"k" * 400, None), (b"k" * 400, None))
    assert not made.has_room(b"k" * 201, None, ())
    add(made, b"k" * 200, None)
    assert made.has_room(b"", None, ())
    assert not made.has_room(b"k", None, ())


def test_the_first_record_has_room_unless_no_column_could_ever_hold_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = ColumnBuilder(False, 10)
    assert made.has_room(b"k" * 11, None, (("n", b"1" * 50),))
    monkeypatch.setattr(column_builder, "LARGEST_COLUMN", 20)
    with pytest.raises(ValueError, match="too long for a column"):
        made.has_room(None, None, (("n", b"1" * 21),))


def test_whole_batches_fit_while_three_times_their_bytes_would() -> None:
    made = ColumnBuilder(False, 30)
    assert made.fits(4)
    assert made.fits(6)
    assert not made.fits(1)
