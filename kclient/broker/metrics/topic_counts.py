"""TopicCounts: what was written to and read from partitions."""

from __future__ import annotations

import attrs


@attrs.define(eq=False)
class TopicCounts:
    """Counts since the start, of one partition or of several. Guarded by whoever keeps it."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_rejected: int = 0
    produce_requests: int = 0
    failed_produce_requests: int = 0
    """Those that failed for no fault of the client or the disk."""
    fetch_requests: int = 0
    failed_fetch_requests: int = 0

    def add(self, other: TopicCounts) -> None:
        """Take in the counts of another one."""
        self.messages_in += other.messages_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.bytes_rejected += other.bytes_rejected
        self.produce_requests += other.produce_requests
        self.failed_produce_requests += other.failed_produce_requests
        self.fetch_requests += other.fetch_requests
        self.failed_fetch_requests += other.failed_fetch_requests
