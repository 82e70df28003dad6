"""Fixtures of the soak tests: how long they take, and the seed of what they do.

`SOAK_SECONDS` bounds all of them together; without it each takes its own time, minutes or an hour. `SOAK_SEED` repeats
a run.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

SEED = int(os.environ.get("SOAK_SEED") or random.SystemRandom().randrange(10**9))
_TESTS = 9
# Starting and stopping brokers, reading everything back, on a machine that does other things too.
_SETTLE_S = 600
_SHOWN = 8


def pytest_report_header() -> str:
    return f"soak: SOAK_SEED={SEED} SOAK_SECONDS={os.environ.get('SOAK_SECONDS') or '(minutes)'}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        own = item.get_closest_marker("soak")
        if own is not None and "seconds" in own.kwargs:  # the others keep to a limit of their own
            item.add_marker(pytest.mark.timeout(_seconds(own.kwargs["seconds"]) + _SETTLE_S))


@pytest.fixture
def seconds(request: pytest.FixtureRequest) -> float:
    """For how long to make trouble."""
    return _seconds(request.node.get_closest_marker("soak").kwargs["seconds"])


@pytest.fixture
def seed() -> int:
    """The number that all chance begins with, where several threads need it."""
    return SEED


@pytest.fixture
def rng() -> random.Random:
    """The source of all that happens by chance."""
    return random.Random(SEED)


@pytest.fixture
def verdict(tmp_path: Path) -> Callable[[list[str]], None]:
    """Fails with what is wrong, with how to see it again, and with the directory that has the histories."""

    def decide(problems: list[str]) -> None:
        if problems:
            kinds = Counter(problem.partition(":")[0] for problem in problems)
            shown = [p for kind in kinds for p in [p for p in problems if p.startswith(f"{kind}:")][:_SHOWN]]
            listed = "\n".join(f"- {problem}" for problem in shown)
            pytest.fail(
                f"problems with SOAK_SEED={SEED}, histories in {tmp_path}: {dict(kinds)}\n{listed}",
                pytrace=False,
            )

    return decide


def _seconds(own: float) -> float:
    given = os.environ.get("SOAK_SECONDS")
    return own if not given else float(given) / _TESTS
