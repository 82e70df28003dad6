"""SenderWakeup: which batches end the I/O thread's poll."""

from __future__ import annotations

import pytest

from kclient.producer.internals.wakeup import SenderWakeup

BROKER = 1


class Counting:
    def __init__(self) -> None:
        self.wakeups = 0
        self.error: BaseException | None = None

    def __call__(self) -> None:
        if self.error is not None:
            raise self.error
        self.wakeups += 1


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture
def wakeup(counting: Counting) -> SenderWakeup:
    return SenderWakeup(counting)


def fall_asleep(wakeup: SenderWakeup, until_ms: int = 1000, busy: int | None = None) -> None:
    """The I/O thread's steps before a poll; the broker `busy` takes no more."""
    wakeup.announce()
    wakeup.sleep(until_ms, frozenset() if busy is None else frozenset({busy}))


def test_a_thread_at_work_is_not_woken(wakeup: SenderWakeup, counting: Counting) -> None:
    wakeup.batch_added(BROKER, 0)
    fall_asleep(wakeup)
    wakeup.awake()
    wakeup.batch_added(BROKER, 0)
    assert counting.wakeups == 0


def test_between_its_look_at_the_queues_and_its_poll_every_batch_wakes_it(
    wakeup: SenderWakeup, counting: Counting
) -> None:
    wakeup.announce()
    wakeup.batch_added(None, 10**15)
    assert counting.wakeups == 1


def test_a_batch_wakes_a_sleeping_thread_once(wakeup: SenderWakeup, counting: Counting) -> None:
    fall_asleep(wakeup)
    for _ in range(3):
        wakeup.batch_added(BROKER, 999)
    wakeup.wake()
    assert counting.wakeups == 1
    wakeup.awake()
    fall_asleep(wakeup, 2000)
    wakeup.batch_added(BROKER, 999)
    assert counting.wakeups == 2


def test_a_batch_that_can_wait_until_the_poll_ends_by_itself_does_not_wake(
    wakeup: SenderWakeup, counting: Counting
) -> None:
    fall_asleep(wakeup)
    wakeup.batch_added(BROKER, 1000)
    assert counting.wakeups == 0


def test_a_batch_for_a_broker_that_takes_no_more_before_it_answers_does_not_wake(
    wakeup: SenderWakeup, counting: Counting
) -> None:
    fall_asleep(wakeup, busy=BROKER)
    wakeup.batch_added(BROKER, 0)
    assert counting.wakeups == 0
    wakeup.batch_added(BROKER + 1, 0)
    assert counting.wakeups == 1


def test_what_must_be_seen_wakes_in_any_case(wakeup: SenderWakeup, counting: Counting) -> None:
    fall_asleep(wakeup, busy=BROKER)
    wakeup.wake()
    assert counting.wakeups == 1


def test_a_wakeup_that_was_interrupted_is_done_by_the_next_one(
    wakeup: SenderWakeup, counting: Counting
) -> None:
    fall_asleep(wakeup)
    counting.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        wakeup.wake()
    counting.error = None
    wakeup.wake()
    assert counting.wakeups == 1
