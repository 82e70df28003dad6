"""A broker that is killed in the middle of anything keeps what it has acknowledged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.broker.killing import kill_again_and_again


@pytest.mark.heavy
def test_nothing_acknowledged_is_lost_doubled_or_moved_by_kills_in_the_middle_of_operations(
    tmp_path: Path,
) -> None:
    seed = random.SystemRandom().randrange(10**9)
    problems, done = kill_again_and_again(tmp_path, random.Random(seed), rounds=10)
    print(f"seed {seed}: {done}")
    assert not problems, f"with seed {seed}, {done}: {problems[:20]}"
