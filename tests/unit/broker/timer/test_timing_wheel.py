"""The wheel places entries in buckets, across levels."""

from __future__ import annotations

import pytest

from kclient.broker.timer.timing_wheel import Bucket, TimerEntry, TimerTask, TimingWheel


class Nothing(TimerTask):
    def run(self) -> None:
        pass


def entry(expiration_ms: int) -> TimerEntry:
    return TimerEntry(Nothing(0), expiration_ms, lambda _: None)


def test_an_entry_that_is_due_within_the_current_tick_is_not_taken() -> None:
    wheel = TimingWheel(10, 3, 100, lambda _: None)
    assert not wheel.add(entry(99))
    assert not wheel.add(entry(109))
    assert wheel.add(entry(110))


def test_entries_of_one_tick_share_a_bucket_that_is_queued_once() -> None:
    queued: list[Bucket] = []
    wheel = TimingWheel(10, 3, 0, queued.append)
    for expiration_ms in (10, 14, 19):
        wheel.add(entry(expiration_ms))
    assert [bucket.expiration_ms for bucket in queued] == [10]
    assert len(queued[0].entries) == 3


def test_an_entry_beyond_the_span_goes_to_a_coarser_wheel() -> None:
    queued: list[Bucket] = []
    wheel = TimingWheel(1, 3, 0, queued.append)
    for expiration_ms in (2, 5, 26, 100):
        wheel.add(entry(expiration_ms))
    # Ticks of 1, 3, 9 and 27 ms, three of each.
    assert [bucket.expiration_ms for bucket in queued] == [2, 3, 18, 81]


def test_a_bucket_is_queued_again_on_the_next_turn() -> None:
    queued: list[Bucket] = []
    wheel = TimingWheel(1, 3, 0, queued.append)
    wheel.add(entry(1))
    queued[0].drain()
    wheel.advance(3)
    wheel.add(entry(4))
    assert queued[0] is queued[1]
    assert queued[1].expiration_ms == 4


@pytest.mark.parametrize(("tick_ms", "size"), [(0, 20), (1, 1)])
def test_a_wheel_that_cannot_turn_is_refused(tick_ms: int, size: int) -> None:
    with pytest.raises(ValueError, match="timing wheel"):
        TimingWheel(tick_ms, size, 0, lambda _: None)
