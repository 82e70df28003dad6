"""Both Pollers report the same events and wakes, over real sockets."""

from __future__ import annotations

import itertools
import re
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.accel.pollers import BODIES, BOTH, LONG_MS, Ends, elapsed_ms, native, pair, tcp
from harness.leaks import nothing_left_behind
from harness.network.listener import reset
from harness.waiting import wait_until
from kclient._accel.shared.readiness import EVENT_READ, EVENT_WRITE

# Events.


def test_the_data_of_a_socket_comes_with_the_events_that_were_asked_for(poller: Any, ends: Ends) -> None:
    ours, theirs = ends
    data = object()
    poller.register(ours, BOTH, data)
    assert poller.poll(0) == [(data, EVENT_WRITE)]
    theirs.send(b"x")
    assert poller.poll(LONG_MS) == [(data, BOTH)]
    poller.modify(ours, EVENT_READ, "other")
    assert poller.poll(-1) == [("other", EVENT_READ)]
    ours.recv(10)
    assert poller.poll(0) == []
    theirs.send(b"x")
    poller.unregister(ours)
    assert poller.poll(0) == []
    poller.register(ours, EVENT_READ, None)
    assert poller.poll(0) == [(None, EVENT_READ)]


@pytest.mark.parametrize("asked", [EVENT_READ, EVENT_WRITE, BOTH])
def test_a_peer_that_is_gone_is_reported_as_what_is_asked_for(poller: Any, asked: int) -> None:
    ours, theirs = tcp()
    with ours:
        poller.register(ours, asked, 1)
        reset(theirs)
        wait_until(lambda: poller.poll(100) == [(1, asked)])
        poller.unregister(ours)


