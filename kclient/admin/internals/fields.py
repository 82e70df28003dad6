"""Checks of fields of arguments: what cannot be is refused when the value is made, by the field's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

Check = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def of_type(kind: type, *, optional: bool = False, secret: bool = False) -> Check:
    """A validator for one type, and None where `optional`. A `secret` is never shown."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if (optional and value is None) or (
            isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        ):
            return
        shown = a(type(value)) if secret else repr(value)
        raise TypeError(f"{type(instance).__name__}: {attribute.name} must be {a(kind)}, not {shown}")

    return check


def within(least: int, most: int) -> Check:
    """A validator for the limits of a number; None is left to `of_type`."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value is not None and not least <= value <= most:
            raise ValueError(
                f"{type(instance).__name__}: {attribute.name} must be {least} to {most}, not {value}"
            )

    return check


def a(kind: type) -> str:
    """The name of a class behind its article."""
    return f"{'an' if kind.__name__[0] in 'AEIOUaeiou' else 'a'} {kind.__name__}"


def checked_principal(what: str, principal: Any) -> str:
    """A principal as "User:alice". Raises TypeError and ValueError that begin with `what`."""
    if not isinstance(principal, str):
        raise TypeError(f"{what} must be a str such as 'User:alice', not {principal!r}")
    kind, colon, name = principal.partition(":")
    if not colon or not kind or not name:
        raise ValueError(f"{what} must be a principal such as 'User:alice', not {principal!r}")
    return principal
