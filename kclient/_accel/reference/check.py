"""The records of a batch that is about to be appended: whether they are sound, and how late the latest is."""

from __future__ import annotations

from kclient._accel.shared.records import decode_portions
from kclient._accel.shared.runs import Run
from kclient._accel.shared.types import Buffer
from kclient._accel.shared.varint import wrapped

NO_TIMESTAMP = -1


def largest_timestamp(records: Buffer, count: int, base_ms: int) -> int:
    """The largest timestamp of the `count` records that fill `records`, -1 if none is larger.

    Timestamps count from `base_ms`. Raises ValueError if the records are malformed, or more or fewer.
    """
    data = bytes(records)
    if not count and data:
        raise ValueError(f"{len(data)} bytes follow the last record")
    largest = NO_TIMESTAMP
    for portion in decode_portions(data, count):
        if isinstance(portion, Run):
            found = portion.largest_timestamp(base_ms)
        else:
            found = max(wrapped(base_ms + record[1]) for record in portion)
        largest = max(largest, found)
    return largest
