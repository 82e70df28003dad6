"""One line of `kclient produce`: its key, value and headers, as Kafka's console producer reads them."""

from __future__ import annotations

import pytest

from kclient.cli import produce
from kclient.errors import NetworkError
from kclient.producer import RecordMetadata

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


def tally(taken: int, delivered: int, *errors: str) -> produce._Tally:
    made = produce._Tally()
    made.taken = taken
    for _ in range(delivered):
        made.delivered_or_failed(RecordMetadata("t", 0, 0, 0, -1, 1), None)
    for error in errors:
        made.delivered_or_failed(RecordMetadata("t", 0, -1, -1, -1, 1), NetworkError(error))
    return made


def test_all_delivered_is_a_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert produce._report(tally(2, 2)) == 0
    assert capsys.readouterr().err == "2 delivered, 0 failed\n"


def test_records_that_nobody_heard_of_are_given_up_and_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert produce._report(tally(5, 2, "lost")) == 1
    assert capsys.readouterr().err == "failed: lost\n2 delivered, 1 failed, 2 given up\n"


def test_one_that_nobody_heard_of_is_enough_for_a_failure() -> None:
    assert produce._report(tally(3, 2)) == 1


def test_of_many_errors_the_most_frequent_are_told_once_each(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [f"error {number}" for number in range(9)] + ["error 7", "error 7", "error 3"]
    assert produce._report(tally(12, 0, *errors)) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["failed: error 7 (3 records)", "failed: error 3 (2 records)"]
    assert len(lines) == 6
    assert lines[-1] == "0 delivered, 12 failed"


def test_who_types_is_asked_before_each_line_and_not_after_the_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = produce._prompted([b"one\n", b"two\n"])
    assert capsys.readouterr().err == ""
    assert next(lines) == b"one\n"
    assert capsys.readouterr().err == ">"
    assert list(lines) == [b"two\n"]
    assert capsys.readouterr().err == ">>\n"
