"""IdleTime: the share of the last minute that threads had nothing to do."""

from __future__ import annotations

import pytest

from harness.mock_time import MockTime
from kclient.broker.metrics.idle_time import SAMPLE_MS, IdleTime
from kclient.utils.time import NS_PER_MS


@pytest.fixture
def time() -> MockTime:
    return MockTime()


def test_a_wait_that_goes_on_counts_as_far_as_it_has_come(time: MockTime) -> None:
    idle = IdleTime(1, time)
    time.advance(1000)
    idle.threads[0].waiting_since_ns = time.monotonic_ns()
    time.advance(3000)
    assert idle.share() == 0.75


def test_the_share_of_a_pool_is_that_of_its_threads_together(time: MockTime) -> None:
    idle = IdleTime(2, time)
    time.advance(1000)
    idle.threads[0].idle_ns = 1000 * NS_PER_MS
    assert idle.shares() == [1.0, 0.0]
    assert idle.share() == 0.5


def test_only_the_last_minute_counts(time: MockTime) -> None:
    idle = IdleTime(1, time)
    idle.threads[0].idle_ns = 100 * SAMPLE_MS * NS_PER_MS
    for _ in range(7):
        time.advance(SAMPLE_MS)
        idle.sample()
    time.advance(SAMPLE_MS)
    assert idle.share() == 0.0


def test_before_any_time_has_passed_all_are_idle(time: MockTime) -> None:
    assert IdleTime(3, time).share() == 1.0
