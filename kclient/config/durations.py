"""ISO-8601 durations as `auto.offset.reset=by_duration:PnDTnHnMn.nS` takes them (KIP-1106)."""

from __future__ import annotations

import re
from typing import NewType

ByDuration = NewType("ByDuration", str)
"""Says to type checkers that a text for `auto_offset_reset` is `by_duration:` and a duration, which they cannot see."""

_DURATION = re.compile(
    r"P(?:([+-]?\d{1,9})D)?(T(?:([+-]?\d{1,12})H)?(?:([+-]?\d{1,14})M)?(?:([+-]?\d{1,16})(?:[.,](\d{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def parse_duration_ms(text: str) -> int:
    """The milliseconds that `text` stands for, by the rules of `java.time.Duration`: days, hours, minutes,
    seconds.

    Raises ValueError for anything else, for an empty `P` or `T`, and for a duration below zero.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None or all(match[part] is None for part in (1, 3, 4, 5)) or match[2] in {"T", "t"}:
        raise ValueError(f"{text!r} is not an ISO-8601 duration such as P7D or PT1H30M")
    days, hours, minutes, seconds = (int(match[part] or 0) for part in (1, 3, 4, 5))
    millis = int((match[6] or "").ljust(3, "0")[:3])
    if (match[5] or "").startswith("-"):
        millis = -millis
    total = ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + millis
    if total < 0:
        raise ValueError(f"{text!r} is below zero")
    return total
