"""Columns of Arrow's as records: topics taken apart, types brought into one form, and what is wrong told by its row."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.producer.internals.arrow_records import ArrowRecords, records_of
from kclient.record import BatchBuilder, BatchResult, iter_batches

pa = pytest.importorskip("pyarrow", reason="pip install '.[arrow]'")

NOW_MS = 1_700_000_000_000


def pieces(data: Any, topic: str | None = "t") -> list[ArrowRecords]:
    return list(records_of(data, topic, NOW_MS))


def only(topic: str | None = "t", /, **columns: Any) -> ArrowRecords:
    (piece,) = pieces(pa.table(columns), topic)
    return piece


def appended(piece: ArrowRecords) -> list[tuple[int, bytes | None, bytes | None]]:
    """The records of a batch to which the piece's buffers were appended."""
    builder = BatchBuilder("t", 0, 100_000, BatchResult("t", 0), 0)
    assert builder.append_columns(piece.timestamps, piece.keys, piece.values, 0, len(piece)) == (
        0,
        len(piece),
    )
    builder.close(-1, -1, -1, 0, None)
    (batch,) = iter_batches(builder.views()[0])
    return [(record.timestamp_ms, record.key, record.value) for record in batch.records()]


def test_buffers_and_rows_say_the_same() -> None:
    piece = only(
        key=[b"k", None, b""], value=[b"a", None, b"ccc"], timestamp=pa.array([5, 6, 7], pa.timestamp("ms"))
    )
    rows = [piece.row(i) for i in range(3)]
    assert rows == [(5, b"k", b"a"), (6, None, None), (7, b"", b"ccc")]
    assert appended(piece) == rows


@pytest.mark.parametrize("kind", ["binary", "large_binary"])
def test_a_part_of_a_column_is_read_from_where_it_begins(kind: str) -> None:
    kind_of = getattr(pa, kind)()
    table = pa.table(
        {
            "key": pa.array([b"x", None, b"k", None, b"y"], kind_of),
            "value": pa.array([b"0", b"11", None, b"3333", b"4"], kind_of),
            "timestamp": pa.array([1, 2, 3, None, 5], pa.int64()),
        }
    )
    (piece,) = pieces(table.slice(1, 3))
    assert appended(piece) == [(2, None, b"11"), (3, b"k", None), (NOW_MS, None, b"3333")]


def test_a_column_of_nothing_but_null_is_a_value_too() -> None:
    piece = only(value=pa.nulls(2), key=pa.nulls(2, pa.binary()))
    assert [piece.row(i) for i in range(2)] == [(None, None, None)] * 2
    assert [record[1:] for record in appended(piece)] == [(None, None)] * 2


def test_chunks_are_pieces_and_rows_are_counted_through_them() -> None:
    chunked = pa.chunked_array([[b"a"], [], [b"b", b"c"]], pa.binary())
    found = pieces(pa.table({"value": chunked}))
    assert [list(piece.indexes) for piece in found] == [[0], [1, 2]]


def test_topics_are_taken_apart_and_each_keeps_its_order_and_its_rows() -> None:
    found = pieces(pa.table({"topic": ["a", "b", "a", "b"], "value": [b"0", b"1", b"2", b"3"]}), None)
    assert [(piece.topic, list(piece.indexes), [piece.row(i)[2] for i in range(2)]) for piece in found] == [
        ("a", [0, 2], [b"0", b"2"]),
        ("b", [1, 3], [b"1", b"3"]),
    ]


def test_a_topic_that_is_given_is_that_of_all_whatever_the_column_says() -> None:
    assert only("t", topic=["a", "b"], value=[b"0", b"1"]).topic == "t"


def test_what_was_taken_twice_still_knows_its_rows() -> None:
    piece = only(value=[b"%d" % i for i in range(5)])
    first = piece.taken(pa.array([4, 2, 0], pa.uint64()))
    assert list(first.indexes) == [4, 2, 0]
    assert list(first.taken(pa.array([2, 1], pa.uint64())).indexes) == [0, 2]


def test_headers_are_pairs_and_none_at_all_are_none() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    given = [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None, []]
    piece = only(value=[b"a", b"b", b"c"], headers=pa.array(given, kind))
    assert [piece.headers_of(i) for i in range(3)] == [(("h", b"1"), ("h", None)), (), ()]
    assert only(value=[b"a"], headers=pa.array([[]], kind)).headers is None


@pytest.mark.parametrize(
    ("unit", "value", "expected"),
    [("s", 5, 5000), ("us", 5_999, 5), ("ns", 5_999_999, 5), ("ms", None, NOW_MS)],
)
def test_times_are_milliseconds_and_the_rest_is_cut_off(unit: str, value: int | None, expected: int) -> None:
    piece = only(value=[b"a", b"b"], timestamp=pa.array([value, 0], pa.timestamp(unit)))
    assert piece.row(0)[0] == expected


def test_columns_of_null_alone_are_as_if_they_were_not_given() -> None:
    piece = only(value=[b"a"], partition=pa.nulls(1, pa.int32()), timestamp=pa.nulls(1, pa.int64()))
    assert (piece.partition, piece.timestamp, piece.timestamps) == (None, None, None)


@pytest.mark.parametrize(
    ("columns", "error", "complaint"),
    [
        ({"values": [b"a"]}, ValueError, "column 'values' is none of those"),
        ({"key": [b"a"]}, ValueError, "no column 'value'"),
        ({"value": [1]}, TypeError, "'value' has type int64; it must hold bytes or text"),
        ({"value": [b"a", b"b"], "partition": [0, -3]}, ValueError, "partition is negative in row 1: -3"),
        ({"value": [b"a"], "partition": [2**31]}, ValueError, "not all of column 'partition' can be int32"),
        ({"value": [b"a"], "partition": [0.5]}, TypeError, "'partition' has type double"),
        ({"value": [b"a", b"b"], "timestamp": [0, -1]}, ValueError, "before 1970 in row 1: -1 ms"),
        ({"value": [b"a"], "timestamp": ["now"]}, TypeError, "'timestamp' has type string"),
        ({"value": [b"a"], "headers": ["h"]}, TypeError, "'headers' has type string"),
        ({"value": [b"a"], "headers": [[{"key": None, "value": b""}]]}, ValueError, "header without a key"),
    ],
)
def test_what_is_wrong_is_told_with_its_column_and_row(
    columns: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        pieces(pa.table(columns))


def test_without_a_topic_there_is_nowhere_to_go() -> None:
    with pytest.raises(ValueError, match="no column 'topic', and no topic is given"):
        pieces(pa.table({"value": [b"a"]}), None)
    first = pa.record_batch({"topic": ["a", "a"], "value": [b"a", b"a"]})
    second = pa.record_batch({"topic": ["a", None], "value": [b"a", b"a"]})
    with pytest.raises(ValueError, match="topic is null in row 3"):
        pieces(pa.Table.from_batches([first, second]), None)


def test_what_is_no_table_is_refused_by_its_type() -> None:
    for data in ([1, 2], object(), 5):
        with pytest.raises((TypeError, ValueError), match=f"not {type(data).__name__}: "):
            pieces(data)


def test_no_rows_are_no_records() -> None:
    assert pieces(pa.table({"value": pa.array([], pa.binary())})) == []
