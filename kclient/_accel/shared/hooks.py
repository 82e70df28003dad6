"""Hooks for the things that the hot path needs from the floors above, which it cannot import.

`kclient.record` plugs its own in when it is imported. Without that only uncompressed batches of magic 2 can be
read, and errors are builtin ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import attrs

LegacyRecord = tuple[int, int, int, bytes | None, bytes | None]
"""Offset, timestamp in ms, timestamp type, key and value of a record of magic 0 or 1."""


class UndecodableRecordError(ValueError):
    """A record's key or value (`which`) made its deserializer fail; its cause is what the deserializer raised."""

    def __init__(self, topic: str, partition: int, offset: int, which: str) -> None:
        super().__init__(
            f"{topic}-{partition}: the {which} of the record at offset {offset} cannot be deserialized"
        )
        self.offset = offset
        self.which = which


def _undecodable(
    topic: str,
    partition: int,
    offset: int,
    which: str,
    timestamp_ms: int,  # noqa: ARG001 - the signature is the contract
    timestamp_type: int,  # noqa: ARG001
    key: bytes | None,  # noqa: ARG001
    value: bytes | None,  # noqa: ARG001
    headers: tuple[tuple[str, bytes | None], ...],  # noqa: ARG001
) -> BaseException:
    return UndecodableRecordError(topic, partition, offset, which)


def _no_codec(codec: int, data: memoryview, max_bytes: int) -> tuple[bytes, BaseException | None]:  # noqa: ARG001
    raise ValueError(f"no hook is installed to decompress codec {codec}")


def _no_legacy(batch: memoryview, check_crc: bool, max_bytes: int) -> Iterator[LegacyRecord]:  # noqa: ARG001
    raise ValueError("no hook is installed to read record batches of magic 0 and 1")


@attrs.define(eq=False, repr=False, weakref_slot=False)
class Hooks:
    """The installed functions; assigned once, at import, by `kclient.record`."""

    decompress: Callable[[int, memoryview, int], tuple[bytes, BaseException | None]] = _no_codec
    """(codec id, payload, most bytes) -> what could be decompressed, and the error that stopped it if any."""
    read_legacy: Callable[[memoryview, bool, int], Iterator[LegacyRecord]] = _no_legacy
    """(one whole batch, check its CRC, most bytes) -> its records."""
    corrupt_error: Callable[[str], BaseException] = ValueError
    """A batch that is not what was written: bad checksum, impossible sizes."""
    data_errors: tuple[type[BaseException], ...] = (
        ValueError,
        LookupError,
        ArithmeticError,
        struct.error,
    )
    """Errors that the data can cause. Any other, such as one that a signal's handler raises, only interrupts."""
    invalid_error: Callable[[str], BaseException] = ValueError
    """A batch whose contents are malformed."""
    undecodable_error: Callable[..., BaseException] = _undecodable
    """(topic, partition, offset, which, timestamp_ms, its type, key, value, headers): a failed deserializer."""
    forked_error: Callable[[str], BaseException] = RuntimeError
    """A future of a parent process that is waited for in a forked child."""
    interrupting_error: Callable[[str], BaseException] = RuntimeError
    """A batch that is used by a signal handler or a `__del__` which has interrupted its use."""
    timeout_error: Callable[[str], BaseException] = TimeoutError
    """A future that was not done in time."""


hooks = Hooks()
