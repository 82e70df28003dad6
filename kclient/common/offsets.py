"""Offsets and what goes with them."""

from __future__ import annotations

import attrs

_MAX_INT32 = 2**31 - 1


def _not_negative(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{attribute.name} must be an int, not {value!r}")
    if value < 0:
        raise ValueError(f"{attribute.name} must not be negative, not {value}")


def _epoch(instance: object, attribute: attrs.Attribute[int], value: object) -> None:
    if value is None:
        return
    _not_negative(instance, attribute, value)
    if isinstance(value, int) and value > _MAX_INT32:
        raise ValueError(f"{attribute.name} must not be above {_MAX_INT32}, not {value}")


def _text(_: object, attribute: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{attribute.name} must be a str, not {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{attribute.name} cannot be written in UTF-8: {error}") from error


@attrs.frozen
class OffsetAndMetadata:
    """A committed offset: the next one to read, with a note and the leader epoch of the record before it (KIP-320)."""

    offset: int = attrs.field(validator=_not_negative)
    metadata: str = attrs.field(default="", validator=_text)
    leader_epoch: int | None = attrs.field(default=None, validator=_epoch)


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
