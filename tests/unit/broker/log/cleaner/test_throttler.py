"""The bytes that the cleaner reads and writes stay within the limit on average."""

from __future__ import annotations

import pytest

from harness.mock_time import MockTime
from kclient.broker.log.cleaner.cleaner_manager import CleaningAbortedError
from kclient.broker.log.cleaner.throttler import Throttler


def nothing() -> None:
    pass


def test_it_waits_for_as_long_as_the_bytes_take() -> None:
    time = MockTime()
    throttler = Throttler(1000, time)
    begin = time.monotonic_ms()
    for _ in range(5):
        throttler.throttle(700, nothing)
    assert time.monotonic_ms() - begin == 3500


def test_time_in_which_nothing_was_done_is_not_made_up_for() -> None:
    time = MockTime()
    throttler = Throttler(1000, time)
    time.advance(60_000)
    begin = time.monotonic_ms()
    throttler.throttle(2000, nothing)
    assert time.monotonic_ms() - begin == 2000


def test_without_a_limit_nobody_waits() -> None:
    time = MockTime()
    begin = time.monotonic_ms()
    Throttler(1.7976931348623157e308, time).throttle(1 << 40, nothing)
    assert time.monotonic_ms() == begin


def test_a_wait_can_be_ended() -> None:
    time = MockTime()
    looks = iter(range(3))

    def check() -> None:
        if next(looks, None) is None:
            raise CleaningAbortedError

    with pytest.raises(CleaningAbortedError):
        Throttler(1, time).throttle(1_000_000, check)
