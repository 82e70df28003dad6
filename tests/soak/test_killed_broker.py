"""kill -9 of the broker in the middle of operations on files, two hundred times."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.killing import kill_again_and_again


@pytest.mark.soak(seconds=1800)
def test_nothing_acknowledged_is_lost_doubled_or_moved_by_two_hundred_kills(
    tmp_path: Path, seconds: float, rng: random.Random, verdict: Callable[[list[str]], None]
) -> None:
    problems, done = kill_again_and_again(tmp_path, rng, rounds=200, until=time.monotonic() + seconds)
    print(done)
    verdict(problems)
