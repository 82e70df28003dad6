"""CleanerStats: what one round of cleaning a log has read, kept and taken."""

from __future__ import annotations

import attrs


@attrs.define
class CleanerStats:
    """Counts of one round. Belongs to the thread that cleans; read by others when the round is over."""

    indexed_bytes: int = 0
    """Bytes read for the offset map."""
    indexed_records: int = 0
    read_bytes: int = 0
    """Bytes read to be copied."""
    read_records: int = 0
    kept_bytes: int = 0
    kept_records: int = 0
    keyless_records: int = 0
    """Records without a key, which a compacted log should not have, and which were dropped."""
    map_utilization: float = 0.0
    """The share of the offset map that was in use."""
    index_ms: int = 0
    """Time for the offset map."""
    elapsed_ms: int = 0

    def __str__(self) -> str:
        return (
            f"{self.read_records} records in {self.read_bytes} bytes became {self.kept_records} in {self.kept_bytes}; "
            f"{self.elapsed_ms} ms, {self.index_ms} of them for {self.indexed_bytes} bytes of keys"
        )
