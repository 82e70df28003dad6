"""One thread and its connections, without a server: what is handed on, and what the end of it leaves behind."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.broker.servers import ended, frame, read_frame, security_of
from harness.waiting import wait_until
from kclient.broker.config import BrokerConfig
from kclient.broker.network.connection_quotas import ConnectionLimits, ConnectionQuotas
from kclient.broker.network.processor import Processor
from kclient.broker.network.request_channel import Request, RequestChannel, Response, ResponseAction
from kclient.broker.network.request_memory import RequestMemory
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME

HOST, LISTENER = "127.0.0.1", 3


class Processing:
    """A processor, and the ends of connections to it."""

    def __init__(self, stack: ExitStack, *, capacity: int = 10) -> None:
        config = BrokerConfig.parse({"log.dirs": "/nowhere", "socket.request.max.bytes": 1 << 20})
        self.requests = RequestChannel(capacity)
        self.memory = RequestMemory(1 << 20)
        self.quotas = ConnectionQuotas(ConnectionLimits())
        (listener,) = config.listeners_with_security()
        self.processor = Processor(
            7,
            LISTENER,
            security_of(config, listener),
            config,
            self.requests,
            self.memory,
            self.quotas,
            SYSTEM_TIME,
            LogContext(),
        )
        stack.callback(self.processor.shutdown)
        self._stack = stack

    def connect(self) -> socket.socket:
        """A connection that the processor takes over."""
        with socket.create_server((HOST, 0)) as listening:
            near = self._stack.enter_context(socket.create_connection(listening.getsockname(), 10))
            far, _ = listening.accept()
        far.setblocking(False)
        assert self.quotas.take_place(LISTENER, lambda: False)
        assert self.quotas.admit(HOST) is None
        self.processor.accept(far, HOST)
        return near

    def take(self) -> Request:
        request = self.requests.take()
        assert request is not None
        return request


@pytest.fixture
def make() -> Iterator[Callable[..., Processing]]:
    with ExitStack() as stack:
        yield lambda **settings: Processing(stack, **settings)


@pytest.fixture
def running(make: Callable[..., Processing]) -> Processing:
    made = make()
    made.processor.start()
    return made


def answered(request: Request, body: bytes) -> None:
    request.reply(Response(request.connection_id, ResponseAction.SEND, [frame(body)]))


def test_a_request_says_where_it_came_from_and_each_connection_has_its_own_name(running: Processing) -> None:
    requests = []
    for _ in range(2):
        running.connect().sendall(frame(b"x"))
        requests.append(running.take())
    assert [(request.client_host, request.listener) for request in requests] == [(HOST, LISTENER)] * 2
    assert [request.connection_id for request in requests] == ["7-0", "7-1"]


def test_the_memory_of_a_request_is_held_until_it_is_answered(running: Processing) -> None:
    sock = running.connect()
    sock.sendall(frame(b"x" * 1000))
    request = running.take()
    assert running.memory.held >= 1000
    answered(request, bytes(32 << 20))  # more than can be written before somebody reads it
    wait_until(lambda: running.memory.held == 0)


@pytest.mark.parametrize("sent", [frame(b"x" * 1000)[:-1], frame(b"x" * 1000)], ids=["in part", "whole"])
def test_a_connection_that_goes_away_gives_back_its_memory_and_its_place(
    running: Processing, sent: bytes
) -> None:
    sock = running.connect()
    sock.sendall(sent)
    wait_until(lambda: running.memory.held > 0)
    sock.close()
    if len(sent) > 1003:
        answered(running.take(), b"nobody reads this")
    wait_until(lambda: (running.memory.held, running.quotas.total) == (0, 0))


def test_the_threads_time_for_a_request_is_told_once_its_answer_has_left(running: Processing) -> None:
    told: list[int] = []
    running.processor.measure_time(True)
    sock = running.connect()
    for number in range(2):
        sock.sendall(frame(b"x"))
        request = running.take()
        request.record.charge_network_ns = told.append
        answered(request, b"y")
        assert read_frame(sock) == b"y"
        wait_until(lambda number=number: len(told) == number + 1)
    assert min(told) > 0
    sock.close()
    wait_until(lambda: running.quotas.total == 0)
    assert running.processor._selector.busy_ns == {}
    running.processor.measure_time(False)
    running.connect().sendall(frame(b"x"))
    request = running.take()
    request.record.charge_network_ns = told.append
    answered(request, b"y")
    wait_until(lambda: len(told) == 3)
    assert told[2] == 0


def test_connections_above_the_limit_end_with_the_least_recently_used(running: Processing) -> None:
    old, middle, used = (running.connect() for _ in range(3))
    for sock in (old, middle, used, old):
        sock.sendall(frame(b"x"))
        answered(running.take(), b"y")
        assert read_frame(sock) == b"y"
    running.quotas.set_limits(ConnectionLimits(1))
    used.settimeout(10)
    assert [ended(sock) for sock in (middle, used)] == [True, True]
    old.sendall(frame(b"x"))
    answered(running.take(), b"still there")
    assert read_frame(old) == b"still there"
    assert running.quotas.total == 1


def test_an_unexpected_error_is_logged_and_ends_nothing(
    running: Processing, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usual, faults = Processor._end_stalled, [RuntimeError("a fault of ours")]

    def faulty(self: Any) -> None:
        if faults:
            raise faults.pop()
        usual(self)

    monkeypatch.setattr(Processor, "_end_stalled", faulty)
    sock = running.connect()
    sock.sendall(frame(b"x"))
    answered(running.take(), b"y")
    assert read_frame(sock) == b"y"
    assert "a fault of ours" in caplog.text


class TestTheEnd:
    def test_what_is_ready_is_written_before_connections_are_closed(
        self, make: Callable[..., Processing]
    ) -> None:
        made = make()
        sock = made.connect()
        sock.sendall(frame(b"x"))

        def has_come() -> bool:
            made.processor._step(10)
            return len(made.requests) > 0

        wait_until(has_come)
        answered(made.take(), b"y" * 100_000)
        made.processor.begin_shutdown()
        made.processor.start()  # and has nothing left to do but to end
        assert read_frame(sock) == b"y" * 100_000
        assert ended(sock)
        wait_until(lambda: made.quotas.total == 0)

    def test_a_queue_without_room_does_not_hold_it_up(self, make: Callable[..., Processing]) -> None:
        made = make(capacity=1)
        made.processor.start()
        socks = [made.connect() for _ in range(3)]
        for sock in socks:
            sock.sendall(frame(b"x"))
        wait_until(lambda: made.memory.held > 0)
        made.processor.shutdown()
        assert all(ended(sock) for sock in socks)
        assert (made.quotas.total, made.memory.held) == (0, 0)

    def test_a_processor_that_never_ran_closes_what_it_was_given(
        self, make: Callable[..., Processing]
    ) -> None:
        made = make()
        sock = made.connect()
        made.processor.shutdown()
        assert ended(sock)
        assert made.quotas.total == 0
        made.processor.shutdown()
