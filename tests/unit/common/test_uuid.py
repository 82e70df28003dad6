"""Uuid: its text, which is read strictly, its order and its zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.uuid import Uuid


@given(st.binary(min_size=16, max_size=16))
def test_its_text_is_read_back(raw: bytes) -> None:
    made = Uuid(raw)
    assert Uuid.from_base64(str(made)) == made
    assert repr(made) == f"Uuid({made})"


def test_its_text_is_fit_for_file_names() -> None:
    assert str(Uuid(b"\xff" * 16)) == "_" * 21 + "w"
    assert str(Uuid(b"\xfb\xef\xbe" * 5 + b"\xfb")) == "-" * 20 + "-w"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A" * 21,
        "A" * 23,
        "A" * 21 + "\n",
        "A" * 21 + " ",
        "A" * 20 + "==",
        "A" * 21 + "é",
        "+" + "A" * 21,
        "A" * 10 + "/" + "A" * 11,
        "A" * 10 + "=" + "A" * 11,
    ],
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="should have 22 characters"):
        Uuid.from_base64(text)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_it_has_16_bytes_and_no_other_number(size: int) -> None:
    with pytest.raises(ValueError, match=f"16 bytes, not {size}"):
        Uuid(bytes(size))


def test_a_random_one_never_begins_as_an_option_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [b"\xf8" + bytes(15), b"\xfb" * 16, b"\1" * 16]

    class Drawn:
        def __init__(self) -> None:
            self.bytes = drawn.pop(0)

    monkeypatch.setattr("kclient.common.uuid._uuid.uuid4", Drawn)
    assert Uuid.random() == Uuid(b"\1" * 16)
    assert drawn == []


def test_they_are_ordered_by_their_bytes() -> None:
    low, high = Uuid(b"\x7f" * 16), Uuid(b"\x80" + bytes(15))
    assert sorted([high, Uuid.ZERO, low]) == [Uuid.ZERO, low, high]


def test_zero_is_the_one_of_zeros_and_no_other() -> None:
    assert Uuid(bytes(16)) == Uuid.ZERO
    assert Uuid(bytes(15) + b"\1") != Uuid.ZERO
    assert len({Uuid(bytes(16)), Uuid.ZERO}) == 1
