"""LeaderEpochCache: which offsets each leader epoch wrote, so that replicas and clients can find where
they diverge.
"""

from __future__ import annotations

import logging
from bisect import bisect_right

from kclient.broker.log.checkpoints import EpochCheckpoint, MalformedCheckpointError
from kclient.common.topic_partition import TopicPartition

log = logging.getLogger(__name__)

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochCache:
    """Epochs and their start offsets, both rising, kept in a checkpoint file. Guarded by the log's lock."""

    __slots__ = ("_checkpoint", "_epochs", "_starts", "_topic_partition", "_written", "damaged")

    def __init__(self, topic_partition: TopicPartition, checkpoint: EpochCheckpoint) -> None:
        self._topic_partition = topic_partition
        self._checkpoint = checkpoint
        self.damaged = False
        """True if the file could not be read: the epochs have to be taken from the batches again."""
        entries: list[tuple[int, int]] = []
        try:
            entries = checkpoint.read()
        except MalformedCheckpointError as error:
            log.warning("%s: the leader epochs are taken from the log: %s", topic_partition, error)
            self.damaged = True
        self._written = True  # False after a write that failed
        self._epochs = [epoch for epoch, _ in entries]
        self._starts = [start for _, start in entries]

    @property
    def latest_epoch(self) -> int | None:
        """The newest epoch, None if no epoch is known."""
        return self._epochs[-1] if self._epochs else None

    @property
    def entries(self) -> list[tuple[int, int]]:
        """All epochs with their start offsets."""
        return list(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` began at `start_offset`, unless that is known already. Raises OSError."""
        # A known epoch keeps its start also when what failed to be written before has to be written now.
        known = bool(self._epochs) and epoch == self._epochs[-1]
        if (not known and self._put(epoch, start_offset)) or not self._written:
            self._write()

    def assign_newer(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` began at `start_offset`, unless it is one that the log has or an older one. Raises
        OSError.
        """
        if not self._epochs or epoch > self._epochs[-1]:
            self.assign(epoch, start_offset)

    def rebuild(self, batches: list[tuple[int, int]]) -> None:
        """Take the epochs from pairs (epoch, base offset) of the batches of the log, in order.

        Raises OSError.
        """
        self._epochs, self._starts = [], []
        for epoch, offset in batches:
            if not self._epochs or epoch > self._epochs[-1]:
                self._put(epoch, offset)
        self.damaged = False
        self._write()

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch that wrote `offset`, None if it is older than all known epochs."""
        index = bisect_right(self._starts, offset) - 1
        return None if index < 0 else self._epochs[index]

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch`, and the offset at which it ended; (-1, -1) if none can be
        told.
        """
        if epoch == UNDEFINED_EPOCH or not self._epochs:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        higher = bisect_right(self._epochs, epoch)
        if higher == len(self._epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if higher == 0:
            # Older than all that is known: it ended at the latest where the first known one begins.
            return epoch, self._starts[0]
        return self._epochs[higher - 1], self._starts[higher]

    def truncate_from_end(self, end_offset: int) -> None:
        """The log now ends at `end_offset`. Raises OSError."""
        kept = bisect_right(self._starts, end_offset - 1)
        if kept < len(self._starts):
            del self._epochs[kept:], self._starts[kept:]
            self._write()

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now begins at `start_offset`. Raises OSError."""
        first = bisect_right(self._starts, start_offset) - 1
        if first < 0 or (first == 0 and self._starts[0] == start_offset):
            return
        del self._epochs[:first], self._starts[:first]
        self._starts[0] = start_offset
        self._write()

    def _put(self, epoch: int, start_offset: int) -> bool:
        if epoch < 0 or start_offset < 0:
            return False
        # A later entry that is not both newer and further contradicts this one, which comes from the log
        # itself.
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            if (self._epochs[-1], self._starts[-1]) == (epoch, start_offset):
                return False
            log.warning(
                "%s: epoch %d starting at %d replaces epoch %d starting at %d",
                self._topic_partition, epoch, start_offset, self._epochs[-1], self._starts[-1],
            )  # fmt: skip
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        return True

    def _write(self) -> None:
        self._written = False
        self._checkpoint.write(self.entries)
        self._written = True
