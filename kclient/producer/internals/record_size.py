"""The size that a record may have, and an upper bound of the size it has."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kclient._accel import zigzag_size
from kclient.errors import RecordTooLargeError

_BATCH_OVERHEAD = 61
# Length, attributes and the deltas of timestamp and offset, each at its longest. Java's client counts so, too, and the
# same record should be too large for both.
_RECORD_OVERHEAD = 21


@attrs.frozen
class RecordSizes:
    """The bounds of a producer's records, in bytes. Thread-safe."""

    max_request_size: int
    buffer_memory: int

    @property
    def largest_batch(self) -> int:
        """The size that no batch can exceed."""
        return min(self.max_request_size, self.buffer_memory)

    @property
    def largest_plain(self) -> int:
        """Key and value of up to so many bytes together, without headers, are certainly not too large."""
        return self.largest_batch - _BATCH_OVERHEAD - _RECORD_OVERHEAD - 11

    def check(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]
    ) -> int:
        """An upper bound of what the record takes as a batch of its own; raises RecordTooLargeError."""
        size = _BATCH_OVERHEAD + _RECORD_OVERHEAD + _sized(key) + _sized(value) + 1
        if headers:
            size += zigzag_size(len(headers)) - 1
            for name, content in headers:
                size += _sized(name.encode()) + _sized(content)
        if size > self.max_request_size:
            raise RecordTooLargeError(
                f"A record for {topic} has {size} bytes when serialized, more than max.request.size "
                f"({self.max_request_size}) allows."
            )
        if size > self.buffer_memory:
            raise RecordTooLargeError(
                f"A record for {topic} has {size} bytes when serialized, more than buffer.memory "
                f"({self.buffer_memory})."
            )
        return size


def _sized(content: bytes | None) -> int:
    """Bytes that `content` takes with its length in front."""
    if content is None:
        return 1
    size = len(content)
    return size + (1 if size < 64 else 2 if size < 8192 else zigzag_size(size))
