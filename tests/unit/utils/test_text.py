"""Numbers with what they count, as people read them."""

from __future__ import annotations

import pytest

from kclient.utils.text import counted, host_and_port


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 records"), (1, "1 record"), (2, "2 records"), (-1, "-1 records"), (11, "11 records")],
)
def test_only_one_thing_is_singular(number: int, said: str) -> None:
    assert counted(number, "record") == said


def test_thousands_are_set_apart() -> None:
    assert counted(999, "record") == "999 records"
    assert counted(1_234_567, "record") == "1,234,567 records"


@pytest.mark.parametrize(
    ("host", "text"), [("broker", "broker:9092"), ("10.0.0.1", "10.0.0.1:9092"), ("::1", "[::1]:9092")]
)
def test_an_ipv6_address_stands_in_brackets_before_its_port(host: str, text: str) -> None:
    assert host_and_port(host, 9092) == text
