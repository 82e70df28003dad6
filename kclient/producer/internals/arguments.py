"""Checks of what users pass in: a mistake is told at once, with the argument's name, and nothing is sent."""

from __future__ import annotations

from typing import Any

from kclient.common.topic_name import check_topic

__all__ = ["check_partition", "check_timeout", "check_timestamp", "check_topic", "checked_headers"]

_MAX_TIMESTAMP_MS = 2**63 - 1
_MAX_PARTITION = 2**31 - 1


def check_partition(partition: object) -> None:
    """Raise TypeError or ValueError for what is not a partition's number."""
    if not isinstance(partition, int) or isinstance(partition, bool):
        raise TypeError(f"partition must be an int, not {type(partition).__name__}")
    if not 0 <= partition <= _MAX_PARTITION:
        raise ValueError(f"partition must be from 0 to {_MAX_PARTITION}, not {partition}")


def check_timestamp(timestamp_ms: object) -> None:
    """Raise TypeError or ValueError for what is not a time in ms since the epoch."""
    if not isinstance(timestamp_ms, int) or isinstance(timestamp_ms, bool):
        raise TypeError(f"timestamp_ms must be an int, not {type(timestamp_ms).__name__}")
    if not 0 <= timestamp_ms <= _MAX_TIMESTAMP_MS:
        raise ValueError(f"timestamp_ms must be in ms since the epoch and not negative, not {timestamp_ms}")


def checked_headers(headers: Any) -> tuple[tuple[str, bytes | None], ...]:
    """The headers as pairs of str and bytes; raises TypeError for anything else."""
    checked: list[tuple[str, bytes | None]] = []
    if isinstance(headers, (str, bytes)) or not hasattr(headers, "__iter__") or hasattr(headers, "keys"):
        raise TypeError(f"headers must be a sequence of (str, bytes or None), not {type(headers).__name__}")
    for header in headers:
        if not isinstance(header, (tuple, list)) or len(header) != 2:
            raise TypeError(f"headers must be pairs of (str, bytes or None), not {type(header).__name__}")
        name, value = header
        if not isinstance(name, str):
            raise TypeError(f"headers: the name of a header must be a str, not {type(name).__name__}")
        if value is not None and type(value) is not bytes:
            if not isinstance(value, (bytes, bytearray, memoryview)):
                raise TypeError(
                    f"headers: the value of {name!r} must be bytes or None, not {type(value).__name__}"
                )
            value = bytes(value)
        checked.append((name, value))
    return tuple(checked)


def check_timeout(timeout_ms: object) -> None:
    """Raise TypeError or ValueError for what is not a duration in ms."""
    if not isinstance(timeout_ms, int) or isinstance(timeout_ms, bool):
        raise TypeError(f"timeout_ms must be an int in milliseconds, not {type(timeout_ms).__name__}")
    if timeout_ms < 0:
        raise ValueError(f"timeout_ms must not be negative, not {timeout_ms}")
