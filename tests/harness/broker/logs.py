"""A place to keep logs in: a directory, a clock set by hand, and a scheduler that runs when told to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.mock_time import MockTime
from kclient.broker.log.config import LogConfig
from kclient.broker.log.loader import LoadOptions, load_log
from kclient.broker.log.log_directory import LogDirectory
from kclient.broker.log.unified_log import FetchIsolation, LogAppendInfo, UnifiedLog
from kclient.broker.timer import Scheduler
from kclient.common.topic_partition import TopicPartition
from kclient.compress import CompressionType
from kclient.record import MemoryRecordsBuilder, Record, iter_batches

TP = TopicPartition("t", 0)


class OnlyReplica(UnifiedLog):
    """The log of a partition with one replica: all that is appended is below the high watermark."""

    def append_as_leader(self, *args: Any, **kwargs: Any) -> LogAppendInfo:
        info = super().append_as_leader(*args, **kwargs)
        self.advance_high_watermark(self.log_end)
        return info


def append_alone(log: UnifiedLog, records: bytes, leader_epoch: int = 0, **options: Any) -> LogAppendInfo:
    """Append as the leader of a partition with one replica: the high watermark is the log's end afterwards."""
    info = log.append_as_leader(records, leader_epoch, **options)
    log.advance_high_watermark(log.log_end)
    return info


class LogHarness:
    """Opens and closes one log over and over."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.directory = root / "t-0"
        self.directory.mkdir(exist_ok=True)
        self.time = MockTime()
        self.log_dir = LogDirectory(root)
        self.scheduler = Scheduler("test", self.time)
        self.logs: list[UnifiedLog] = []

    def open(self, config: LogConfig | None = None, **options: object) -> UnifiedLog:
        """Load the log; after an unclean shutdown unless `clean=True`."""
        made = self.open_replica(config, **options)
        made.__class__ = OnlyReplica
        made.advance_high_watermark(made.log_end)
        return made

    def open_replica(self, config: LogConfig | None = None, **options: object) -> UnifiedLog:
        """Load the log of a partition with several replicas; its high watermark is the test's to move."""
        made = load_log(
            self.directory, TP, self.log_dir, self.scheduler, self.time,
            LoadOptions(config if config is not None else LogConfig(), **options),
        )  # fmt: skip
        self.logs.append(made)
        return made

    def crash(self, log: UnifiedLog) -> None:
        """Let go of the files as a killed process does: nothing that is only in memory is written."""
        log.close_for_deletion()

    def run_due(self, after_ms: int = 0) -> None:
        """Move the clock and run what the scheduler has to do by then."""
        self.time.advance(after_ms)
        while self.scheduler.timer.advance_clock(0):
            pass

    def close(self) -> None:
        for log in self.logs:
            log.close_for_deletion()
        self.scheduler.shutdown()
        self.log_dir.release()

    def batch(
        self,
        values: Sequence[bytes | None] = (b"v",),
        *,
        keys: Sequence[bytes | None] | None = None,
        timestamp_ms: int | None = None,
        timestamps_ms: Sequence[int] | None = None,
        compression: CompressionType = CompressionType.NONE,
        pid: int = -1,
        epoch: int = 0,
        seq: int = 0,
        transactional: bool = False,
    ) -> bytes:
        """A batch as a producer sends it."""
        builder = MemoryRecordsBuilder(
            compression=compression,
            producer_id=pid,
            producer_epoch=epoch if pid >= 0 else -1,
            base_sequence=seq if pid >= 0 else -1,
            is_transactional=transactional,
        )
        now = self.time.wall_ms() if timestamp_ms is None else timestamp_ms
        for index, value in enumerate(values):
            stamp = now if timestamps_ms is None else timestamps_ms[index]
            builder.append(stamp, None if keys is None else keys[index], value)
        return builder.close()


def read_all(log: UnifiedLog, start: int | None = None, *, max_bytes: int = 1 << 20) -> list[Record]:
    """Every record from `start` on, by as many reads as it takes."""
    offset = log.log_start_offset if start is None else start
    records: list[Record] = []
    while offset < log.log_end_offset:
        data = log.read(offset, max_bytes, isolation=FetchIsolation.LOG_END).records
        batches = list(iter_batches(data))
        assert batches, f"nothing at offset {offset}, before the end {log.log_end_offset}"
        for batch in batches:
            records += [record for record in batch.records() if record.offset >= offset]
        offset = batches[-1].next_offset
    return records
