"""Entry: who may send and wait, by the locks that the calling thread is in."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from harness.mock_time import MockTime
from kclient.errors import IllegalStateError
from kclient.metrics import Sensor
from kclient.producer.internals.buffer_pool import BufferPool
from kclient.producer.internals.entry import Entry
from kclient.producer.internals.incomplete import IncompleteBatches


class Rig:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.pool = BufferPool(1000, Sensor(MockTime()), lambda: None)
        self.incomplete = IncompleteBatches()
        self.entry = Entry(self.lock, self.pool, self.incomplete)

    def locks(self) -> list[threading.RLock]:
        return [self.lock, self.pool.lock, self.incomplete.lock]


def refused(check: Callable[[], None]) -> bool:
    try:
        check()
    except IllegalStateError:
        return True
    return False


def test_outside_of_every_step_both_are_allowed() -> None:
    rig = Rig()
    rig.entry.check_send()
    rig.entry.check_wait()


@pytest.mark.parametrize("number", range(3))
def test_who_interrupts_the_holder_of_a_lock_may_neither_send_nor_wait(number: int) -> None:
    rig = Rig()
    with rig.locks()[number]:
        for check in (rig.entry.check_send, rig.entry.check_wait):
            with pytest.raises(IllegalStateError, match="The producer"):
                check()
    rig.entry.check_send()
    rig.entry.check_wait()


@pytest.mark.parametrize("number", range(3))
def test_a_lock_that_another_thread_holds_keeps_nobody_out(number: int) -> None:
    rig = Rig()
    found: list[bool] = []
    with rig.locks()[number]:
        thread = threading.Thread(target=lambda: found.extend([refused(rig.entry.check_send)]))
        thread.start()
        thread.join(10)
    assert found == [False]
