"""The end of fetched batches, found without reading them."""

from __future__ import annotations

import struct

from kclient._accel.shared.types import Buffer

# Base offset, length of what follows the length, leader epoch, magic, CRC, attributes, last offset delta.
_BATCH_HEADER = struct.Struct(">qiibIhi")
_LENGTH_PREFIX = 12
_SMALLEST_BATCH = 14


def end_of_batches(data: Buffer) -> int | None:
    """The offset after the last whole batch in `data`; None if there is none or the headers are malformed."""
    pos, size = 0, len(data)
    end: int | None = None
    while size - pos >= _BATCH_HEADER.size:
        base, length, _, magic, _, _, last_delta = _BATCH_HEADER.unpack_from(data, pos)
        if length < _SMALLEST_BATCH or last_delta < 0 <= magic - 2:
            return None
        pos += _LENGTH_PREFIX + length
        if pos > size:
            break
        # Before magic 2 an entry carries the offset of its last record itself.
        end = base + 1 + (last_delta if magic >= 2 else 0)
    return end
