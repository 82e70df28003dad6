"""Checks of fields: by type, and principals."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kclient.admin.internals.fields import checked_principal, of_type


@attrs.frozen
class Fields:
    number: Any = attrs.field(default=1, validator=of_type(int))
    flag: Any = attrs.field(default=True, validator=of_type(bool))
    text: Any = attrs.field(default=None, validator=of_type(str, optional=True))
    secret: Any = attrs.field(default="", validator=of_type(str, secret=True))


def test_values_of_the_type_and_none_where_it_may_be_are_taken() -> None:
    assert Fields(5, flag=False, text="t", secret="s") == Fields(5, flag=False, text="t", secret="s")
    assert Fields(text=None).text is None


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("number", "1", "Fields: number must be an int, not '1'"),
        ("number", True, "Fields: number must be an int, not True"),
        ("number", None, "Fields: number must be an int, not None"),
        ("flag", 1, "Fields: flag must be a bool, not 1"),
        ("text", b"t", "Fields: text must be a str, not b't'"),
        ("secret", b"hidden", "Fields: secret must be a str, not a bytes"),
        ("secret", 5, "Fields: secret must be a str, not an int"),
    ],
)
def test_others_are_refused_and_secrets_not_shown(field: str, value: object, said: str) -> None:
    with pytest.raises(TypeError) as raised:
        Fields(**{field: value})
    assert str(raised.value) == said


def test_a_principal_has_a_type_and_a_name_which_may_have_colons() -> None:
    for principal in ("User:alice", "User:CN=a:b", "Group:g", "User:*"):
        assert checked_principal("owner", principal) == principal


@pytest.mark.parametrize("principal", ["alice", "User:", ":alice", ""])
def test_a_text_that_is_no_principal_is_refused(principal: str) -> None:
    with pytest.raises(ValueError, match=r"^owner must be a principal such as 'User:alice', not"):
        checked_principal("owner", principal)
