"""LogGuard: the lock of a log, and what keeps the log from working."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType

from kclient.broker.log.log_directory import LogDirectory
from kclient.broker.log.segment import LogSegment
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaStorageError
from kclient.record.open_files import OUT_OF_DESCRIPTORS, OpenFiles


class LogGuard:
    """Guards the state of a log, which all its parts share. Thread-safe.

    A log refuses to work when it is closed, and when its directory is offline, as it is after the disk failed.
    """

    __slots__ = ("_files", "_log_dir", "_topic_partition", "closed", "lock")

    def __init__(self, topic_partition: TopicPartition, log_dir: LogDirectory, files: OpenFiles) -> None:
        self._topic_partition = topic_partition
        self._log_dir = log_dir
        self._files = files
        self.lock = threading.RLock()
        self.closed = False

    @property
    def usable(self) -> bool:
        """True unless the log refuses to work."""
        return not self.closed and self._log_dir.offline_error is None

    def check_usable(self) -> None:
        """Raise `KafkaStorageError` if the log refuses to work."""
        self._log_dir.check_online()
        if self.closed:
            raise KafkaStorageError(f"The log of {self._topic_partition} is closed")

    def disk(self, doing: str, pinned: Sequence[LogSegment] = ()) -> _DiskWork:
        """Return a context: an OSError in it takes the directory offline, as `LogDirectory.fail` does.

        It may use the files of segments that are `pinned` without the lock; they are unpinned at its end.
        """
        return _DiskWork(self, doing, pinned)

    def failure(self, doing: str, error: OSError) -> KafkaStorageError:
        """Return what an error of the disk is to the rest of the broker."""
        if self.closed:
            # The log was deleted meanwhile: its files have other names or are gone, and the disk is not to blame.
            return KafkaStorageError(f"The log of {self._topic_partition} is closed")
        if error.errno in OUT_OF_DESCRIPTORS:
            self._files.close_unused()
        return self._log_dir.fail(f"{self._topic_partition}: {doing}", error)


class _DiskWork:
    __slots__ = ("_doing", "_guard", "_pinned")

    def __init__(self, guard: LogGuard, doing: str, pinned: Sequence[LogSegment]) -> None:
        self._guard = guard
        self._doing = doing
        self._pinned = pinned

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, OSError):
                raise self._guard.failure(self._doing, error) from error
        finally:
            if self._pinned:
                with self._guard.lock:
                    for segment in self._pinned:
                        segment.unpin()
