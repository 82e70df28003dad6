"""Logs that are written to in steps, and the promises that go with that, held against what is on a disk."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.broker.cleaning import UNLIMITED, batches_of, nothing
from harness.broker.logs import LogHarness, append_alone
from harness.mock_time import MockTime
from kclient.broker.log.cleaner.cleaner import Cleaner
from kclient.broker.log.cleaner.log_to_clean import look_at
from kclient.broker.log.cleaner.offset_map import OffsetMap
from kclient.broker.log.cleaner.throttler import Throttler
from kclient.broker.log.config import LogConfig
from kclient.broker.log.durability import AckPolicy
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.log_types import FetchIsolation
from kclient.broker.timer import Scheduler
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.record import Record, iter_batches

PARTITIONS = [TopicPartition(name, 0) for name in "ab"]
CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100, file_delete_delay_ms=0, retention_bytes=2000)
DELETING, DELETED = -1, -2  # in place of an offset

Promise = tuple[TopicPartition, Uuid, int, list[bytes | None]]
"""Partition, topic, first offset and values of a batch that was acknowledged."""


class LogWriter:
    """Does a step after the other to the logs of a manager in `root`; `promise` is told what was acknowledged."""

    def __init__(self, root: Path, promise: Callable[[Promise], None], policy: AckPolicy) -> None:
        self.time = MockTime()
        self._root = root
        self._promise = promise
        self._policy = policy
        self._batches = LogHarness(Path(tempfile.mkdtemp()))
        self._ids: dict[TopicPartition, Uuid] = {}
        self._last: dict[TopicPartition, bytes] = {}
        self._sequences = dict.fromkeys(PARTITIONS, 0)
        self._number = 0
        self._open()

    def do(self, step: str) -> None:
        what, _, topic = step.partition(" ")
        getattr(self, f"_{what}")(*([TopicPartition(topic, 0)] if topic else []))

    def close(self) -> None:
        self._kill_manager()
        self._batches.close()

    def _append(self, tp: TopicPartition, *, wait: bool = True) -> None:
        self._number += 1
        values = [b"%d-%d" % (self._number, i) + b"x" * (self._number * 37 % 200) for i in range(2)]
        # No key comes twice, so that compaction keeps every record.
        keys = [b"%d-%d" % (self._number, i) for i in range(2)]
        batch = self._batches.batch(values, keys=keys, pid=1, seq=self._sequences[tp])
        self._sequences[tp] += 2
        self._last[tp] = batch
        self._send(tp, batch, values, wait=wait)

    def _unacknowledged(self, tp: TopicPartition) -> None:
        if self._policy is not AckPolicy.ALWAYS:
            self._append(tp, wait=False)

    def _interrupted(self, tp: TopicPartition) -> None:
        """Be killed when an append is written, and before it is forced to disk."""
        log = self._manager.get_log(tp)
        if log is not None:
            log.flusher.syncs_appends = False
            self._append(tp, wait=False)
            self._kill()

    def _retry(self, tp: TopicPartition) -> None:
        if tp in self._last:
            values = [record.value for record in _records(self._last[tp])]
            self._send(tp, self._last[tp], values, wait=True)

    def _send(self, tp: TopicPartition, batch: bytes, values: list[bytes | None], *, wait: bool) -> None:
        topic_id = self._ids.setdefault(tp, Uuid.random())
        log = self._manager.get_or_create_log(tp, topic_id, CONFIG)
        info = append_alone(log, batch, wait=wait)
        if wait:
            self._promise((tp, topic_id, info.first_offset, values))

    def _roll(self, tp: TopicPartition) -> None:
        log = self._manager.get_log(tp)
        if log is not None:
            log.roll()

    def _flush(self, tp: TopicPartition) -> None:
        log = self._manager.get_log(tp)
        if log is not None:
            log.flusher.flush()

    def _checkpoint(self) -> None:
        self._manager.checkpoint_recovery_points()
        self._manager.checkpoint_log_start_offsets()
        self._manager.checkpoint_high_watermarks()

    def _retention(self) -> None:
        self._manager.delete_old_segments()
        self._run_due()

    def _compact(self, tp: TopicPartition) -> None:
        """Write all but the active segment anew, small ones together."""
        log = self._manager.get_log(tp)
        if log is not None:
            cleaner = Cleaner(OffsetMap(1000), Throttler(UNLIMITED, self.time), self.time, nothing)
            cleaner.clean(look_at(log, None, self.time.wall_ms()))
            self._run_due()

    def _delete(self, tp: TopicPartition) -> None:
        if self._manager.get_log(tp) is not None:
            self._promise((tp, self._ids[tp], DELETING, []))
            self._manager.delete_log(tp)
            self._promise((tp, self._ids.pop(tp), DELETED, []))
            self._run_due()
            self._sequences[tp] = 0
            self._last.pop(tp, None)

    def _kill(self) -> None:
        self._kill_manager()
        self._open()

    def _restart(self) -> None:
        self._manager.shutdown()
        self._open()

    def _open(self) -> None:
        self._scheduler = Scheduler("power", self.time)
        self._manager = LogManager([self._root], CONFIG, self.time, self._scheduler, ack_policy=self._policy)
        self._manager.startup(lambda _: CONFIG)

    def _kill_manager(self) -> None:
        self._manager._abandon()
        self._manager._loaded = False

    def _run_due(self) -> None:
        while self._scheduler.timer.advance_clock(0):
            pass


def _records(batches: bytes | memoryview) -> list[Record]:
    return [record for one in iter_batches(batches) for record in one.records()]


def check(root: Path, promised: Iterable[Promise], *, gaps: bool = True) -> None:
    """Start on what is left, compare, and go on writing."""
    time = MockTime()
    manager = LogManager([root], CONFIG, time, Scheduler("power", time))
    manager.startup(lambda _: CONFIG)
    harness = LogHarness(Path(tempfile.mkdtemp()))
    try:
        deleting = {topic_id for _, topic_id, offset, _ in promised if offset == DELETING}
        for tp, topic_id, first_offset, values in promised:
            log = manager.get_log(tp)
            if topic_id in deleting:
                deleted = first_offset == DELETED
                assert not (deleted and log is not None and log.topic_id == topic_id), f"{tp} came back"
                continue
            assert log is not None, f"{tp} is gone"
            assert log.log_end_offset >= first_offset + len(values), f"{tp} lost its end"
            if first_offset >= log.log_start_offset:
                found = _records(log.read(first_offset, 1 << 20, isolation=FetchIsolation.LOG_END).content())[
                    : len(values)
                ]
                assert [(record.offset, record.value) for record in found] == [
                    (first_offset + i, value) for i, value in enumerate(values)
                ]
        for log in manager.all_logs():
            # What was not promised may be lost before what was written later, if a segment ends between them.
            offsets = [record.offset for batch in batches_of(log) for record in batch.records()]
            assert offsets == sorted(set(offsets))
            assert gaps or offsets == list(range(log.segment_base_offsets[0], log.log_end_offset))
            assert append_alone(log, harness.batch([b"after"])).first_offset > max(offsets, default=-1)
    finally:
        harness.close()
        manager.shutdown()
