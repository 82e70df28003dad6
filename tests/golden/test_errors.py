"""Error codes against the table of the Java client."""

from __future__ import annotations

from typing import Any

import pytest

import kclient.errors
from harness.golden import golden_table
from kclient.errors import ApiError, Errors, KafkaError

pytestmark = pytest.mark.golden

ROWS: list[dict[str, Any]] = golden_table("errors")


def python_name(java: str) -> str:
    if java == "TimeoutException":
        return "KafkaTimeoutError"
    return java.removesuffix("Exception") + "Error"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_code_has_javas_name_class_and_properties(row: dict[str, Any]) -> None:
    code = row["code"]
    assert Errors[row["name"]] == code
    assert Errors.name_of(code) == row["name"]
    cls = Errors.error_class(code)
    error = Errors.for_code(code)
    if row["exception"] is None:
        assert cls is None
        assert error is None
        return
    assert cls is not None
    assert cls.__name__ == python_name(row["exception"])
    assert type(error) is cls
    assert (cls.code, cls.retriable, cls.invalid_metadata) == (
        code,
        row["retriable"],
        row["invalid_metadata"],
    )
    assert Errors.code_for(cls()) == code


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_class_has_javas_superclasses(row: dict[str, Any]) -> None:
    cls = Errors.error_class(row["code"])
    if cls is None:
        return
    ours = [base.__name__ for base in cls.__mro__[1:] if issubclass(base, KafkaError)]
    assert ours == [python_name(java) for java in row["superclasses"]]


def test_no_code_exists_that_java_does_not_have() -> None:
    assert {member.name: member.value for member in Errors} == {row["name"]: row["code"] for row in ROWS}
    ours = {
        cls.code
        for cls in vars(kclient.errors).values()
        if isinstance(cls, type) and issubclass(cls, ApiError)
    }
    assert ours - {None} <= {row["code"] for row in ROWS}
