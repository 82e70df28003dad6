"""Connections that are held back go on when their time and their request are over."""

from __future__ import annotations

import sys

from harness.mock_time import MockTime
from kclient.broker.network.throttled_connections import ThrottledConnections


def test_a_connection_that_is_not_held_back_goes_on() -> None:
    assert ThrottledConnections(MockTime()).may_go_on("a")


def test_one_whose_request_is_over_waits_for_its_time() -> None:
    time = MockTime()
    throttled = ThrottledConnections(time)
    throttled.hold("a", 100)
    assert not throttled.may_go_on("a")
    assert throttled.timeout_ms(300) == 100
    time.advance(99)
    assert throttled.released() == []
    time.advance(1)
    assert throttled.timeout_ms(300) == 0
    assert throttled.released() == ["a"]
    assert throttled.released() == []
    assert throttled.may_go_on("a")
    assert throttled.timeout_ms(300) == 300


def test_one_whose_answer_is_slower_than_its_time_goes_on_after_the_answer() -> None:
    time = MockTime()
    throttled = ThrottledConnections(time)
    throttled.hold("a", 100)
    time.advance(100)
    assert throttled.released() == []
    assert throttled.may_go_on("a")


def test_those_that_have_gone_are_not_kept_until_their_time() -> None:
    time = MockTime()
    throttled = ThrottledConnections(time)
    throttled.hold("stays", 100)
    assert not throttled.may_go_on("stays")
    for number in range(10_000):
        throttled.hold(f"gone {number}", 1_000_000)
        throttled.forget(f"gone {number}")
    assert sys.getsizeof(throttled._order) < 5000
    time.advance(100)
    assert throttled.released() == ["stays"]


def test_each_has_its_own_time_and_one_that_has_gone_none() -> None:
    time = MockTime()
    throttled = ThrottledConnections(time)
    for connection_id, held_ms in (("slow", 300), ("gone", 100), ("quick", 200)):
        throttled.hold(connection_id, held_ms)
        assert not throttled.may_go_on(connection_id)
    throttled.forget("gone")
    time.advance(200)
    assert throttled.released() == ["quick"]
    time.advance(100)
    assert throttled.released() == ["slow"]
