"""Types of settings."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.config.values import Password, Type, parse_value
from kclient.errors import ConfigError


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (Type.BOOLEAN, " True ", True),
        (Type.BOOLEAN, "false", False),
        (Type.BOOLEAN, True, True),
        (Type.INT, " 5 ", 5),
        (Type.INT, "+5", 5),
        (Type.INT, -(2**31), -(2**31)),
        (Type.LONG, "9223372036854775807", 2**63 - 1),
        (Type.SHORT, "-32768", -32768),
        (Type.DOUBLE, "0.5", 0.5),
        (Type.DOUBLE, 1, 1.0),
        (Type.STRING, " text ", "text"),
        (Type.STRING, 1, "1"),
        (Type.LIST, "", []),
        (Type.LIST, " a , b", ["a", "b"]),
        (Type.LIST, ("a ", 1), ["a", 1]),
        (Type.PASSWORD, " secret ", Password("secret")),
        (Type.PASSWORD, Password("secret"), Password("secret")),
        (Type.CLASS, len, len),
        (Type.CLASS, " name ", "name"),
    ],
)
def test_strings_and_native_values_become_the_type(type_: Type, value: object, expected: object) -> None:
    parsed = parse_value("x", type_, value)
    assert parsed == expected
    assert type(parsed) is type(expected)


@pytest.mark.parametrize("type_", list(Type))
def test_none_stays_none(type_: Type) -> None:
    assert parse_value("x", type_, None) is None


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (Type.BOOLEAN, "yes"),
        (Type.BOOLEAN, 1),
        (Type.BOOLEAN, ""),
        (Type.INT, "1.0"),
        (Type.INT, 1.0),
        (Type.INT, True),
        (Type.INT, ""),
        (Type.INT, "1_000"),
        (Type.INT, "+-1"),
        (Type.INT, "٣"),
        (Type.INT, 2**31),
        (Type.INT, "2147483648"),
        (Type.INT, "9" * 10_000),
        (Type.INT, float("nan")),
        (Type.SHORT, 32768),
        (Type.LONG, 2**63),
        (Type.DOUBLE, "nan"),
        (Type.DOUBLE, float("inf")),
        (Type.DOUBLE, True),
        (Type.DOUBLE, 10**400),
        (Type.DOUBLE, "half"),
        (Type.STRING, 1.5),
        (Type.STRING, True),
        (Type.STRING, b"bytes"),
        (Type.LIST, "a,,b"),
        (Type.LIST, ["a", None]),
        (Type.LIST, 5),
        (Type.LIST, b"a,b"),
        (Type.LIST, {"a": 1}),
        (Type.PASSWORD, 5),
    ],
)
def test_other_values_are_refused_with_the_settings_name(type_: Type, value: object) -> None:
    with pytest.raises(ConfigError, match=r"^some\.key: ") as caught:
        parse_value("some.key", type_, value)
    assert caught.value.name == "some.key"


def test_a_password_is_never_shown() -> None:
    password = Password("hunter2")
    assert "hunter2" not in f"{password} {password!r} {[password]}"
    with pytest.raises(ConfigError) as caught:
        parse_value("x", Type.PASSWORD, b"hunter2")
    assert "hunter2" not in str(caught.value)


@given(
    st.sampled_from(list(Type)), st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.booleans())
)
def test_any_value_is_taken_or_refused_with_a_config_error(type_: Type, value: object) -> None:
    with contextlib.suppress(ConfigError):
        parse_value("x", type_, value)
