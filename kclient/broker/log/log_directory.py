"""LogDirectory: one directory of logs: whose it is, and whether its disk can still be trusted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import attrs

from kclient.broker.log.checkpoints import (
    CLEAN_SHUTDOWN_MARKER,
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    CleanShutdownMarker,
    MalformedCheckpointError,
    MetaProperties,
    OffsetCheckpoint,
    read_topic_id,
)
from kclient.broker.log.durability import DirectoryCommit
from kclient.broker.log.file_system import DISK, FileSystem
from kclient.broker.log.files import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    STRAY_DIR_SUFFIX,
    parse_partition_dir,
)
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import InconsistentClusterIdError, KafkaStorageError
from kclient.record.open_files import OUT_OF_DESCRIPTORS

log = logging.getLogger(__name__)


@attrs.frozen
class FoundPartition:
    """The directory of a partition, as it was found: nothing in it was opened or changed yet.

    `topic_id` is None if the directory names none.
    """

    topic_partition: TopicPartition
    log_dir: LogDirectory
    path: Path
    topic_id: Uuid | None


class LogDirectory:
    """A directory of logs. Thread-safe.

    When a write or an fsync fails the directory goes offline and stays so: what is in the page cache then may
    not be what is on the disk, so nothing is acknowledged or read from it any more until a restart has
    recovered its logs. That there is no descriptor to open a file with is no fault of the disk: nothing was
    written then, and what failed may be tried again.
    """

    def __init__(self, path: Path, file_system: FileSystem = DISK) -> None:
        self.path = path
        self.file_system = file_system
        """The way to its files, which says whether they may be changed."""
        self.recovery_points = OffsetCheckpoint(path / RECOVERY_POINT_CHECKPOINT, file_system)
        self.log_start_offsets = OffsetCheckpoint(path / LOG_START_OFFSET_CHECKPOINT, file_system)
        self.high_watermarks = OffsetCheckpoint(path / HIGH_WATERMARK_CHECKPOINT, file_system)
        self.cleaner_offsets = OffsetCheckpoint(path / CLEANER_OFFSET_CHECKPOINT, file_system)
        self.clean_shutdown = CleanShutdownMarker(path / CLEAN_SHUTDOWN_MARKER, file_system)
        self.commits = DirectoryCommit(path.name)
        """Forces its logs to disk for those who wait for that."""
        self.meta: MetaProperties | None = None
        """The ids of the directory and its owner, as they were read or written; None before that."""
        self.on_offline: Callable[[], None] = _ignore
        """Called when the directory has gone offline, with whatever locks are held."""
        self._lock = file_system.directory_lock(path)
        self._error: BaseException | None = None

    def __repr__(self) -> str:
        return f"LogDirectory({str(self.path)!r}{'' if self._error is None else ', offline'})"

    @property
    def id(self) -> Uuid | None:
        """The directory's own identifier, None while it has none."""
        return None if self.meta is None else self.meta.directory_id

    @property
    def offline_error(self) -> BaseException | None:
        """The error for which the directory is offline, None while it is in use."""
        return self._error

    def check_online(self) -> None:
        """Raise `KafkaStorageError` if the directory is offline."""
        if self._error is not None:
            raise KafkaStorageError(f"Log directory {self.path} is offline: {self._error}")

    def fail(self, what: str, error: BaseException) -> KafkaStorageError:
        """Take the directory offline because `what` failed, unless it was for want of descriptors; returns the error
        to raise.
        """
        if isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS:
            log.warning(
                "Log directory %s: %s failed: %s; raise the limit of open files (ulimit -n), or use fewer connections",
                self.path, what, error,
            )  # fmt: skip
        elif self._error is None:
            self._error = error
            log.error("Log directory %s goes offline: %s failed: %s", self.path, what, error)
            self.on_offline()
        return KafkaStorageError(f"{what} in log directory {self.path} failed: {error}")

    def fail_to_open(self, what: str, error: BaseException) -> None:
        """Take the directory offline because `what`, without which it cannot be used, failed.

        Raises `KafkaStorageError` if it was for want of descriptors: then it is all of the broker that cannot start.
        """
        failure = self.fail(what, error)
        if self._error is None:
            raise failure from error

    def acquire(self) -> None:
        """Make the directory if need be and lock it. Idempotent.

        Raises `IllegalStateError` if a broker, of this or of another process, uses it; OSError if it cannot
        be used.
        """
        self.file_system.make_directory(self.path, durable=True)
        self._lock.acquire()

    def release(self) -> None:
        """End the threads of `commits`, and give the lock back. Idempotent."""
        self.commits.stop()
        self._lock.release()

    def read_meta_properties(self, node_id: int) -> None:
        """Read whose the directory is, if it says so.

        Raises `InconsistentClusterIdError` if it is another node's, `KafkaStorageError` if the file is damaged,
        and OSError.
        """
        try:
            found = MetaProperties.read(self.path / META_PROPERTIES)
        except MalformedCheckpointError as error:
            raise KafkaStorageError(
                f"{error}; restore the file, or remove it to adopt the directory"
            ) from error
        if found is not None and found.node_id != node_id:
            raise InconsistentClusterIdError(
                f"{self.path} belongs to node {found.node_id} of cluster {found.cluster_id}, not to node {node_id}: "
                f"set node.id={found.node_id} to use it"
            )
        self.meta = found

    def complete_meta_properties(self, cluster_id: str | None, node_id: int) -> MetaProperties:
        """Write down whose the directory is, as far as it did not say so. None is a new cluster. Raises OSError."""
        meta = self.meta
        if meta is None or meta.directory_id is None:
            meta = MetaProperties(cluster_id or str(Uuid.random()), node_id, Uuid.random())
            meta.write(self.path / META_PROPERTIES, self.file_system)
            self.meta = meta
        return meta

    def partitions(self) -> list[FoundPartition]:
        """The partitions that have a directory here, in order of its name. Changes nothing. Raises OSError."""
        found = []
        for path in sorted(path for path in self.path.iterdir() if path.is_dir()):
            if path.name.endswith(DELETE_DIR_SUFFIX):
                continue
            topic_partition = parse_partition_dir(path.name)
            if topic_partition is None or path.name.endswith((FUTURE_DIR_SUFFIX, STRAY_DIR_SUFFIX)):
                log.warning("Leaving %s alone: it is not the directory of a partition", path)
                continue
            try:
                topic_id = read_topic_id(path)
            except MalformedCheckpointError as error:
                log.warning("%s: its topic id is not known: %s", topic_partition, error)
                topic_id = None
            found.append(FoundPartition(topic_partition, self, path, topic_id))
        return found

    def sync(self) -> None:
        """Make new, renamed and removed partition directories durable. Raises OSError."""
        self.file_system.sync_directory(self.path)

    def read_checkpoint(self, checkpoint: OffsetCheckpoint) -> dict[TopicPartition, int]:
        """The offsets of `checkpoint`; none if it is damaged.

        Without a recovery point a log is checked from its start, without a start offset it begins with its
        first segment, without a high watermark it asks its replicas: more work, or more records than wanted, but
        nothing lost.
        """
        try:
            return checkpoint.read()
        except MalformedCheckpointError as error:
            log.warning("Ignoring a damaged checkpoint: %s", error)
            return {}


def _ignore() -> None:
    pass