def test_a_connection_that_is_refused_is_an_event(poller: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
    with socket.socket() as ours:
        ours.setblocking(False)
        ours.connect_ex(address)
        poller.register(ours, EVENT_WRITE, "refused")
        assert poller.poll(LONG_MS) == [("refused", EVENT_WRITE)]


def test_a_poll_without_events_lasts_its_time(poller: Any, ends: Ends) -> None:
    poller.register(ends[0], EVENT_READ, 0)
    assert 45 <= elapsed_ms(lambda: poller.poll(50)) < 20_000
    assert elapsed_ms(lambda: poller.poll(0)) < 1000


def test_more_sockets_than_one_poll_reports_are_all_reported_in_the_end(poller: Any) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        with ExitStack() as opened:
            for number in range(700):
                ours, theirs = pair()
                opened.enter_context(ours)
                opened.enter_context(theirs)
                poller.register(ours, EVENT_READ, number)
                theirs.send(b"x")
            seen: set[int] = set()
            for _ in range(10):
                seen |= {number for number, _ in poller.poll(0)}
            assert seen == set(range(700))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_pollers_know_nothing_of_each_other(make: Callable[[], Any], ends: Ends) -> None:
    ours, theirs = ends
    first, second, third = make(), make(), make()
    first.register(ours, EVENT_READ, 1)
    second.register(ours, EVENT_WRITE, 2)
    third.wake()
    theirs.send(b"x")
    assert (first.poll(LONG_MS), second.poll(LONG_MS), third.poll(LONG_MS)) == (
        [(1, EVENT_READ)],
        [(2, EVENT_WRITE)],
        [],
    )
    second.close()
    assert first.poll(0) == [(1, EVENT_READ)]


def test_misuse_is_refused_by_name(poller: Any, ends: Ends) -> None:
    ours, theirs = ends
    fd = ours.fileno()
    for events in (0, 4, -1):
        with pytest.raises(ValueError, match=f"invalid events: {events}"):
            poller.register(ours, events, None)
    with pytest.raises(KeyError, match=f"file descriptor {fd} is not watched"):
        poller.unregister(ours)
    with pytest.raises(KeyError, match=f"file descriptor {fd} is not watched"):
        poller.modify(ours, EVENT_READ, None)
    poller.register(ours, EVENT_READ, None)
    with pytest.raises(KeyError, match=f"file descriptor {fd} is watched already"):
        poller.register(ours, EVENT_WRITE, None)
    theirs.close()
    with pytest.raises(ValueError, match="invalid file descriptor: -1"):
        poller.register(theirs, EVENT_READ, None)


def test_what_is_closed_takes_no_more_calls_and_leaves_the_sockets_open(poller: Any, ends: Ends) -> None:
    ours, theirs = ends
    poller.register(ours, EVENT_READ, None)
    poller.close()
    poller.close()
    poller.wake()
    for call in (lambda: poller.poll(0), lambda: poller.register(ours, EVENT_READ, None)):
        with pytest.raises(ValueError, match="the poller is closed"):
            call()
    theirs.send(b"open")
    assert ours.recv(10) == b"open"


# Waking.


def test_a_wake_of_another_thread_ends_a_poll_and_one_before_it_shortens_it(poller: Any, ends: Ends) -> None:
    poller.register(ends[0], EVENT_READ, None)
    waker = threading.Thread(target=lambda: (wait_until(lambda: poller.polling), poller.wake()))
    waker.start()
    assert elapsed_ms(lambda: poller.poll(LONG_MS)) < 30_000
    waker.join()
    assert not poller.polling
    for _ in range(100_000):
        poller.wake()
    assert poller.poll(LONG_MS) == []
    assert elapsed_ms(lambda: poller.poll(50)) >= 45  # they counted as one, and nothing of them is left


def test_a_wake_does_not_hide_events(poller: Any, ends: Ends) -> None:
    ours, theirs = ends
    poller.register(ours, EVENT_READ, 1)
    theirs.send(b"x")
    poller.wake()
    assert poller.poll(LONG_MS) == [(1, EVENT_READ)]
    assert poller.poll(0) == [(1, EVENT_READ)]


def test_no_wake_is_lost_between_threads(poller: Any) -> None:
    rounds = 3000
    seen = threading.Semaphore(0)
    published = [0, 0]

    def wake(own: int) -> None:
        for _ in range(rounds):
            published[own] += 1
            poller.wake()
            assert seen.acquire(timeout=20)

    wakers = [threading.Thread(target=wake, args=(own,)) for own in range(2)]
    for waker in wakers:
        waker.start()
    taken = 0
    while taken < 2 * rounds:
        poller.poll(20_000)
        while taken < sum(published):
            taken += 1
            seen.release()
    for waker in wakers:
        waker.join()


@pytest.fixture
def on_alarm() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Sets what the next SIGALRMs do, and lets them come every 20 ms."""
    before = signal.getsignal(signal.SIGALRM)

    def on(action: Callable[[], object]) -> None:
        signal.signal(signal.SIGALRM, lambda *_: action())
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)

    yield on
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


Alarm = Callable[[Callable[[], object]], None]


def test_a_signal_whose_handler_returns_does_not_end_a_poll(poller: Any, ends: Ends, on_alarm: Alarm) -> None:
    calls = itertools.count()
    poller.register(ends[0], EVENT_READ, None)
    on_alarm(lambda: next(calls))
    assert 145 <= elapsed_ms(lambda: poller.poll(150)) < 20_000
    assert next(calls) > 1


def test_a_signal_handler_may_wake_a_poll(poller: Any, on_alarm: Alarm) -> None:
    on_alarm(poller.wake)
    assert elapsed_ms(lambda: poller.poll(LONG_MS)) < 30_000


def test_what_a_signal_handler_raises_ends_a_poll_which_can_go_on(
    poller: Any, ends: Ends, on_alarm: Alarm
) -> None:
    ours, theirs = ends
    poller.register(ours, EVENT_READ, 1)

    def interrupt() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt

    on_alarm(interrupt)
    with pytest.raises(KeyboardInterrupt):
        poller.poll(-1)
    assert not poller.polling
    theirs.send(b"x")
    assert poller.poll(LONG_MS) == [(1, EVENT_READ)]


def test_a_signal_handler_may_close_the_poller(poller: Any, on_alarm: Alarm) -> None:
    def close() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        poller.wake()

    on_alarm(close)
    poller.poll(-1)
    poller.close()


# Both at once.

OPERATION = st.one_of(
    st.tuples(
        st.sampled_from(["register", "modify"]), st.integers(0, 2), st.integers(-1, 4), st.integers(0, 9)
    ),
    st.tuples(st.sampled_from(["unregister", "peer shuts down", "peer closes", "fill"]), st.integers(0, 2)),
    st.tuples(st.just("close"), st.integers(0, 2)),
    st.tuples(st.sampled_from(["send", "peer sends", "read"]), st.integers(0, 2), st.integers(0, 300)),
    st.tuples(st.sampled_from(["poll", "wake", "poll", "poll"])),
)


class Script:
    """Runs operations on three pairs of sockets of one body, and writes down what came of each."""

    def __init__(self, body: Any) -> None:
        self.body = body
        self.poller = body()
        self.pairs = [pair() for _ in range(3)]

    def run(self, operation: tuple[Any, ...]) -> Any:
        fds = {ours.fileno(): index for index, (ours, _) in enumerate(self.pairs)}
        try:
            return self._run(*operation)
        except (OSError, EOFError, KeyError, ValueError) as error:
            text = re.sub(r"descriptor (\d+)", lambda found: f"socket {fds[int(found[1])]}", str(error))
            return type(error), getattr(error, "errno", None), text

    def _run(self, name: str, *arguments: Any) -> Any:
        if name == "poll":
            return sorted(self.poller.poll(0))
        if name == "wake":
            return self.poller.wake()
        ours, theirs = self.pairs[arguments[0]]
        if name in {"register", "modify"}:
            return getattr(self.poller, name)(ours, *arguments[1:])
        if name == "unregister":
            return self.poller.unregister(ours)
        if name == "peer shuts down":
            return theirs.shutdown(socket.SHUT_WR)
        if name == "peer closes":
            return theirs.close()
        if name == "peer sends":
            return theirs.send(bytes(arguments[1]))
        if name == "fill":
            return [self.body.send(ours, [bytes(100_000)] * 5), self.body.send(ours, [b"x"])]
        if name == "send":
            return self.body.send(ours, [bytes(10)] * arguments[1])
        if name == "read":
            buffer = bytearray(arguments[1])
            return self.body.recv_into(ours, buffer), bytes(buffer)
        try:
            self.poller.unregister(ours)
        finally:
            ours.close()
        return None

    def close(self) -> None:
        self.poller.close()
        for ours, theirs in self.pairs:
            ours.close()
            theirs.close()


@settings(max_examples=150)
@given(st.lists(OPERATION, max_size=40))
def test_any_script_of_calls_goes_the_same_way(operations: list[tuple[Any, ...]]) -> None:
    scripts = [Script(body) for body in BODIES.values()]
    try:
        for operation in operations:
            python, c = (script.run(operation) for script in scripts)
            assert python == c, operation
    finally:
        for script in scripts:
            script.close()


# What only the native one promises.


def test_the_native_one_keeps_the_interpreter_unless_it_has_to_wait(ends: Ends) -> None:
    ours, theirs = ends
    poller = native.Poller()
    poller.register(theirs, EVENT_READ, 1)
    turns = 0
    stop = False

    def spin() -> None:
        nonlocal turns
        while not stop:
            turns += 1

    spinner = threading.Thread(target=spin)
    before = sys.getswitchinterval()
    spinner.start()
    wait_until(lambda: turns)
    sys.setswitchinterval(60.0)
    try:
        seen = turns
        buffer = bytearray(100)
        for _ in range(100):
            assert native.Poller.send(ours, [b"x", b"y"]) == 2
            assert poller.poll(LONG_MS) == [(1, EVENT_READ)]
            assert native.Poller.recv_into(theirs, buffer) == 2
            assert native.Poller.recv_into(theirs, buffer) == 0
            assert poller.poll(0) == []
            poller.wake()
            assert poller.poll(LONG_MS) == []
        assert turns == seen
    finally:
        stop = True
        sys.setswitchinterval(before)
        spinner.join()
        poller.close()


def test_the_native_one_leaks_neither_memory_nor_descriptors(ends: Ends) -> None:
    ours, theirs = ends
    data = object()
    held = bytearray(10)
    counts = sys.getrefcount(data), sys.getrefcount(held), sys.getrefcount(ours)
    with nothing_left_behind():
        for _ in range(200):
            poller = native.Poller()
            poller.register(ours, BOTH, data)
            poller.modify(ours, EVENT_WRITE, data)
            assert poller.poll(0) == [(data, EVENT_WRITE)]
            native.Poller.send(ours, [held] * 40)
            with pytest.raises(TypeError):
                native.Poller.send(ours, [held, None])
            theirs.recv(1000)
            del poller
    assert (sys.getrefcount(data), sys.getrefcount(held), sys.getrefcount(ours)) == counts
