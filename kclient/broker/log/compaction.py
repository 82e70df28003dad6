"""LogCompaction: the segments of a log as the cleaner reads and replaces them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

from kclient.broker.log.files import CLEANED_SUFFIX, once_only, remove_if_present, segment_paths
from kclient.broker.log.local_log import LocalLog
from kclient.broker.log.log_guard import LogGuard
from kclient.broker.log.producer_state_manager import ProducerStateManager
from kclient.broker.log.retention import LogRetention
from kclient.broker.log.segment import LogSegment
from kclient.utils.time import Time


@attrs.frozen
class LastBatch:
    """The newest of a producer in a log, by which it is known when it writes again.

    `offset` is the last of its data, -1 if its epoch has written none but a marker. Immutable.
    """

    offset: int
    epoch: int


@attrs.define(eq=False)
class LogCompaction:
    """The side of a log that is compacted. Thread-safe; one cleaner at a time replaces segments.

    Methods raise `KafkaStorageError` when the disk fails, and when the log is closed.
    """

    _local: LocalLog
    _guard: LogGuard
    _producers: ProducerStateManager
    _retention: LogRetention
    _time: Time

    def segments(self) -> list[LogSegment]:
        """All segments, in order; the last is the active one."""
        with self._guard.lock:
            self._guard.check_usable()
            return list(self._local.segments)

    @contextmanager
    def reading(self, segments: Sequence[LogSegment]) -> Iterator[None]:
        """Return a context in which the files of `segments`, all of them in the log, stay open."""
        with self._guard.lock:
            self._guard.check_usable()
            for segment in segments:
                segment.pin()
        with self._guard.disk("cleaning", segments):
            yield

    def last_batches(self) -> dict[int, LastBatch]:
        """The last batch of each active producer, by its id."""
        with self._guard.lock:
            return {
                producer_id: LastBatch(entry.last_offset, entry.producer_epoch)
                for producer_id, entry in self._producers.producers.items()
            }

    def new_segment(self, base_offset: int) -> LogSegment:
        """Make an empty segment, whose files end with `.cleaned`, and which is not part of the log."""
        local = self._local
        with self._guard.disk("making a segment to clean into"):
            self._guard.check_usable()
            # An earlier attempt may have left some.
            for path in segment_paths(local.directory, base_offset, CLEANED_SUFFIX):
                remove_if_present(path)
            return LogSegment(
                local.directory, base_offset, local.config, self._time, local.files, CLEANED_SUFFIX
            )

    def replace(self, cleaned: LogSegment, replaced: list[LogSegment]) -> None:
        """Put a segment made by `new_segment`, written and forced to disk, in the place of segments of the log.

        Readers that have these pinned read on in them.
        """
        with self._guard.lock, self._guard.disk("swapping in a cleaned segment"), once_only():
            self._guard.check_usable()
            self._retention.replace(cleaned, replaced)
