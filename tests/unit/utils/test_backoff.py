"""ExponentialBackoff: growth, jitter, limits."""

from __future__ import annotations

import pytest

from kclient.utils.backoff import ExponentialBackoff


def test_backoff_grows_by_its_multiplier_within_the_jitter_up_to_the_maximum() -> None:
    backoff = ExponentialBackoff(100, 1000)
    for attempts, middle in enumerate([100, 200, 400, 800]):
        waits = [backoff.backoff_ms(attempts) for _ in range(200)]
        assert all(middle * 0.8 - 1 <= wait <= min(middle * 1.2, 1000) for wait in waits)
    assert max(backoff.backoff_ms(10) for _ in range(100)) == 1000


def test_backoff_of_very_many_attempts_does_not_overflow() -> None:
    assert ExponentialBackoff(100, 1000).backoff_ms(10**9) == 1000


def test_a_backoff_of_zero_never_waits() -> None:
    assert ExponentialBackoff(0, 1000).backoff_ms(5) == 0


@pytest.mark.parametrize("attempts", [-5, -1, 0])
def test_fewer_than_no_attempts_wait_as_long_as_none(attempts: int) -> None:
    assert ExponentialBackoff(100, 1000, jitter=0).backoff_ms(attempts) == 100


def test_without_jitter_every_wait_is_exact_and_without_growth_all_are_equal() -> None:
    exact = ExponentialBackoff(10, 100_000, multiplier=3, jitter=0)
    assert [exact.backoff_ms(attempts) for attempts in range(4)] == [10, 30, 90, 270]
    level = ExponentialBackoff(10, 100_000, multiplier=1, jitter=0)
    assert {level.backoff_ms(attempts) for attempts in range(100)} == {10}


def test_jitter_spreads_the_waits_to_both_sides() -> None:
    waits = [ExponentialBackoff(1000, 10_000).backoff_ms(0) for _ in range(300)]
    assert min(waits) < 900
    assert max(waits) > 1100


def test_a_first_wait_above_the_longest_is_the_longest() -> None:
    assert ExponentialBackoff(5000, 1000, jitter=0).backoff_ms(0) == 1000
