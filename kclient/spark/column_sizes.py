"""The size of records as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kclient.consumer import RecordColumns


def columns_bytes(columns: RecordColumns) -> int:
    """Return the size of all keys, values and headers."""
    parts = [columns.keys, columns.values]
    if columns.headers is not None:
        parts += [columns.headers.names, columns.headers.values]
    return sum(len(part.data) for part in parts)
