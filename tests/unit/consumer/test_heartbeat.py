"""The three clocks of a member: when each of them wants something."""

from __future__ import annotations

import pytest

from kclient.consumer.internals.coordinator.heartbeat import Heartbeat
from kclient.utils.backoff import ExponentialBackoff

START = 1000


class Clocks:
    """A heartbeat every 100 ms, a session of 500, polls within 2000."""

    def __init__(self) -> None:
        self.taken_ms = 0
        self.heartbeat = Heartbeat(
            interval_ms=100,
            session_timeout_ms=500,
            max_poll_interval_ms=2000,
            backoff=ExponentialBackoff(10, 1000, jitter=0),
            taken_ms=lambda: self.taken_ms,
            now_ms=START,
        )
        self.heartbeat.reset(START)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_one_heartbeat_at_a_time_goes_out_every_interval(clocks: Clocks) -> None:
    heartbeat = clocks.heartbeat
    assert not heartbeat.is_due(START + 99)
    assert heartbeat.wait_ms(START + 99) == 1
    assert heartbeat.is_due(START + 100)
    heartbeat.sent(START + 100)
    assert not heartbeat.is_due(START + 300)
    heartbeat.answered(START + 150)
    assert not heartbeat.is_due(START + 199)
    assert heartbeat.is_due(START + 200)


def test_while_one_is_on_its_way_the_end_of_the_session_is_waited_for(clocks: Clocks) -> None:
    clocks.heartbeat.sent(START + 100)
    assert clocks.heartbeat.wait_ms(START + 100) == 400


def test_the_session_ends_without_answers_and_begins_again_with_each(clocks: Clocks) -> None:
    heartbeat = clocks.heartbeat
    heartbeat.sent(START + 100)
    heartbeat.answered(START + 120)
    assert not heartbeat.session_expired(START + 619)
    assert heartbeat.session_expired(START + 620)
    assert heartbeat.wait_ms(START + 700) == 0
    heartbeat.reset(START + 700)
    assert not heartbeat.session_expired(START + 700)


def test_one_that_failed_is_tried_again_soon_but_less_and_less_soon(clocks: Clocks) -> None:
    heartbeat = clocks.heartbeat
    waits = []
    for _ in range(3):
        heartbeat.sent(START + 100)
        heartbeat.failed(START + 100)
        waits.append(heartbeat.wait_ms(START + 100))
    assert waits == [10, 20, 40]
    heartbeat.sent(START + 100)
    heartbeat.answered(START + 100)
    heartbeat.failed(START + 100)
    assert heartbeat.wait_ms(START + 100) == 10
    assert not heartbeat.session_expired(START + 599)


def test_an_application_that_polls_or_takes_records_is_not_stuck(clocks: Clocks) -> None:
    heartbeat = clocks.heartbeat
    assert not heartbeat.poll_expired(START + 1999)
    assert heartbeat.poll_expired(START + 2000)
    heartbeat.polled_ms = START + 1000
    assert not heartbeat.poll_expired(START + 2999)
    clocks.taken_ms = START + 2000
    assert not heartbeat.poll_expired(START + 3999)
    assert heartbeat.poll_expired(START + 4000)


def test_the_clock_of_polls_is_waited_for_as_well(clocks: Clocks) -> None:
    heartbeat = clocks.heartbeat
    heartbeat.reset(START + 1950)
    assert heartbeat.wait_ms(START + 1950) == 50


def test_one_that_is_hurried_goes_out_at_once_or_behind_the_one_on_its_way(clocks: Clocks) -> None:
    heartbeat = clocks.heartbeat
    heartbeat.hurry()
    assert heartbeat.is_due(START)
    assert heartbeat.wait_ms(START) == 0
    heartbeat.sent(START)
    assert not heartbeat.is_due(START + 50)
    heartbeat.hurry()
    assert heartbeat.wait_ms(START + 50) == 450
    heartbeat.answered(START + 60)
    assert heartbeat.is_due(START + 60)
    heartbeat.sent(START + 60)
    heartbeat.answered(START + 70)
    assert not heartbeat.is_due(START + 159)
    assert heartbeat.is_due(START + 160)


def test_a_failure_makes_also_a_hurried_one_wait(clocks: Clocks) -> None:
    heartbeat = clocks.heartbeat
    heartbeat.sent(START)
    heartbeat.hurry()
    heartbeat.failed(START)
    assert not heartbeat.is_due(START + 9)
    assert heartbeat.is_due(START + 10)


def test_an_interval_of_the_coordinator_counts_from_now_on(clocks: Clocks) -> None:
    heartbeat = clocks.heartbeat
    for none in (0, -1, 100):
        heartbeat.set_interval(none, START + 50)
        assert heartbeat.wait_ms(START + 50) == 50
    heartbeat.set_interval(300, START + 50)
    assert heartbeat.wait_ms(START + 50) == 300
