"""Queue of requests: its order, its bound, and the end that handlers are told."""

from __future__ import annotations

import threading

from harness.waiting import wait_until
from kclient.broker.network.request_channel import Request, RequestChannel, Response
from kclient.broker.security.principal import ANONYMOUS

SHORT_S = 0.01
LONG_S = 10.0


def request(name: str) -> Request:
    def reply(_: Response) -> None:
        raise AssertionError("nobody handles it")

    return Request(name, "127.0.0.1", 0, ANONYMOUS, memoryview(b""), reply)


def test_requests_are_taken_in_the_order_in_which_they_came() -> None:
    channel = RequestChannel(3)
    given = [request(name) for name in "abc"]
    assert all(channel.put(each, SHORT_S) for each in given)
    assert [channel.take() for _ in given] == given


def test_a_request_without_a_place_is_not_queued() -> None:
    channel = RequestChannel(2)
    first, second, refused, later = (request(name) for name in "abcd")
    assert [channel.put(each, SHORT_S) for each in (first, second, refused)] == [True, True, False]
    assert channel.take() is first
    assert channel.put(later, 0)
    assert [channel.take(), channel.take()] == [second, later]


def test_a_place_is_free_again_as_soon_as_a_handler_takes_the_request() -> None:
    channel = RequestChannel(1)
    for _ in range(5):
        assert channel.put(request("a"), 0)
        channel.take()


def test_who_waits_for_a_place_gets_the_next_one() -> None:
    channel = RequestChannel(1)
    first, second = request("a"), request("b")
    channel.put(first, 0)
    put: list[bool] = []
    waiting = threading.Thread(target=lambda: put.append(channel.put(second, LONG_S)))
    waiting.start()
    assert channel.take() is first
    assert channel.take() is second
    waiting.join()
    assert put == [True]


def test_each_handler_is_told_to_end_once_behind_the_requests_that_are_left() -> None:
    channel = RequestChannel(2)
    left = request("a")
    channel.put(left, 0)
    channel.end_handlers(2)
    assert [channel.take() for _ in range(3)] == [left, None, None]


def test_the_end_of_handlers_takes_no_place_and_frees_none() -> None:
    channel = RequestChannel(1)
    channel.put(request("a"), 0)
    channel.end_handlers(3)  # does not wait, though the queue is full
    channel.take()
    assert [channel.take() for _ in range(3)] == [None] * 3
    assert [channel.put(request("b"), 0) for _ in range(2)] == [True, False]


def test_a_handler_that_waits_is_woken_by_the_end() -> None:
    channel = RequestChannel(1)
    taken: list[Request | None] = []
    handler = threading.Thread(target=lambda: taken.append(channel.take()))
    handler.start()
    channel.end_handlers(1)
    wait_until(lambda: taken == [None])
    handler.join()
