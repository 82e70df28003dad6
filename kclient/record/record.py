"""A record as it stands in a batch, and the kinds of timestamps."""

from __future__ import annotations

from enum import IntEnum

import attrs

Headers = tuple[tuple[str, bytes | None], ...]


class TimestampType(IntEnum):
    """The type of a record's timestamp; the value is what `ConsumerRecord.timestamp_type` holds."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

    @classmethod
    def for_name(cls, name: str) -> TimestampType:
        """The type that Kafka calls `name`, such as CreateTime. Raises ValueError if there is none."""
        for kind, label in _LABELS.items():
            if label == name:
                return kind
        raise ValueError(f"timestamp type {name!r} is not one of {', '.join(_LABELS.values())}")

    @property
    def label(self) -> str:
        """Kafka's name, as in the setting message.timestamp.type."""
        return _LABELS[self]


_LABELS = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


@attrs.define
class Record:
    """One record: its place, its contents and `size_in_bytes`, what it takes up uncompressed.

    `sequence` is -1 without a producer id. Keys and values are bytes or None, as are the values of headers.
    """

    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers
    sequence: int
    size_in_bytes: int


def increment_sequence(sequence: int, increment: int) -> int:
    """The sequence number `increment` records on: after 2**31 - 1 comes 0."""
    total = sequence + increment
    return total - 2**31 if total >= 2**31 else total
