from __future__ import annotations

import itertools
import threading

import pytest

from harness.interrupts import interrupted_at
from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.errors import BufferExhaustedError, ClientClosedError
from kclient.metrics import Sensor
from kclient.producer.internals.buffer_pool import BufferPool, Claim
from kclient.utils.steps import run


def pool(total: int = 100) -> tuple[BufferPool, MockTime]:
    time = MockTime()
    return BufferPool(total, Sensor(time), lambda: None), time


def test_what_is_released_can_be_allocated_again() -> None:
    made, _ = pool()
    assert made.try_allocate(Claim(), 100)
    assert not made.try_allocate(Claim(), 1)
    made.release(100)
    assert made.try_allocate(Claim(), 100)


def test_waiters_are_served_in_order_and_small_ones_do_not_overtake() -> None:
    made, time = pool()
    assert made.try_allocate(Claim(), 100)
    order: list[int] = []

    def allocate(size: int) -> None:
        run(made.allocate(Claim(), size, time.timer(10_000)), time)
        order.append(size)

    threads = []
    for count, size in enumerate((90, 5, 5), 1):
        threads.append(threading.Thread(target=allocate, args=(size,)))
        threads[-1].start()
        wait_until(lambda count=count: made.waiting == count)  # type: ignore[misc]
    made.release(50)
    assert not made.try_allocate(Claim(), 5)
    assert order == []
    made.release(50)
    for thread in threads:
        thread.join(10)
    assert sorted(order) == [5, 5, 90]
    assert made.available == 0


def test_waiting_ends_with_max_block_and_leaves_nothing_behind() -> None:
    made, time = pool()
    assert made.try_allocate(Claim(), 100)
    with pytest.raises(BufferExhaustedError, match=r"max\.block\.ms"):
        run(made.allocate(Claim(), 10, time.timer(0)), time)
    assert made.waiting == 0
    assert made.exhausted == 1
    made.release(100)
    assert made.available == 100


def test_giving_up_lets_the_next_in_line_go_on() -> None:
    made, time = pool()
    assert made.try_allocate(Claim(), 50)
    errors: list[BaseException] = []
    done = threading.Event()

    def large() -> None:
        try:
            run(made.allocate(Claim(), 80, time.timer(100)), time)
        except BufferExhaustedError as error:
            errors.append(error)

    def small() -> None:
        run(made.allocate(Claim(), 30, time.timer(100_000)), time)
        done.set()

    first = threading.Thread(target=large)
    first.start()
    wait_until(lambda: made.waiting == 1)
    second = threading.Thread(target=small)
    second.start()
    wait_until(lambda: made.waiting == 2)
    time.advance(100)
    first.join(10)
    second.join(10)
    assert errors
    assert done.is_set()
    assert made.available == 20


def test_what_was_granted_to_an_interrupted_wait_is_the_claims_to_give_back() -> None:
    made, time = pool()
    assert made.try_allocate(Claim(), 100)

    class Interrupted(MockTime):
        def wait_for_lock(self, lock: threading.Lock, timeout_ms: int) -> bool:
            made.available += 100
            made._grant()
            raise KeyboardInterrupt

    claim = Claim()
    with pytest.raises(KeyboardInterrupt):
        run(made.allocate(claim, 10, time.timer(1000)), Interrupted())
    assert made.available == 90
    assert claim.held == 10
    made.give_back(claim)
    assert claim.held == 0
    assert made.available == 100
    assert made.waiting == 0


def test_closing_ends_the_wait() -> None:
    made, time = pool()
    assert made.try_allocate(Claim(), 100)
    made.close()
    with pytest.raises(ClientClosedError):
        run(made.allocate(Claim(), 10, time.timer(1000)), time)


def test_an_interrupt_at_any_moment_of_taking_and_giving_back_loses_no_byte_and_holds_up_nobody() -> None:
    made, time = pool()

    def take_and_give(claim: Claim) -> None:
        try:
            assert made.try_allocate(claim, 60)
            run(made.allocate(claim, 40, time.timer(0)), time)
        finally:
            if claim.held:
                made.give_back(claim)

    for moment in itertools.count(1):
        claim = Claim()
        try:
            interrupted_at(moment, take_and_give, claim)
        except KeyboardInterrupt:
            if claim.held:  # the second try, when it was the giving back that was interrupted
                made.give_back(claim)
            assert made.available == 100
            assert made.waiting == 0
            continue
        break
    assert moment > 10
