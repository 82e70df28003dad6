"""Wakeups: each ends one wait, whenever it comes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kclient.consumer.internals.wakeup import WakeupTrigger
from kclient.errors import WakeupError
from kclient.utils.futures import CompletableFuture


class Trigger(WakeupTrigger):
    """With an I/O thread whose turn the test takes."""

    def __init__(self) -> None:
        self.notified = 0
        self.io_thread: list[Callable[[], None]] = []
        super().__init__(self.notify, self.io_thread.append)

    def notify(self) -> None:
        self.notified += 1

    def run_io_thread(self) -> None:
        while self.io_thread:
            self.io_thread.pop(0)()


def test_a_wakeup_fails_what_is_waited_for_and_notifies_who_looks() -> None:
    trigger, future = Trigger(), CompletableFuture[int]()
    trigger.begin_wait(future)
    trigger.wakeup()
    trigger.run_io_thread()
    assert isinstance(future.exception(0), WakeupError)
    assert trigger.notified == 1
    trigger.end_wait()
    trigger.raise_if_pending()


def test_a_wakeup_before_the_wait_is_raised_by_it_once() -> None:
    trigger, future = Trigger(), CompletableFuture[int]()
    trigger.wakeup()
    trigger.run_io_thread()
    with pytest.raises(WakeupError):
        trigger.begin_wait(future)
    trigger.begin_wait(future)
    assert not future.done()


def test_a_wakeup_after_the_wait_is_for_the_next_one() -> None:
    trigger, future = Trigger(), CompletableFuture[int]()
    trigger.begin_wait(future)
    trigger.end_wait()
    trigger.wakeup()
    trigger.run_io_thread()
    assert not future.done()
    with pytest.raises(WakeupError):
        trigger.raise_if_pending()


def test_a_consumer_that_closes_is_not_woken() -> None:
    trigger, future = Trigger(), CompletableFuture[int]()
    trigger.closing = True
    trigger.wakeup()
    trigger.begin_wait(future)
    trigger.run_io_thread()
    trigger.raise_if_pending()
    assert not future.done()
