"""The values of options: numbers, truth values and durations, as the JVM's connector reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kclient.errors import ConfigError

_NUMBER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_DURATION = re.compile(r"(\d{1,15})\s*([a-z]*)", re.ASCII | re.IGNORECASE)
_UNIT_MS: Mapping[str, int] = {
    "": 1,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


def parse_whole_number(options: Mapping[str, str], name: str, default: int, *, at_least: int) -> int:
    """The number that the option holds. Raises ConfigError."""
    text = options.get(name.lower())
    if text is None:
        return default
    text = text.strip()
    if _NUMBER.fullmatch(text) is None or not at_least <= int(text) < 2**63:
        raise ConfigError(f"{name}: {text!r} is not a whole number of at least {at_least}.", name=name)
    return int(text)


def optional_positive(options: Mapping[str, str], name: str) -> int | None:
    """A number of at least 1, None if the option is not given. Raises ConfigError."""
    return parse_whole_number(options, name, 0, at_least=1) or None


def optional_text(options: Mapping[str, str], name: str) -> str | None:
    """Return the text, None if the option is not given. Raises ConfigError for an empty one."""
    text = options.get(name.lower())
    if text is None:
        return None
    if not text.strip():
        raise ConfigError(f"{name} is empty; leave it out or give it a value.", name=name)
    return text.strip()


def parse_boolean(options: Mapping[str, str], name: str, default: bool) -> bool:
    """True or false in any case. Raises ConfigError."""
    text = options.get(name.lower())
    if text is None:
        return default
    known = {"true": True, "false": False}
    if text.strip().lower() not in known:
        raise ConfigError(f"{name}: {text!r} is neither true nor false.", name=name)
    return known[text.strip().lower()]


def parse_duration(options: Mapping[str, str], name: str, default_ms: int) -> int:
    """A time such as 500ms, 30s, 15m, 2h or 1d, in ms; a plain number is in ms. Raises ConfigError."""
    text = options.get(name.lower())
    if text is None:
        return default_ms
    match = _DURATION.fullmatch(text.strip())
    if match is None or match[2].lower() not in _UNIT_MS:
        raise ConfigError(f"{name}: {text!r} is not a time such as 500ms, 30s, 15m, 2h or 1d.", name=name)
    return int(match[1]) * _UNIT_MS[match[2].lower()]


def one_of(options: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    """One of `choices` in any case, the first if the option is not given. Raises ConfigError."""
    text = options.get(name.lower())
    if text is None:
        return choices[0]
    for choice in choices:
        if text.strip().lower() == choice.lower():
            return choice
    raise ConfigError(f"{name}: {text!r} is none of {', '.join(choices)}.", name=name)
