"""Codes that newer brokers may add to."""

from __future__ import annotations

import copy
import pickle

import pytest

from kclient.utils.code_enum import CodeEnum


class Kind(CodeEnum):
    UNKNOWN = 0
    ONE = 1


class Other(CodeEnum):
    TWO = 2


def test_a_code_that_has_no_member_keeps_its_number() -> None:
    made = Kind(42)
    assert (made, made.name, made.value, repr(made)) == (42, "UNKNOWN_42", 42, "<Kind.UNKNOWN_42: 42>")
    assert isinstance(made, Kind)
    assert Kind(-3).name == "UNKNOWN_-3"


def test_there_is_one_of_each_also_after_pickling_and_copying() -> None:
    made = Kind(43)
    assert Kind(43) is made
    assert pickle.loads(pickle.dumps(made)) is made
    assert copy.deepcopy(made) is made
    assert {made: 1}[Kind(43)] == 1


def test_those_that_are_known_stay_the_only_members() -> None:
    made = Kind(44)
    assert Kind(1) is Kind.ONE
    assert made not in list(Kind)
    assert "UNKNOWN_44" not in Kind.__members__
    assert type(Other(44)) is Other


@pytest.mark.parametrize("value", [128, -129, 1.5, "ONE", None, b"1"])
def test_what_is_no_code_of_a_byte_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a valid Kind"):
        Kind(value)
