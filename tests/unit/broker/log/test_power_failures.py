"""Acknowledged records that were on disk are there after a power failure, whatever else is lost."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harness.broker.power import RecordingDisk, not_forced
from harness.broker.promises import LogWriter, check
from kclient.broker.log.durability import AckPolicy

CUTS = 6
STATES = 2

STEPS = st.sampled_from(
    ["append a", "append a", "append a", "append b", "unacknowledged a", "interrupted a", "retry a", "roll a",
     "flush a", "checkpoint", "retention", "delete b", "kill", "restart"]
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


@pytest.mark.heavy
def test_a_kill_between_any_two_operations_on_files_loses_nothing(tmp_path: Path) -> None:
    root = tmp_path / "disk"
    root.mkdir()
    disk = RecordingDisk(root)
    with disk.recording():
        writer = LogWriter(root / "d", disk.note, AckPolicy.BATCH)
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
