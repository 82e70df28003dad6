"""Checks of settings' values. A validator returns the value in its normal form or raises ValueError.

`describe()` is the text for documentation, in the notation that Kafka's own documentation uses.
"""

from __future__ import annotations

import inspect
from typing import ClassVar, Protocol

import attrs

from kclient.config.durations import parse_duration_ms
from kclient.utils.log_context import shared_logger

_log = shared_logger(__name__)

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_NAME_LENGTH = 249


class Validator(Protocol):
    """Checks one value of a setting; cross-key rules are not its business."""

    def __call__(self, value: object) -> object:
        """The value in its normal form. Raises ValueError saying what is expected."""

    def describe(self) -> str:
        """Return the allowed values as text for documentation."""


@attrs.frozen
class Range:
    """A number from `low` to `high`, both included; None is no limit."""

    low: float | None = None
    high: float | None = None

    def __call__(self, value: object) -> object:
        if not isinstance(value, int | float):
            raise ValueError("expected a number")
        if self.low is not None and value < self.low:
            raise ValueError(f"it must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise ValueError(f"it must be at most {self.high}")
        return value

    def describe(self) -> str:
        ends = [str(end) for end in (self.low, "...", self.high) if end is not None]
        return f"[{','.join(ends)}]"


def at_least(low: float) -> Range:
    """A number of at least `low`."""
    return Range(low)


def between(low: float, high: float) -> Range:
    """A number from `low` to `high`, both included."""
    return Range(low, high)


@attrs.frozen
class OneOf:
    """One of a few words; with `ignore_case` in any case, and then the value becomes the word as declared."""

    words: tuple[str, ...]
    ignore_case: bool = False

    def __call__(self, value: object) -> object:
        for word in self.words:
            if value == word or (self.ignore_case and str(value).lower() == word.lower()):
                return word
        raise ValueError(f"it must be one of {', '.join(self.words)}")

    def describe(self) -> str:
        return f"{'(case insensitive) ' if self.ignore_case else ''}[{', '.join(self.words)}]"


def one_of(*words: str, ignore_case: bool = False) -> OneOf:
    """One of `words`."""
    return OneOf(words, ignore_case)


@attrs.frozen
class WordOrFunction:
    """One of a few words, or a function that is called at once with its answer: no class and no coroutine function."""

    words: tuple[str, ...]

    def __call__(self, value: object) -> object:
        if isinstance(value, str):
            if value in self.words:
                return value
        elif isinstance(value, type):
            raise ValueError("it is a class, not a function")
        elif inspect.iscoroutinefunction(value):
            raise ValueError("a coroutine function would not be awaited")
        elif callable(value):
            return value
        raise ValueError(f"it must be one of {', '.join(self.words)}, or a function")

    def describe(self) -> str:
        return f"[{', '.join(self.words)}], or a function"


@attrs.frozen
class NonEmpty:
    """A string that is not empty."""

    def __call__(self, value: object) -> object:
        if value == "":
            raise ValueError("it must not be empty")
        return value

    def describe(self) -> str:
        return "non-empty string"


@attrs.frozen
class ResourceName:
    """A name that brokers accept: the rules of topic names, which hold for group.instance.id as well."""

    def __call__(self, value: object) -> object:
        text = str(value)
        if text in {"", ".", ".."} or len(text) > _NAME_LENGTH or not _NAME_CHARACTERS.issuperset(text):
            raise ValueError(
                f"it must be 1 to {_NAME_LENGTH} of a-z, A-Z, 0-9, '.', '_' and '-', and not '.' or '..'"
            )
        return value

    def describe(self) -> str:
        return "non-empty string"


@attrs.frozen
class Levels:
    """A compression level from `low` to `high`, or `default` for the library's own choice."""

    low: int
    high: int
    default: int

    def __call__(self, value: object) -> object:
        if value != self.default and not (isinstance(value, int) and self.low <= value <= self.high):
            raise ValueError(f"it must be {self.low} to {self.high}, or {self.default}")
        return value

    def describe(self) -> str:
        return f"[{self.low},...,{self.high}] or {self.default}"


@attrs.frozen
class OffsetReset:
    """`latest`, `earliest`, `none` or `by_duration:` and an ISO-8601 duration (KIP-1106)."""

    words: ClassVar[tuple[str, ...]] = ("latest", "earliest", "none")

    def __call__(self, value: object) -> object:
        text = str(value)
        word, colon, duration = text.partition(":")
        if colon and word == "by_duration":
            parse_duration_ms(duration)
        elif text not in self.words:
            raise ValueError(f"it must be {', '.join(self.words)} or by_duration:<ISO-8601 duration>")
        return value

    def describe(self) -> str:
        return f"[{', '.join(self.words)}, by_duration:PnDTnHnMn.nS]"


@attrs.frozen
class NoDuplicates:
    """A list in which an entry that comes again is left out, with a warning (KIP-1161)."""

    def __call__(self, value: object) -> object:
        if not isinstance(value, list):
            raise ValueError("expected a list")
        unique: list[object] = []
        for item in value:
            if item in unique:
                _log.warning("The list names %r more than once; the repeats are left out.", item)
            else:
                unique.append(item)
        return unique

    def describe(self) -> str:
        return ""
