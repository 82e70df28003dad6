"""The names of a write and of its tasks, by which a later attempt finds what an earlier one has done."""

from __future__ import annotations

import attrs

_PREFIX = "kclient-sink-"


def group_prefix(write_id: str) -> str:
    """The beginning of the names of the groups that have the markers of a write."""
    return f"{_PREFIX}{write_id}-"


@attrs.frozen
class SinkTask:
    """The part of a write that one task does: one sink partition in one epoch. Can be pickled."""

    write_id: str
    """The id of the streaming query, or that of a batch write."""
    epoch: int
    """The number of the micro-batch; 0 for a batch write unless it says otherwise."""
    partition: int
    """The number of the sink's partition, which is the task's."""
    run_id: str | None = None
    """An id of this run of the streaming query; None for a batch write."""

    @property
    def group_id(self) -> str:
        """The group that has the marker, and the transactional id of who writes."""
        return group_prefix(self.write_id) + str(self.partition)

    @property
    def marker(self) -> int:
        """The committed offset that says: this epoch is written."""
        return self.epoch + 1

    def __str__(self) -> str:
        return f"Sink partition {self.partition} of {self.write_id}, epoch {self.epoch}"
