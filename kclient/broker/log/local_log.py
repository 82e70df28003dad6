"""LocalLog: the segments of a log on this machine's disk, in order."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from pathlib import Path

from kclient.broker.log.config import LogConfig
from kclient.broker.log.file_system import DISK, FileSystem
from kclient.broker.log.files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    PARTITION_METADATA,
    SWAP_SUFFIX,
)
from kclient.broker.log.segment import LogSegment
from kclient.common.topic_partition import TopicPartition
from kclient.errors import IllegalStateError
from kclient.record.batch import RecordBatch
from kclient.record.open_files import OpenFiles
from kclient.utils.time import Time

log = logging.getLogger(__name__)


class LogSegments:
    """Segments by base offset. Guarded by the log's lock."""

    __slots__ = ("_bases", "_by_base")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._by_base: dict[int, LogSegment] = {}

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[LogSegment]:
        """All segments in order, as of now."""
        return iter([self._by_base[base] for base in self._bases])

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._by_base

    @property
    def base_offsets(self) -> list[int]:
        """The base offsets, in order."""
        return list(self._bases)

    @property
    def first(self) -> LogSegment:
        """The oldest segment."""
        return self._by_base[self._bases[0]]

    @property
    def active(self) -> LogSegment:
        """The segment that takes appends."""
        return self._by_base[self._bases[-1]]

    def add(self, segment: LogSegment) -> None:
        """Take `segment` in."""
        if segment.base_offset in self._by_base:
            raise IllegalStateError(f"There is a segment {segment.base_offset} already")
        insort(self._bases, segment.base_offset)
        self._by_base[segment.base_offset] = segment

    def remove(self, base_offset: int) -> LogSegment:
        """Take the segment out; its files stay."""
        del self._bases[bisect_left(self._bases, base_offset)]
        return self._by_base.pop(base_offset)

    def get(self, base_offset: int) -> LogSegment | None:
        """The segment that begins at `base_offset`, None if there is none."""
        return self._by_base.get(base_offset)

    def floor(self, offset: int) -> LogSegment | None:
        """The last segment that begins at or before `offset`."""
        index = bisect_right(self._bases, offset)
        return self._by_base[self._bases[index - 1]] if index else None

    def higher(self, offset: int) -> LogSegment | None:
        """The first segment that begins after `offset`."""
        index = bisect_right(self._bases, offset)
        return self._by_base[self._bases[index]] if index < len(self._bases) else None

    def from_offset(self, offset: int) -> list[LogSegment]:
        """The segments that may hold `offset` or anything after it, in order."""
        first = max(bisect_right(self._bases, offset) - 1, 0)
        return [self._by_base[base] for base in self._bases[first:]]


