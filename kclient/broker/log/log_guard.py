"""LogGuard: the lock of a log, and what keeps the log from working."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

from kclient.broker.log.log_directory import LogDirectory
from kclient.broker.log.segment import LogSegment
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaStorageError
from kclient.record.open_files import OUT_OF_DESCRIPTORS, OpenFiles


@attrs.define(eq=False)
class LogGuard:
    """Guards the state of a log, which all its parts share. Thread-safe.

    A log refuses to work when it is closed, and when its directory is offline, as it is after the disk failed.
    """

    _topic_partition: TopicPartition
    _log_dir: LogDirectory
    _files: OpenFiles
    lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    closed: bool = attrs.field(default=False, init=False)

    @property
    def usable(self) -> bool:
        """True unless the log refuses to work."""
        return not self.closed and self._log_dir.offline_error is None

    def check_usable(self) -> None:
        """Raise `KafkaStorageError` if the log refuses to work."""
        self._log_dir.check_online()
        if self.closed:
            raise KafkaStorageError(f"The log of {self._topic_partition} is closed")

    def check_writable(self) -> None:
        """Raise `KafkaStorageError` if the log refuses to work, `PolicyViolationError` if it is only read."""
        self.check_usable()
        self._log_dir.file_system.check_writable(self._log_dir.path)

    @contextmanager
    def disk(self, doing: str, pinned: Sequence[LogSegment] = ()) -> Iterator[None]:
        """Return a context: an OSError in it takes the directory offline, as `LogDirectory.fail` does.

        It may use the files of segments that are `pinned` without the lock; they are unpinned at its end.
        """
        try:
            yield
        except OSError as error:
            raise self.failure(doing, error) from error
        finally:
            if pinned:
                with self.lock:
                    for segment in pinned:
                        segment.unpin()

    def failure(self, doing: str, error: OSError) -> KafkaStorageError:
        """Return what an error of the disk is to the rest of the broker."""
        if self.closed:
            # The log was deleted meanwhile: its files have other names or are gone, and the disk is not to blame.
            return KafkaStorageError(f"The log of {self._topic_partition} is closed")
        if error.errno in OUT_OF_DESCRIPTORS:
            self._files.close_unused()
        return self._log_dir.fail(f"{self._topic_partition}: {doing}", error)
