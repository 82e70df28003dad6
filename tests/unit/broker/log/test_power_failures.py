"""Acknowledged records that were on disk are there after a power failure, whatever else is lost."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harness.broker.power import RecordingDisk, not_forced
from harness.broker.promises import LogWriter, Promise, check
from kclient.broker.log.durability import AckPolicy

CUTS = 6
STATES = 2

STEPS = st.sampled_from(
    ["append a", "append a", "append a", "append b", "unacknowledged a", "interrupted a", "retry a", "roll a",
     "flush a", "compact a", "checkpoint", "retention", "delete b", "kill", "restart"]
)  # fmt: skip


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
            writer = LogWriter(root / "d", disk.note, policy)
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


COMPACTION = ["append a", "roll a", "append a", "roll a", "append a", "append a"]


@pytest.mark.heavy
def test_a_power_failure_during_a_compaction_or_while_one_is_finished_leaves_each_record_once(
    tmp_path: Path,
) -> None:
    disk = recording_disk(tmp_path / "disk")
    with disk.recording():
        writer = LogWriter(tmp_path / "disk" / "d", disk.note, AckPolicy.BATCH)
        for step in COMPACTION:
            writer.do(step)
        writer.do("compact a")
        end = len(disk)
        writer.close()
    chance = random.Random(1)
    ready = first_moment(disk, tmp_path, lambda names: ".log.swap" in names and ".cleaned" not in names)
    swapped = first_moment(disk, tmp_path, lambda names: ".log.swap" not in names, since=ready)
    for at in disk.moments():
        if ready <= at <= end:
            # A name that comes back does harm where the one that tells of the swap is gone.
            states = 20 if at >= swapped else 2
            check_what_is_left(disk, at, states, tmp_path / f"left-{at}", chance, disk.noted(at))
    second = recording_disk(tmp_path / "second")
    disk.after_kill(ready, tmp_path / "killed")
    with second.recording():
        copy_durably(tmp_path / "killed" / "d", tmp_path / "second" / "d")
        begin = len(second)
        LogWriter(tmp_path / "second" / "d", second.note, AckPolicy.BATCH).close()
    for at in second.moments():
        if begin <= at:
            check_what_is_left(second, at, CUTS, tmp_path / f"again-{at}", chance, disk.noted(end))


def first_moment(disk: RecordingDisk, tmp_path: Path, there: Callable[[str], bool], since: int = 0) -> int:
    """The first moment from `since` on at which the names of all files are so."""
    for at in disk.moments():
        left = tmp_path / f"looked-{since}-{at}"
        if at >= since:
            disk.after_kill(at, left)
            if there(" ".join(f"{path.name} " for path in left.rglob("*"))):
                return at
    raise AssertionError("there is no such moment")


def recording_disk(root: Path) -> RecordingDisk:
    root.mkdir()
    return RecordingDisk(root)


def check_what_is_left(
    disk: RecordingDisk, at: int, states: int, target: Path, chance: random.Random, promised: list[Promise]
) -> None:
    for state in range(states):
        left = target.with_name(f"{target.name}-{state}")
        disk.after_crash(at, left, chance)
        with not_forced():
            check(left / "d", promised)


def copy_durably(source: Path, target: Path) -> None:
    """Copy a directory, all of it forced to disk, by the operations that a disk records."""
    os.mkdir(target)
    for path in source.iterdir():
        if path.is_dir():
            copy_durably(path, target / path.name)
            continue
        fd = os.open(target / path.name, os.O_CREAT | os.O_WRONLY)
        os.pwrite(fd, path.read_bytes(), 0)
        os.fsync(fd)
        os.close(fd)
    for directory in (target, target.parent):
        fd = os.open(directory, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)


@pytest.mark.heavy
def test_a_kill_between_any_two_operations_on_files_loses_nothing(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    disk = RecordingDisk(root)
    with disk.recording():
        writer = LogWriter(root / "d", disk.note, AckPolicy.BATCH)
        for step in (
            *["append a", "append b"] * 2, "roll a", *["append a"] * 7, "checkpoint", "retention", "append a",
            "flush a", "roll a", "compact a", "delete b", "append b", "restart", "append a", "retention",
            "checkpoint", "kill",
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
