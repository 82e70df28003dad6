"""LogDirectories: all directories of a broker, which of them are there, and where new logs go."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kclient.broker.log.file_system import DISK, FileSystem
from kclient.broker.log.log_directory import FoundPartition, LogDirectory
from kclient.common.uuid import Uuid
from kclient.errors import IllegalStateError, InconsistentClusterIdError, KafkaStorageError

log = logging.getLogger(__name__)


class LogDirectories:
    """The directories in the order of the settings. Guarded by the log manager's lock.

    Each has an identifier of its own in its meta.properties, by which the broker remembers where its partitions
    are, wherever a disk is mounted.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        cluster_id: str | None,
        node_id: int,
        file_system: FileSystem = DISK,
    ) -> None:
        if not paths:
            raise ValueError("A broker needs at least one log directory")
        self.all = [LogDirectory(Path(path), file_system) for path in paths]
        self.cluster_id = cluster_id
        self._node_id = node_id
        self._remembered: dict[Uuid, str] = {}

    @property
    def live(self) -> list[LogDirectory]:
        """The directories that are in use."""
        return [log_dir for log_dir in self.all if log_dir.offline_error is None]

    def look(self) -> list[FoundPartition]:
        """Lock the directories that exist, and list their partitions. Writes nothing but the locks.

        Raises IllegalStateError if another broker uses one or two are copies of one, and
        InconsistentClusterIdError.
        """
        found: list[FoundPartition] = []
        for log_dir in self.all:
            try:
                if not log_dir.path.exists():
                    continue
                log_dir.acquire()
                log_dir.read_meta_properties(self._node_id)
                found += log_dir.partitions()
            except OSError as error:
                log_dir.fail_to_open("opening it", error)
        by_id: dict[Uuid, LogDirectory] = {}
        for log_dir in self.all:
            meta = log_dir.meta
            if meta is None:
                continue
            if self.cluster_id is None:
                self.cluster_id = meta.cluster_id
            elif meta.cluster_id != self.cluster_id:
                raise InconsistentClusterIdError(
                    f"{log_dir.path} belongs to cluster {meta.cluster_id}, not to {self.cluster_id}"
                )
            if meta.directory_id is not None:
                other = by_id.setdefault(meta.directory_id, log_dir)
                if other is not log_dir:
                    raise IllegalStateError(
                        f"{other.path} and {log_dir.path} are the same directory, or one is a copy of the other "
                        f"(directory.id {meta.directory_id}): take one out of log.dirs"
                    )
        return found

    def make(self, remembered: Mapping[Uuid, str]) -> None:
        """Make the directories that are new, and write down whose they are.

        `remembered` are the places of the directories that were there before. One that was and is not now is
        taken offline: its disk is missing. A new directory would get records that its disk hides when it comes
        back.
        """
        self._remembered = dict(remembered)
        there = {log_dir.id for log_dir in self.all}
        missing = {path: known for known, path in remembered.items() if known not in there}
        for log_dir in self.live:
            known = missing.get(place(log_dir)) if log_dir.meta is None else None
            try:
                if known is not None:
                    raise FileNotFoundError(
                        f"it is missing or empty, but was in use as directory {known}; is its disk mounted?"
                    )
                log_dir.acquire()
                meta = log_dir.complete_meta_properties(self.cluster_id, self._node_id)
                self.cluster_id = meta.cluster_id
            except OSError as error:
                log_dir.fail_to_open("opening it", error)

    def by_id(self, directory_id: Uuid) -> LogDirectory:
        """The live directory with this id. Raises KafkaStorageError."""
        for log_dir in self.live:
            if log_dir.id == directory_id:
                return log_dir
        where = self._remembered.get(directory_id, "not in log.dirs")
        raise KafkaStorageError(f"log directory {directory_id} ({where}) is offline")

    def places(self) -> dict[Uuid, str]:
        """Paths of the live directories."""
        return {log_dir.id: place(log_dir) for log_dir in self.live if log_dir.id is not None}

    def choose(self, count: int, used: Iterable[LogDirectory]) -> list[Uuid]:
        """The directories for `count` new logs, always the one with the fewest; `used` has one entry for each log.

        Raises KafkaStorageError if all are offline.
        """
        logs = dict.fromkeys(self.places(), 0)
        if not logs:
            raise KafkaStorageError("All log directories are offline")
        for log_dir in used:
            if log_dir.id in logs:
                logs[log_dir.id] += 1
        chosen = []
        for _ in range(count):
            fewest = min(logs, key=logs.__getitem__)
            logs[fewest] += 1
            chosen.append(fewest)
        return chosen

    def release(self) -> None:
        """Give all locks back. Idempotent."""
        for log_dir in self.all:
            log_dir.release()


def place(log_dir: LogDirectory) -> str:
    """The remembered path of a directory."""
    return str(log_dir.path.absolute())
