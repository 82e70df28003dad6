"""One line of `kclient produce`: its key, value and headers, as Kafka's console producer reads them."""

from __future__ import annotations

import pytest

from kclient.cli import produce

Parsed = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def parsed(line: str | bytes, **given: str) -> Parsed:
    reader = {**produce._READER, **{name.replace("_", "."): value for name, value in given.items()}}
    return produce.parse_line(line.encode() if isinstance(line, str) else line, reader)


def with_headers(line: str, **given: str) -> Parsed:
    return parsed(line, parse_headers="true", **given)


def test_a_line_is_a_value_alone_unless_more_is_asked_for() -> None:
    assert parsed("h:1\tk\tv") == (None, b"h:1\tk\tv", [])
    assert parsed("") == (None, b"", [])
    assert parsed(b"\xff") == (None, b"\xff", [])


def test_headers_come_first_then_the_key_then_all_the_rest() -> None:
    line = "a:1,b:2:3\tk\tv\tw"
    assert with_headers(line, parse_key="TRUE") == (b"k", b"v\tw", [("a", b"1"), ("b", b"2:3")])
    assert with_headers(line) == (None, b"k\tv\tw", [("a", b"1"), ("b", b"2:3")])
    assert with_headers("\tk\tv", parse_key="true") == (b"k", b"v", [])


def test_separators_may_be_longer_and_no_ascii() -> None:
    found = with_headers(
        "a=>1;;b=>2##k→v",
        parse_key="true",
        key_separator="→",
        headers_delimiter="##",
        headers_separator=";;",
        headers_key_separator="=>",
    )
    assert found == (b"k", b"v", [("a", b"1"), ("b", b"2")])


def test_the_null_marker_is_a_null_wherever_it_is_all_there_is() -> None:
    found = with_headers("a:NULL,b:NULLS\tNULL\tNULL", parse_key="true", null_marker="NULL")
    assert found == (None, None, [("a", None), ("b", b"NULLS")])
    assert with_headers("NULL\tk\tv", parse_key="true", null_marker="NULL") == (b"k", b"v", [])
    assert parsed("", null_marker="") == (None, b"", [])


@pytest.mark.parametrize(
    ("line", "missing"),
    [("v", "headers.delimiter"), ("a:1\tv", "key.separator"), ("a:1,b\tk\tv", "headers.key.separator")],
)
def test_what_is_missing_is_told_by_the_name_of_its_property(line: str, missing: str) -> None:
    with pytest.raises(ValueError, match=rf"no {missing} .* ignore\.error=true"):
        with_headers(line, parse_key="true")


def test_what_is_missing_may_be_passed_over() -> None:
    def lenient(line: str) -> Parsed:
        return with_headers(line, parse_key="true", ignore_error="true")

    assert lenient("v") == (None, b"v", [])
    assert lenient("a:1\tv") == (None, b"v", [("a", b"1")])
    assert lenient("a:1,b\tk\tv") == (b"k", b"v", [("a", b"1"), ("b", None)])


def test_nothing_behind_the_last_header_is_no_header() -> None:
    assert with_headers("a:1,,\tv") == (None, b"v", [("a", b"1")])


def test_the_name_of_a_header_is_never_null_and_always_text() -> None:
    with pytest.raises(ValueError, match="the name of a header cannot be null"):
        with_headers("NULL:1\tv", null_marker="NULL")
    with pytest.raises(ValueError, match="utf-8"):
        parsed(b"\xff:1\tv", parse_headers="true")
