"""LogDirectory: one directory of logs: whose it is, and whether its disk can still be trusted."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from pathlib import Path

from kclient.broker.log.checkpoints import (
    CLEAN_SHUTDOWN_MARKER,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    CleanShutdownMarker,
    MalformedCheckpointError,
    MetaProperties,
    OffsetCheckpoint,
)
from kclient.broker.log.files import fsync_dir
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import IllegalStateError, InconsistentClusterIdError, KafkaStorageError

log = logging.getLogger(__name__)

_LOCK_FILE = ".lock"

_locked_paths: set[Path] = set()
_locked_paths_lock = threading.Lock()


class LogDirectory:
    """A directory of logs. Thread-safe.

    When a write or an fsync fails the directory goes offline and stays so: what is in the page cache then may
    not be what is on the disk, so nothing is acknowledged or read from it any more until a restart has
    recovered its logs.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recovery_points = OffsetCheckpoint(path / RECOVERY_POINT_CHECKPOINT)
        self.log_start_offsets = OffsetCheckpoint(path / LOG_START_OFFSET_CHECKPOINT)
        self.clean_shutdown = CleanShutdownMarker(path / CLEAN_SHUTDOWN_MARKER)
        self._lock_fd: int | None = None
        self._error: BaseException | None = None

    def __repr__(self) -> str:
        return f"LogDirectory({str(self.path)!r}{'' if self._error is None else ', offline'})"

    @property
    def offline_error(self) -> BaseException | None:
        """Why the directory is offline, None while it is in use."""
        return self._error

    def check_online(self) -> None:
        """Raise `KafkaStorageError` if the directory is offline."""
        if self._error is not None:
            raise KafkaStorageError(f"Log directory {self.path} is offline: {self._error}")

    def fail(self, what: str, error: BaseException) -> KafkaStorageError:
        """Take the directory offline because `what` failed; returns the error to raise."""
        if self._error is None:
            self._error = error
            log.error("Log directory %s goes offline: %s failed: %s", self.path, what, error)
        return KafkaStorageError(f"{what} in log directory {self.path} failed: {error}")

    def acquire(self) -> None:
        """Make the directory if need be and lock it for this process.

        Raises `IllegalStateError` if a broker, of this or of another process, uses it; OSError if it cannot
        be used.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        real = self.path.resolve()
        # A record lock, as Java's FileLock is, so that a Java broker is kept out as well, and so that a
        # forked child that outlives this process does not go on holding it. It does not keep out this process
        # itself, and would be lost if the file were opened and closed once more here: hence the set, looked
        # at first.
        with _locked_paths_lock:
            if real in _locked_paths:
                raise _in_use(self.path)
            fd = os.open(self.path / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(fd)
                raise _in_use(self.path) from error
            _locked_paths.add(real)
            self._lock_fd = fd

    def release(self) -> None:
        """Give the lock back. Idempotent."""
        with _locked_paths_lock:
            fd, self._lock_fd = self._lock_fd, None
            if fd is not None:
                _locked_paths.discard(self.path.resolve())
                os.close(fd)

    def load_meta_properties(self, cluster_id: str | None, node_id: int) -> MetaProperties:
        """Read, or write for a new directory, whose it is.

        `cluster_id` None takes the directory's own, or a new one. Raises `InconsistentClusterIdError` if the
        directory is another cluster's or node's, `KafkaStorageError` if the file is damaged, and OSError.
        """
        path = self.path / META_PROPERTIES
        try:
            found = MetaProperties.read(path)
        except MalformedCheckpointError as error:
            raise KafkaStorageError(
                f"{error}; restore the file, or remove it to adopt the directory"
            ) from error
        if found is None:
            made = MetaProperties(cluster_id or str(Uuid.random()), node_id, Uuid.random())
            made.write(path)
            return made
        if (cluster_id is not None and found.cluster_id != cluster_id) or found.node_id != node_id:
            raise InconsistentClusterIdError(
                f"{self.path} belongs to node {found.node_id} of cluster {found.cluster_id}, "
                f"not to node {node_id} of cluster {cluster_id or found.cluster_id}"
            )
        return found

    def sync(self) -> None:
        """Make new, renamed and removed partition directories durable. Raises OSError."""
        fsync_dir(self.path)

    def read_checkpoint(self, checkpoint: OffsetCheckpoint) -> dict[TopicPartition, int]:
        """The offsets of `checkpoint`; none if it is damaged.

        Without a recovery point a log is checked from its start, without a start offset it begins with its
        first segment: more work, or more records than wanted, but nothing lost.
        """
        try:
            return checkpoint.read()
        except MalformedCheckpointError as error:
            log.warning("Ignoring a damaged checkpoint: %s", error)
            return {}


def _in_use(path: Path) -> IllegalStateError:
    return IllegalStateError(
        f"Log directory {path} is in use by another broker (its {_LOCK_FILE} file is locked): stop that broker, "
        "or give this one a directory of its own"
    )
