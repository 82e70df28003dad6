"""Acknowledged records that were on disk are there after a power failure, whatever else is lost."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harness.broker.cleaning import batches_of
from harness.broker.logs import LogHarness, append_alone
from harness.broker.power import RecordingDisk, not_forced
from harness.mock_time import MockTime
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
CUTS = 6
STATES = 2
DELETING, DELETED = -1, -2  # in place of an offset

STEPS = st.sampled_from(
    ["append a", "append a", "append a", "append b", "unacknowledged a", "interrupted a", "retry a", "roll a",
     "flush a", "checkpoint", "retention", "delete b", "kill", "restart"]
)  # fmt: skip


class Writer:
    """Does a step after the other to the logs of a manager, and notes on the disk what was promised."""

    def __init__(self, root: Path, disk: RecordingDisk, policy: AckPolicy) -> None:
        self.time = MockTime()
        self._root = root
        self._disk = disk
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
        batch = self._batches.batch(values, pid=1, seq=self._sequences[tp])
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
            self._disk.note((tp, topic_id, info.first_offset, values))

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

    def _delete(self, tp: TopicPartition) -> None:
        if self._manager.get_log(tp) is not None:
            self._disk.note((tp, self._ids[tp], DELETING, []))
            self._manager.delete_log(tp)
            self._disk.note((tp, self._ids.pop(tp), DELETED, []))
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


def check(
    root: Path, promised: list[tuple[TopicPartition, Uuid, int, list[bytes]]], *, gaps: bool = True
) -> None:
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


@pytest.mark.parametrize("policy", [AckPolicy.BATCH, AckPolicy.ALWAYS])
@settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(STEPS, min_size=5, max_size=25), seed=st.integers(0, 1 << 30))
def test_what_was_promised_outlives_a_power_failure(policy: AckPolicy, steps: list[str], seed: int) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "disk"
        root.mkdir()
        disk = RecordingDisk(root)
        with disk.recording():
            writer = Writer(root / "d", disk, policy)
            try:
                for step in steps:
                    writer.do(step)
            finally:
                writer.close()
        for number in range(CUTS):
            at = len(disk) if number == 0 else chance.randrange(len(disk) + 1)
            for state in range(STATES):
                left = Path(folder) / f"left-{number}-{state}"
                disk.after_crash(at, left, chance)
                with not_forced():
                    check(left / "d", disk.noted(at))


def test_a_kill_between_any_two_operations_on_files_loses_nothing(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    disk = RecordingDisk(root)
    with disk.recording():
        writer = Writer(root / "d", disk, AckPolicy.BATCH)
        for step in (
            *["append a", "append b"] * 2, "roll a", *["append a"] * 7, "checkpoint", "retention", "append a",
            "flush a", "roll a", "delete b", "append b", "restart", "append a", "retention", "checkpoint", "kill",
        ):  # fmt: skip
            writer.do(step)
        writer.close()
    moments = disk.moments()
    assert len(moments) > 100
    for at in moments:
        left = tmp_path / f"left-{at}"
        disk.after_kill(at, left)
        with not_forced():
            check(left / "d", disk.noted(at), gaps=False)
