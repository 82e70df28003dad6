"""Positions: the next offset to read of a partition, and where to start without one."""

from __future__ import annotations

from typing import Final

import attrs

from kclient.client.metadata_snapshot import NO_LEADER, LeaderAndEpoch

EARLIEST: Final = -2
LATEST: Final = -1


@attrs.frozen
class AutoOffsetReset:
    """The policy for a start without a valid offset (KIP-1106). Immutable."""

    policy: str
    duration_ms: int | None = None

    @property
    def is_none(self) -> bool:
        """True if the application has to decide by itself."""
        return self.policy == "none"

    def timestamp(self, wall_ms: int) -> int:
        """The value that ListOffsets is asked for: a time in ms since the epoch, or the code of an end of the log."""
        if self.duration_ms is not None:
            return wall_ms - self.duration_ms
        return EARLIEST if self.policy == "earliest" else LATEST


RESET_TO_EARLIEST: Final = AutoOffsetReset("earliest")
RESET_TO_LATEST: Final = AutoOffsetReset("latest")


@attrs.define
class FetchPosition:
    """The next offset to read. Never changed once made; not frozen, because iteration makes one for each record and
    the constructor of a frozen class takes three times as long.

    `offset_epoch` is the leader epoch of the record before it, with which a truncated log is found out (KIP-320);
    `leader` says whom to ask, and under which epoch.
    """

    offset: int
    offset_epoch: int | None = None
    leader: LeaderAndEpoch = NO_LEADER

    def __str__(self) -> str:
        return str(self.offset) if self.offset_epoch is None else f"{self.offset} (epoch {self.offset_epoch})"
