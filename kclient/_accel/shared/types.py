"""The types that both bodies take and give."""

from __future__ import annotations

from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes in memory, wherever they are."""

Headers: TypeAlias = "tuple[tuple[str, bytes | None], ...]"
"""Names and values of a record's headers, in order."""
