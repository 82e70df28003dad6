"""The types of settings, and the way from what a user wrote to a value of that type."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

import attrs

from kclient.errors import ConfigError


class Type(Enum):
    """The type of a setting's value. The names and ranges are Java's."""

    BOOLEAN = "boolean"
    STRING = "string"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    LIST = "list"
    CLASS = "class"
    PASSWORD = "password"


@attrs.frozen(repr=False)
class Password:
    """A secret. Its `repr` and `str` never show it, so that it cannot end up in a log by accident."""

    value: str

    def __repr__(self) -> str:
        return "[hidden]"

    __str__ = __repr__


_INTEGER_BITS = {Type.SHORT: 16, Type.INT: 32, Type.LONG: 64}


def parse_value(name: str, type_: Type, value: object) -> object:
    """`value`, a string or a native object, as a value of `type_`.

    Raises ConfigError with the setting's name if that is not possible. None stays None: whether a setting may
    be left unset is not a question of its type.
    """
    if value is None:
        return None
    try:
        return _PARSERS[type_](value, type_)
    except ValueError as error:
        shown = "the value given" if type_ is Type.PASSWORD else repr(value)
        raise ConfigError(f"{name}: {shown} is not valid: {error}.", name=name) from None


def _boolean(value: object, _: Type) -> bool:
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else None
    if text not in {"true", "false"}:
        raise ValueError("expected true or false")
    return text == "true"


def _integer(value: object, type_: Type) -> int:
    bits = _INTEGER_BITS[type_]
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str):
        text = value.strip()
        # int() would also take "1_000" and digits of other scripts, and would work hard on a very long text.
        if len(text) <= 20 and text.isascii() and text.lstrip("+-").isdigit() and "_" not in text:
            try:
                number = int(text)
            except ValueError:
                number = None
    if number is None:
        raise ValueError("expected a whole number")
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(f"the number does not fit into {bits} bits")
    return number


def _double(value: object, _: Type) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("expected a number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError("expected a number") from None
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    return number


def _string(value: object, _: Type) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # acks=1 and client_id=7 are natural in Python and can mean one thing only
    raise ValueError("expected a string")


def _list(value: object, _: Type) -> list[object]:
    if isinstance(value, str):
        if not value.strip():
            return []
        items: list[object] = [item.strip() for item in value.split(",")]
    elif isinstance(value, Iterable) and not isinstance(value, bytes | bytearray | Mapping):
        items = [item.strip() if isinstance(item, str) else item for item in value]
    else:
        raise ValueError("expected a list, or a string with commas between the entries")
    if any(item is None or item == "" for item in items):
        raise ValueError("an entry of the list is empty")
    return items


def _class(value: object, _: Type) -> object:
    return value.strip() if isinstance(value, str) else value


def _password(value: object, _: Type) -> Password:
    if isinstance(value, Password):
        return value
    if isinstance(value, str):
        return Password(value.strip())
    raise ValueError("expected a string")


_PARSERS: dict[Type, Callable[[object, Type], object]] = {
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.SHORT: _integer,
    Type.INT: _integer,
    Type.LONG: _integer,
    Type.DOUBLE: _double,
    Type.LIST: _list,
    Type.CLASS: _class,
    Type.PASSWORD: _password,
}
