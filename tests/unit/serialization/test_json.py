"""JSON values."""

from __future__ import annotations

import datetime as dt

import pytest

from kclient.serialization import JsonDeserializer, JsonSerializer


def test_json_is_compact_utf8() -> None:
    assert JsonSerializer().serialize("t", {"a": [1, None, "é"]}, ()) == '{"a":[1,null,"é"]}'.encode()


def test_json_comes_back() -> None:
    value = {"a": [1, 2.5, None, True], "b": {"c": "né€😀"}}
    assert JsonDeserializer().deserialize("t", JsonSerializer().serialize("t", value, ()), ()) == value


def test_equal_objects_have_equal_bytes_with_sorted_keys() -> None:
    serializer = JsonSerializer(sort_keys=True)
    assert serializer.serialize("t", {"b": 1, "a": 2}, ()) == serializer.serialize("t", {"a": 2, "b": 1}, ())


def test_other_types_go_through_default() -> None:
    serializer = JsonSerializer(default=dt.date.isoformat)
    assert serializer.serialize("t", dt.date(2024, 1, 2), ()) == b'"2024-01-02"'
    with pytest.raises(TypeError):
        JsonSerializer().serialize("t", object(), ())


def test_what_json_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="JSON"):
        JsonSerializer().serialize("t", float("nan"), ())


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"1 2"])
def test_what_is_not_json_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        JsonDeserializer().deserialize("t", data, ())
