"""Handlers of requests: each request is handled once, and the end comes behind all that is queued."""

from __future__ import annotations

import threading

from harness.waiting import wait_until
from kclient.broker.network.request_channel import Request, RequestChannel, Response
from kclient.broker.request_handler import RequestHandlerPool
from kclient.broker.security.principal import ANONYMOUS

LONG_S = 10.0


def request(name: str) -> Request:
    def reply(_: Response) -> None:
        raise AssertionError("the pool answers nothing by itself")

    return Request(name, "127.0.0.1", 0, ANONYMOUS, memoryview(b""), reply)


def test_what_is_queued_is_handled_before_the_end() -> None:
    channel = RequestChannel(100)
    handled: list[Request] = []
    given = [request(str(number)) for number in range(50)]
    for each in given:
        channel.put(each, 0)
    pool = RequestHandlerPool(channel, handled.append, 1)
    pool.start()
    pool.shutdown()
    assert handled == given


def test_each_request_is_handled_once_by_one_of_many() -> None:
    channel = RequestChannel(100)
    handled: list[str] = []
    pool = RequestHandlerPool(channel, lambda each: handled.append(each.connection_id), 4)
    pool.start()
    for number in range(100):
        assert channel.put(request(str(number)), LONG_S)
    pool.shutdown()
    assert sorted(handled, key=int) == [str(number) for number in range(100)]


def test_as_many_requests_are_handled_at_once_as_there_are_handlers() -> None:
    channel = RequestChannel(3)
    together = threading.Barrier(3, timeout=LONG_S)

    def meet(_: Request) -> None:
        together.wait()

    pool = RequestHandlerPool(channel, meet, 3)
    for name in "abc":
        channel.put(request(name), 0)
    pool.start()
    pool.shutdown()
    assert not together.broken


def test_a_pool_that_was_never_started_or_is_shut_down_leaves_the_channel_alone() -> None:
    channel = RequestChannel(2)
    handled: list[Request] = []
    left = request("a")
    RequestHandlerPool(channel, handled.append, 2).shutdown()
    pool = RequestHandlerPool(channel, handled.append, 2)
    pool.start()
    pool.shutdown()
    pool.shutdown()
    channel.put(left, 0)
    assert channel.take() is left, "no end is in the queue for handlers that there are not"
    assert handled == []


def test_the_end_of_one_pool_waits_for_what_it_is_handling() -> None:
    channel = RequestChannel(1)
    begun, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def handle(each: Request) -> None:
        begun.set()
        assert go_on.wait(LONG_S)
        done.append(each.connection_id)

    pool = RequestHandlerPool(channel, handle, 1)
    pool.start()
    channel.put(request("slow"), 0)
    assert begun.wait(LONG_S)
    ending = threading.Thread(target=pool.shutdown)
    ending.start()
    assert done == []
    go_on.set()
    ending.join(LONG_S)
    assert done == ["slow"]


def test_a_pool_grows_and_shrinks_while_it_works() -> None:
    channel = RequestChannel(100)
    together = threading.Barrier(4, timeout=LONG_S)
    before = handlers_alive()  # of other tests' brokers
    pool = RequestHandlerPool(channel, lambda _: together.wait(), 2)
    pool.start()
    pool.resize(4)
    for number in range(4):
        channel.put(request(str(number)), LONG_S)
    wait_until(lambda: together.n_waiting == 0 and not together.broken)
    pool.resize(1)
    wait_until(lambda: handlers_alive() == before + 1)
    pool.shutdown()
    assert handlers_alive() == before
    assert not together.broken
    pool.resize(5)
    assert handlers_alive() == before


def handlers_alive() -> int:
    return sum(thread.name.startswith("request-handler-") for thread in threading.enumerate())


def test_a_request_goes_to_the_handler_that_began_to_wait_last() -> None:
    channel = RequestChannel(1)
    threads: list[int] = []
    pool = RequestHandlerPool(channel, lambda _: threads.append(threading.get_ident()), 4)
    pool.start()
    wait_until(lambda: channel.waiting_handlers == 4)
    for count in range(1, 21):
        assert channel.put(request(str(count)), LONG_S)
        wait_until(lambda: len(threads) == count and channel.waiting_handlers == 4)  # noqa: B023 - called at once
    pool.shutdown()
    assert len(set(threads)) == 1