class LocalLog:
    """The segments of a partition's directory and where the log ends. Guarded by the log's lock.

    Methods raise OSError when the disk fails.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: Path,
        config: LogConfig,
        time: Time,
        files: OpenFiles,
        file_system: FileSystem = DISK,
    ) -> None:
        self.topic_partition = topic_partition
        self.directory = directory
        self.file_system = file_system
        self.config = config
        self.files = files
        self.segments = LogSegments()
        self.log_end_offset = 0
        self._time = time
        self._intact = False  # as a clean shutdown left it, or as it was made
        self._place_on_disk = False
        self._directory_changed = False
        self._directory_lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes of all segments' batches."""
        return sum(segment.size for segment in self.segments)

    def pin_from(self, offset: int) -> list[LogSegment]:
        """Pin the segments that may hold `offset` or anything after it, in order."""
        segments = self.segments.from_offset(offset)
        for segment in segments:
            segment.pin()
        return segments

    def append(self, data: memoryview, batches: list[RecordBatch]) -> None:
        """Write batches, whose offsets are set, to the active segment; nothing is written if it raises."""
        self.segments.active.append(data, batches)
        self.log_end_offset = batches[-1].last_offset + 1

    def open_segment(self, base_offset: int) -> LogSegment:
        """Open the segment's files, or make them, and take it in."""
        segment = LogSegment(
            self.directory, base_offset, self.config, self._time, self.files, file_system=self.file_system
        )
        if self.config.preallocate and segment.size == 0 and self.file_system.writable:
            segment.records.preallocate(self.config.segment_bytes)
        self.segments.add(segment)
        self._directory_changed = True
        return segment

    def roll(self) -> LogSegment:
        """Begin a new active segment at the log's end."""
        base_offset = self.log_end_offset
        active = self.segments.active
        if active.base_offset == base_offset:
            # An empty active segment at the same offset: its indexes are full or its time is up all the same.
            return self.replace_empty_active(active)
        # The old segment first: if its index cannot be written, the new one does not exist yet.
        active.become_inactive()
        segment = self.open_segment(base_offset)
        log.info("%s: rolled a new segment at offset %d", self.topic_partition, base_offset)
        return segment

    def replace_empty_active(self, active: LogSegment) -> LogSegment:
        """Put a fresh segment in the place of an empty one."""
        if active.size:
            raise IllegalStateError(f"Segment {active.base_offset} of {self.topic_partition} is not empty")
        self.segments.remove(active.base_offset)
        active.close_files()
        active.delete_files()
        return self.open_segment(active.base_offset)

    def detach(self, segments: list[LogSegment]) -> None:
        """Take segments out of the log and mark their files as deleted; readers that have them read on."""
        for segment in segments:
            segment.change_suffix("", DELETED_SUFFIX)
            self.segments.remove(segment.base_offset)
            segment.close_files()  # one by one: many may go at once
            self._directory_changed = True

    def replace_segments(self, cleaned: LogSegment, replaced: list[LogSegment]) -> None:
        """Put `cleaned`, whose files are written and end with `.cleaned`, in the place of segments, for deletion.

        A crash before all its files end with `.swap` leaves the log as it was, a later one is finished by the loader.
        """
        if any(self.segments.get(segment.base_offset) is not segment for segment in replaced):
            raise IllegalStateError(f"{self.topic_partition} does not have all of {replaced} any more")
        cleaned.change_suffix(CLEANED_SUFFIX, SWAP_SUFFIX)
        # Before anything is taken away: the file system may make renames durable in any order.
        self.file_system.sync_directory(self.directory)
        self.detach(replaced)
        # Before the last sign of a swap goes: what came back of the old segments would be served beside the new one.
        self.file_system.sync_directory(self.directory)
        cleaned.change_suffix(SWAP_SUFFIX, "")
        cleaned.release_indexes()
        self.segments.add(cleaned)
        self._directory_changed = True
        self.sync_directory()

    def truncate_to(self, offset: int) -> list[LogSegment]:
        """Cut the log back to end at `offset`; returns the segments that fell away, for deletion."""
        dropped = [segment for segment in self.segments if segment.base_offset > offset]
        if len(dropped) == len(self.segments):
            raise IllegalStateError(f"{self.topic_partition} begins after {offset}, where it should end")
        # The newest first: after a crash in between, what is left is still one piece.
        self.detach(dropped[::-1])
        active = self.segments.active
        active.truncate_to(offset)
        self.log_end_offset = offset
        return dropped

    def opened(self, *, made: bool, clean: bool) -> None:
        """Note how the segments were found: `made` a moment ago, or left by a `clean` shutdown or not."""
        self._intact = made or clean
        if self._intact:
            # The directory and whose it is are forced to disk with the first records, which costs three waits for the
            # disk: of a topic of thousands of partitions most may never have one. One that a crash takes away is made
            # anew, as metadata know of it.
            self._directory_changed = made
            self._place_on_disk = not made and self.log_end_offset > 0

    @property
    def is_unused(self) -> bool:
        """True if there has never been a record, and so there is nothing to be kept."""
        return self._intact and self.log_end_offset == 0

    @property
    def directory_changed(self) -> bool:
        """True if files were made, renamed or removed since `sync_directory`."""
        return self._directory_changed

    def sync_directory(self) -> None:
        """Make new, renamed and removed files durable, and the directory itself. The only method that needs no lock."""
        # The lock makes a second caller wait for the first one's fsync instead of finding nothing to do.
        with self._directory_lock:
            if not self._place_on_disk:
                self.file_system.sync(self.directory / PARTITION_METADATA)
                self.file_system.sync_directory(self.directory.parent)
                self._place_on_disk = self._directory_changed = True
            if self._directory_changed:
                # Before the fsync: a change that comes during it must not be forgotten.
                self._directory_changed = False
                self.file_system.sync_directory(self.directory)

    def close(self) -> None:
        """Write the indexes and close all files."""
        for segment in self.segments:
            segment.close()
