"""Connections that come: the processor that each is dealt to, those that are refused, and faults in between."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from harness.broker.servers import ended
from harness.leaks import nothing_left_behind
from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.broker.config import BrokerConfig
from kclient.broker.network.acceptor import Acceptor
from kclient.broker.network.connection_quotas import ConnectionLimits, ConnectionQuotas
from kclient.broker.network.processor import Processor
from kclient.broker.quota.connection_rates import ConnectionRates
from kclient.utils.log_context import LogContext

HOST = "127.0.0.1"


class Taker:
    """The end of a processor that the acceptor knows."""

    def __init__(self) -> None:
        self.taken: list[tuple[socket.socket, str]] = []

    def accept(self, sock: socket.socket, host: str) -> None:
        self.taken.append((sock, host))


class Unsettable(socket.socket):
    """A connection whose options cannot be set any more."""

    def setsockopt(self, *_: Any) -> None:
        raise OSError(errno.EINVAL, "gone")


class FaultyListener(socket.socket):
    """A listener at which `faults` come first, and whose connections are `made` of a class."""

    faults: list[int]
    made: type[socket.socket] = socket.socket

    def accept(self) -> tuple[socket.socket, Any]:
        if self.faults:
            raise OSError(self.faults.pop(0), "a fault")
        sock, address = super().accept()
        return self.made(fileno=sock.detach()), address


class Accepting:
    """An acceptor, and takers in the place of its processors."""

    def __init__(
        self,
        stack: ExitStack,
        *,
        takers: int = 1,
        most: int = 100,
        per_address: int = 100,
        time: MockTime | None = None,
        **settings: int,
    ) -> None:
        changes = {name.replace("_", "."): value for name, value in settings.items()}
        self.takers = [Taker() for _ in range(takers)]
        self.quotas = ConnectionQuotas(ConnectionLimits(most, per_address))
        self.listener = stack.enter_context(FaultyListener())
        self.listener.faults = []
        self.listener.bind((HOST, 0))
        self.listener.listen()
        config = BrokerConfig.parse({"log.dirs": "/nowhere", **changes})
        clock = MockTime() if time is None else time
        self.rates = ConnectionRates.of(config, clock, LogContext())
        self.acceptor = Acceptor(
            "PLAINTEXT-0",
            self.listener,
            config,
            cast("list[Processor]", self.takers),
            self.quotas,
            self.rates,
            0,
            clock,
            LogContext(),
        )
        stack.callback(self._close)
        stack.callback(self.acceptor.shutdown)
        self._stack = stack

    def connect(self) -> socket.socket:
        address = self.listener.getsockname()
        return self._stack.enter_context(socket.create_connection(address, 10))

    def wait_for(self, count: int) -> None:
        wait_until(lambda: sum(len(taker.taken) for taker in self.takers) == count)

    def _close(self) -> None:
        for taker in self.takers:
            for sock, _ in taker.taken:
                sock.close()


@pytest.fixture
def make() -> Iterator[Callable[..., Accepting]]:
    with ExitStack() as stack:
        yield lambda **settings: Accepting(stack, **settings)


def test_processors_get_connections_in_turn(make: Callable[..., Accepting]) -> None:
    made = make(takers=3)
    made.acceptor.start()
    for number in range(7):
        made.connect()
        made.wait_for(number + 1)
    assert [len(taker.taken) for taker in made.takers] == [3, 2, 2]
    assert made.quotas.total == 7


def test_a_connection_comes_with_its_address(make: Callable[..., Accepting]) -> None:
    made = make()
    made.acceptor.start()
    made.connect()
    made.wait_for(1)
    assert [host for _, host in made.takers[0].taken] == [HOST]


def test_connections_that_wait_before_the_start_are_taken_with_it(make: Callable[..., Accepting]) -> None:
    made = make()
    for _ in range(70):  # more than are taken from a listener in one go
        made.connect()
    made.acceptor.start()
    made.wait_for(70)


def test_a_refused_connection_is_closed_and_warned_of_once(
    make: Callable[..., Accepting], caplog: pytest.LogCaptureFixture
) -> None:
    made = make(per_address=1)
    made.acceptor.start()
    made.connect()
    made.wait_for(1)
    assert all(ended(made.connect()) for _ in range(3))
    assert made.quotas.total == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"Refused a connection from {HOST}: max.connections.per.ip is reached"
    ]


def test_a_connection_above_all_limits_waits_until_another_one_ends(make: Callable[..., Accepting]) -> None:
    made = make(most=1)
    made.acceptor.start()
    made.connect()
    made.wait_for(1)
    second = made.connect()
    second.settimeout(0.2)
    with pytest.raises(TimeoutError):
        second.recv(1)
    assert len(made.takers[0].taken) == 1
    made.quotas.release(HOST, 0)
    made.wait_for(2)


def test_an_acceptor_stops_while_it_waits_for_a_place(make: Callable[..., Accepting]) -> None:
    made = make(most=0)
    made.acceptor.start()
    client = made.connect()
    made.acceptor.shutdown()
    assert ended(client)
    assert made.quotas.total == 0


def test_without_descriptors_a_connection_waits_until_there_are_some(
    make: Callable[..., Accepting], caplog: pytest.LogCaptureFixture
) -> None:
    made = make(time=MockTime(auto_tick_ms=60_000))  # so that the second warning is no repetition
    made.listener.faults = [errno.EMFILE, errno.ENFILE]
    made.connect()
    made.acceptor.start()
    made.wait_for(1)
    assert caplog.text.count("Connections cannot be accepted") == 2


def test_a_peer_that_gave_up_before_its_turn_keeps_no_other_waiting(
    make: Callable[..., Accepting], caplog: pytest.LogCaptureFixture
) -> None:
    made = make()
    made.listener.faults = [errno.ECONNABORTED, errno.ECONNABORTED]
    made.connect()
    made.acceptor.start()
    made.wait_for(1)
    assert caplog.text == ""


def test_a_connection_that_breaks_while_it_is_set_up_gives_its_place_back(
    make: Callable[..., Accepting],
) -> None:
    made = make(socket_send_buffer_bytes=20_000)
    made.listener.made = Unsettable
    made.acceptor.start()
    assert ended(made.connect())
    assert made.quotas.total == 0
    assert made.takers[0].taken == []


def test_buffers_have_the_sizes_of_the_settings(make: Callable[..., Accepting]) -> None:
    made = make(socket_send_buffer_bytes=20_000, socket_receive_buffer_bytes=30_000)
    made.acceptor.start()
    made.connect()
    made.wait_for(1)
    sock = made.takers[0].taken[0][0]
    # Linux counts its own bookkeeping and doubles what it is asked for.
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in {20_000, 40_000}
    assert made.listener.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in {30_000, 60_000}


@pytest.mark.parametrize("started", [True, False])
def test_after_a_shutdown_nobody_listens_and_nothing_is_left(started: bool) -> None:
    with nothing_left_behind(), ExitStack() as stack:
        made = Accepting(stack)
        addresses = [made.listener.getsockname()]
        if started:
            made.acceptor.start()
        made.acceptor.shutdown()
        for address in addresses:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address, 10)
        made.acceptor.shutdown()


def test_connections_that_come_too_fast_wait_to_be_accepted(make: Callable[..., Accepting]) -> None:
    made = make(max_connection_creation_rate=1, quota_window_num=2)
    made.acceptor.start()
    began = time.monotonic()
    for _ in range(2):
        made.connect()
    made.wait_for(2)
    assert time.monotonic() - began > 0.9


def test_an_acceptor_stops_while_it_lets_connections_wait(make: Callable[..., Accepting]) -> None:
    clock = MockTime()
    made = make(max_connection_creation_rate=1, quota_window_num=2, quota_window_size_seconds=600, time=clock)
    made.acceptor.start()
    for _ in range(1000):
        made.rates.record(0)
    client = made.connect()
    made.acceptor.shutdown()
    assert ended(client)
    assert made.quotas.total == 0


def test_a_connection_from_an_address_above_its_quota_is_closed_after_a_while(
    make: Callable[..., Accepting],
) -> None:
    made = make(quota_window_num=2)
    made.rates.update({frozenset({("ip", HOST)}): {"connection_creation_rate": 1.0}})
    made.acceptor.start()
    made.connect()
    made.wait_for(1)
    second = made.connect()
    second.settimeout(0.2)
    with pytest.raises(TimeoutError):
        second.recv(1)
    assert made.quotas.total == 1
    made.acceptor.shutdown()
    second.settimeout(10)
    assert ended(second)
