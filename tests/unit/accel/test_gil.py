"""The pure body's hand-over: who is given way, for how long and how often."""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from harness.waiting import wait_until
from kclient._accel.reference import gil
from kclient._accel.reference.poller import Poller
from kclient._accel.shared.readiness import EVENT_READ


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gil, "_known", ())
    monkeypatch.setattr(gil, "_next_ns", 0)


class Waiting:
    def __init__(self, wants: bool) -> None:
        self.wants = wants
        self.asked = 0

    def give_way(self) -> bool:
        self.asked += 1
        return self.wants


def test_one_thread_is_given_way_at_once_and_the_next_one_only_after_an_interval() -> None:
    content, first, second = Waiting(False), Waiting(True), Waiting(True)
    for each in (content, first, second):
        gil.enter(each)
    gil.yield_gil()
    assert (content.asked, first.asked, second.asked) == (1, 1, 0)
    gil._next_ns = time.monotonic_ns() + 10**12
    gil.yield_gil()
    assert content.asked == 1


def test_who_wants_nothing_is_asked_again_only_after_an_interval() -> None:
    content = Waiting(False)
    gil.enter(content)
    before_ns = time.monotonic_ns()
    gil.yield_gil()
    assert content.asked == 1
    assert gil._next_ns > before_ns
    gil._next_ns = time.monotonic_ns()
    gil.yield_gil()
    assert content.asked == 2


def test_who_left_or_was_collected_is_not_asked() -> None:
    left, gone, stays = Waiting(False), Waiting(False), Waiting(False)
    for each in (left, gone, stays):
        gil.enter(each)
    gil.leave(left)
    gil.leave(left)
    del gone, each
    gc.collect()
    gil.yield_gil()
    assert (left.asked, stays.asked) == (0, 1)
    gil.enter(left)
    assert len(gil._known) == 2


def test_a_forked_child_gives_way_to_nobody() -> None:
    waiting = Waiting(True)
    gil.enter(waiting)
    with gil._lock:  # by another thread, as far as the child can tell
        child = os.fork()
        if child == 0:
            gil.yield_gil()
            gil.leave(waiting)
            os._exit(waiting.asked)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Rounds:
    """A thread that polls; each round's work is to wait until it may go on."""

    def __init__(self) -> None:
        self.poller = Poller()
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.poller.register(self.ours, EVENT_READ, None)
        self.rounds = 0
        self.go_on = threading.Event()
        self.go_on.set()
        self._stop = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop:
            if self.poller.poll(60_000):
                self.poller.recv_into(self.ours, bytearray(100))
            self.rounds += 1
            assert self.go_on.wait(20)

    def sleeping(self) -> None:
        wait_until(lambda: self.poller.polling)

    def close(self) -> None:
        self._stop = True
        self.go_on.set()
        self.poller.wake()
        self._thread.join()
        self.poller.close()
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def rounds() -> Iterator[Rounds]:
    made = Rounds()
    yield made
    made.close()


def one_round(rounds: Rounds) -> None:
    before = rounds.rounds
    rounds.theirs.send(b"x")
    wait_until(lambda: rounds.rounds > before)


def test_a_thread_that_has_not_polled_yet_or_sleeps_is_not_waited_for(rounds: Rounds) -> None:
    fresh = Poller()
    assert not fresh.give_way()
    fresh.close()
    one_round(rounds)
    rounds.sleeping()
    assert not rounds.poller.give_way()


def test_a_thread_at_work_is_waited_for_until_it_polls_again(
    rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gil, "GIVE_WAY_S", 20.0)
    rounds.go_on.clear()
    one_round(rounds)
    threading.Timer(0.05, rounds.go_on.set).start()
    started = time.monotonic()
    assert rounds.poller.give_way()
    assert 0.03 < time.monotonic() - started < 10


def test_a_thread_that_wants_something_else_is_waited_for_once_a_round(rounds: Rounds) -> None:
    rounds.go_on.clear()
    one_round(rounds)
    assert rounds.poller.give_way()
    assert not rounds.poller.give_way()
    rounds.go_on.set()
    rounds.sleeping()
    rounds.go_on.clear()
    one_round(rounds)
    assert rounds.poller.give_way()


def test_a_thread_whose_poll_has_events_is_about_to_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gil, "GIVE_WAY_S", 0.001)
    ours, theirs = socket.socketpair()
    poller = Poller()
    with ours, theirs:
        ours.setblocking(False)
        poller.register(ours, EVENT_READ, None)
        helper = threading.Thread(target=lambda: poller.poll(0))
        helper.start()
        helper.join()
        poller.polling = True  # as it stays while the thread waits for the interpreter
        assert not poller.give_way()
        theirs.send(b"x")
        assert poller.give_way()
        poller.close()


def test_a_thread_does_not_wait_for_itself() -> None:
    poller = Poller()
    poller.poll(0)
    assert not poller.give_way()
    poller.close()
