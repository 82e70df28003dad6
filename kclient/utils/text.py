"""Text for people."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """Return `number` with what it counts: 1 record, 2 records."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
