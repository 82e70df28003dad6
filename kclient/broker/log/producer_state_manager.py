"""ProducerStateManager: the state of all producers of a log, its snapshots, and which transactions are
open.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import attrs

from kclient.broker.log.file_system import DISK, FileSystem
from kclient.broker.log.files import (
    DELETED_SUFFIX,
    SNAPSHOT_SUFFIX,
    offset_name,
    parse_offset_name,
)
from kclient.broker.log.producer_snapshot import CorruptSnapshotError, read_snapshot, write_snapshot
from kclient.broker.log.producer_state import (
    AppendOrigin,
    CompletedTxn,
    ProducerAppendInfo,
    ProducerStateEntry,
)
from kclient.common.topic_partition import TopicPartition

log = logging.getLogger(__name__)

PRODUCER_ID_EXPIRATION_MS = 24 * 60 * 60 * 1000


@attrs.define(eq=False)
class ProducerStateManager:
    """All that a log knows of its producers. Guarded by the log's lock.

    Snapshots are files named by the offset whose state they hold: that of all batches before it. Timestamps
    are those of the records, so expiry compares them with the wall clock.
    """

    _topic_partition: TopicPartition
    _directory: Path
    expiration_ms: int = attrs.field(default=PRODUCER_ID_EXPIRATION_MS, alias="producer_id_expiration_ms")
    _file_system: FileSystem = DISK
    producers: dict[int, ProducerStateEntry] = attrs.field(factory=dict, init=False)
    """The state of every producer that is not expired, by its id."""
    _ongoing: dict[int, int] = attrs.field(factory=dict, init=False)  # first offset -> producer id
    # Ended, but their markers are not below the high watermark yet: first offset -> offset of the marker.
    _unreplicated: dict[int, int] = attrs.field(factory=dict, init=False)
    _last_snapshot_offset: int = attrs.field(default=0, init=False)
    map_end_offset: int = attrs.field(default=0, init=False)
    """The state is that of the log up to here."""

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest transaction that is open, or whose marker may still be lost; None if there
        is none.
        """
        return min((*self._ongoing, *self._unreplicated), default=None)

    def open_transactions(self) -> list[ProducerStateEntry]:
        """The states of the producers whose transactions are open, the oldest transaction first."""
        return [self.producers[producer_id].copy() for _, producer_id in sorted(self._ongoing.items())]

    def prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        """A draft of the producer's next state."""
        return ProducerAppendInfo(self._topic_partition, producer_id, self.producers.get(producer_id), origin)

    def update(self, info: ProducerAppendInfo) -> None:
        """Make a draft the state: its batches are written."""
        entry = info.entry
        self.producers[entry.producer_id] = entry
        for first_offset in info.started_txns:
            self._ongoing[first_offset] = entry.producer_id

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """The first offset that will still be undecided once `completed` is."""
        others = [first for first, pid in self._ongoing.items() if pid != completed.producer_id]
        return min(others, default=completed.last_offset + 1)

    def complete_txn(self, completed: CompletedTxn) -> None:
        """The transaction is over, which is certain once the high watermark has passed its marker."""
        self._ongoing.pop(completed.first_offset, None)
        self._unreplicated[completed.first_offset] = completed.last_offset

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Every in-sync replica has what is below: the ends of transactions there are certain."""
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }

    def remove_expired(self, now_ms: int) -> None:
        """Forget producers that have written nothing for the expiration time and have no open transaction."""
        expired = [pid for pid, entry in self.producers.items() if self._is_expired(entry, now_ms)]
        for pid in expired:
            del self.producers[pid]

    def take_snapshot(self) -> None:
        """Write the state to a file unless that was done at this offset already. Raises OSError."""
        if self.map_end_offset > self._last_snapshot_offset:
            write_snapshot(self._path(self.map_end_offset), self.producers.values(), self._file_system)
            self._last_snapshot_offset = self.map_end_offset

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> None:
        """Go back to the newest snapshot within the log, unless the state is that of its end. Raises OSError.

        Afterwards `map_end_offset` says from where batches have to be replayed.
        """
        for offset in self.snapshot_offsets():
            if offset > log_end_offset or offset < log_start_offset:
                self._file_system.remove(self._path(offset))
        if self.map_end_offset == log_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        for offset in reversed(self.snapshot_offsets()):
            try:
                entries = read_snapshot(self._path(offset), self._file_system)
            except CorruptSnapshotError as error:
                log.warning("%s: falling back from a producer snapshot: %s", self._topic_partition, error)
                self._file_system.remove(self._path(offset))
                continue
            for entry in entries:
                if not self._is_expired(entry, now_ms):
                    self.load_entry(entry)
            self._last_snapshot_offset = self.map_end_offset = offset
            return
        self._last_snapshot_offset = self.map_end_offset = log_start_offset

    def load_entry(self, entry: ProducerStateEntry) -> None:
        """Take over the state of a producer."""
        self.producers[entry.producer_id] = entry
        if entry.current_txn_first_offset is not None:
            self._ongoing[entry.current_txn_first_offset] = entry.producer_id

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Records below are gone; state is kept, as a producer may still retry what was the last."""
        self.map_end_offset = max(self.map_end_offset, log_start_offset)
        # There may be none yet, and the state at the new start has to be written in its turn.
        self._last_snapshot_offset = max(self.snapshot_offsets(), default=-1)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """The log begins anew at `offset`. Raises OSError."""
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        for snapshot in self.snapshot_offsets():
            self._file_system.remove(self._path(snapshot))
        self._last_snapshot_offset = self.map_end_offset = offset

    def snapshot_offsets(self) -> list[int]:
        """The offsets of all snapshots, in order."""
        parsed = (parse_offset_name(path.name) for path in self._file_system.list(self._directory))
        return sorted(name[0] for name in parsed if name is not None and name[1] == SNAPSHOT_SUFFIX)

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Delete snapshots that belong to no segment, but for the newest one. Raises OSError."""
        bases = set(segment_base_offsets)
        for offset in self.snapshot_offsets()[:-1]:
            if offset not in bases:
                self._file_system.remove(self._path(offset))

    def mark_snapshot_deleted(self, offset: int) -> Path | None:
        """Give the snapshot at `offset` the suffix of deleted files; returns its path. Raises OSError."""
        path = self._path(offset)
        marked = path.with_name(path.name + DELETED_SUFFIX)
        try:
            self._file_system.replace(path, marked)
        except FileNotFoundError:
            return None
        return marked

    def _path(self, offset: int) -> Path:
        return self._directory / offset_name(offset, SNAPSHOT_SUFFIX)

    def _is_expired(self, entry: ProducerStateEntry, now_ms: int) -> bool:
        return (
            entry.current_txn_first_offset is None and now_ms - entry.last_timestamp_ms >= self.expiration_ms
        )
