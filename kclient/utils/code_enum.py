"""Enumerations of codes from the wire, which newer brokers may add to."""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class CodeEnum(IntEnum):
    """Codes of one byte. One that has no member keeps its number: it becomes `UNKNOWN_n`, and equals n."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if type(value) is not int or not -128 <= value <= 127:
            return None
        made = int.__new__(cls, value)
        made._name_ = f"UNKNOWN_{value}"
        made._value_ = value
        # Kept, as the members are, so that there is one of it; of one byte there are not many.
        known = cls._value2member_map_.setdefault(value, made)
        assert isinstance(known, cls)
        return known
