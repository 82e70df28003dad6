"""Sockets are closed when their time has come, and there are never too many."""

from __future__ import annotations

import socket

from harness.mock_time import MockTime
from kclient.broker.network.delayed_closes import DelayedCloses


def is_open(sock: socket.socket) -> bool:
    return sock.fileno() >= 0


def test_sockets_are_closed_in_the_order_of_their_times() -> None:
    time = MockTime()
    closes = DelayedCloses(time)
    assert closes.timeout_s() is None
    slow, quick = socket.socketpair()
    closes.add(slow, 200)
    closes.add(quick, 100)
    assert closes.timeout_s() == 0.1
    closes.close_due()
    assert is_open(quick)
    time.advance(100)
    closes.close_due()
    assert (is_open(quick), is_open(slow)) == (False, True)
    closes.close()
    assert not is_open(slow)


def test_one_too_many_is_closed_at_once() -> None:
    closes = DelayedCloses(MockTime(), most=1)
    first, second = socket.socketpair()
    closes.add(first, 100)
    closes.add(second, 100)
    assert (is_open(first), is_open(second)) == (True, False)
    closes.close()
