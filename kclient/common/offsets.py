"""Offsets and what goes with them."""

from __future__ import annotations

import attrs


def _not_negative(_: object, attribute: attrs.Attribute[int], value: int) -> None:
    if value < 0:
        raise ValueError(f"{attribute.name} must not be negative, not {value}")


@attrs.frozen
class OffsetAndMetadata:
    """A committed offset: the next one to read, with a note and the leader epoch of the record before it (KIP-320)."""

    offset: int = attrs.field(validator=_not_negative)
    metadata: str = ""
    leader_epoch: int | None = None


@attrs.frozen
class OffsetAndTimestamp:
    """The first offset whose timestamp is at least the one asked for, and its own timestamp (ms since the epoch)."""

    offset: int = attrs.field(validator=_not_negative)
    timestamp_ms: int
    leader_epoch: int | None = None


@attrs.frozen
class ConsumerGroupMetadata:
    """A consumer's place in its group, as transactions need it (KIP-447)."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
