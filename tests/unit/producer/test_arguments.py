from __future__ import annotations

import pytest

from kclient.producer.internals.arguments import (
    check_partition,
    check_timeout,
    check_timestamp,
    checked_headers,
)


@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), ("0", TypeError), (1.0, TypeError), (True, TypeError)]
)
def test_a_partition_must_be_a_number_from_0(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="partition"):
        check_partition(value)


@pytest.mark.parametrize(
    ("value", "error"), [(-2, ValueError), (2**63, ValueError), (1.5, TypeError), ("1", TypeError)]
)
def test_a_timestamp_must_be_ms_since_the_epoch(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="timestamp_ms"):
        check_timestamp(value)


@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (float("nan"), TypeError), (1.5, TypeError)])
def test_a_timeout_must_be_ms(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="timeout_ms"):
        check_timeout(value)


@pytest.mark.parametrize(
    "value", [[(None, b"")], [("k", "text")], [("k",)], ["kv"], {"k": b"v"}, "kv", b"kv", 5, [(b"k", b"v")]]
)
def test_headers_must_be_pairs_of_str_and_bytes(value: object) -> None:
    with pytest.raises(TypeError, match="headers"):
        checked_headers(value)


def test_header_values_may_be_any_buffer_or_none() -> None:
    headers = [("a", bytearray(b"1")), ("b", None), ["a", memoryview(b"2")]]
    assert checked_headers(headers) == (("a", b"1"), ("b", None), ("a", b"2"))
