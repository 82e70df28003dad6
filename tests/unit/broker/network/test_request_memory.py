"""Memory of requests: of connections that send them in part, and of others meanwhile."""

from __future__ import annotations

import socket
import struct

import pytest

from harness.broker.servers import ServerHarness, echo, ended, frame, read_frame
from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.broker.network.request_channel import Request, Response, ResponseAction
from kclient.broker.network.request_memory import NEWCOMER_BYTES, ConnectionMemory, RequestMemory
from kclient.broker.network.socket_server import SocketServer

MIB = 1 << 20
LIMIT = 16 * MIB


class Asking:
    """A connection that notes when it is told that there is room."""

    def __init__(self, memory: RequestMemory, *, proven: bool = True) -> None:
        self.told = 0
        self.memory: ConnectionMemory = memory.connection(self._tell)
        if proven:
            self.memory.request_is_whole()

    def hold(self, size: int) -> bool:
        return self.memory.hold(size, size)

    def _tell(self) -> None:
        self.told += 1


def asking(memory: RequestMemory, count: int, *, proven: bool = True) -> list[Asking]:
    return [Asking(memory, proven=proven) for _ in range(count)]


def test_who_finds_no_room_is_told_when_there_is_some() -> None:
    memory = RequestMemory(1000)
    first, second, third = asking(memory, 3)
    assert first.hold(600)
    assert second.hold(500), "one may always be finished"
    assert not third.hold(500)
    assert memory.exhausted
    first.memory.release()
    assert third.told == 1
    assert third.hold(500), "it was given what it waited for"
    assert (memory.held, memory.exhausted) == (1000, False)


def test_requests_that_came_in_part_are_finished_one_after_another() -> None:
    memory = RequestMemory(1000)
    parts = asking(memory, 5)
    assert all(part.hold(200) for part in parts)
    assert [part.hold(900) for part in parts] == [True, False, False, False, False]
    for number, part in enumerate(parts):
        assert part.hold(900), f"request {number} had its turn"
        assert memory.held <= 1000 + 900
        part.memory.release()
    assert memory.held == 0


def test_one_that_is_gone_waits_no_more() -> None:
    memory = RequestMemory(100)
    finishing, first, second = asking(memory, 3)
    assert finishing.hold(1000)
    assert first.hold(100)
    assert not second.hold(50)
    for gone in (second, first, finishing):
        gone.memory.release()
    assert (second.told, memory.held, memory.exhausted) == (0, 0, False)


def test_large_requests_leave_room_for_small_ones() -> None:
    memory = RequestMemory(16 * MIB)
    assert all(large.hold(MIB) for large in asking(memory, 14))
    larger, another = asking(memory, 2)
    assert larger.hold(MIB), "the one that may always be finished"
    assert not another.hold(MIB)
    assert all(small.hold(1000) for small in asking(memory, 100))


def test_without_a_limit_there_is_always_room() -> None:
    memory = RequestMemory(-1)
    assert all(one.hold(1 << 40) for one in asking(memory, 3, proven=False))


def test_newcomers_hold_little_each_and_an_eighth_together() -> None:
    memory = RequestMemory(128 * MIB)
    newcomers = asking(memory, 32, proven=False)
    assert all(newcomer.hold(NEWCOMER_BYTES) for newcomer in newcomers)
    # Sixteen MiB together, and one that may always be finished.
    assert sum(newcomer.hold(NEWCOMER_BYTES + MIB) for newcomer in newcomers) == 17
    (known,) = asking(memory, 1)
    assert known.hold(2 * MIB), "others are not kept waiting"
    newcomers[0].memory.request_is_whole()
    newcomers[0].memory.release()
    assert sum(newcomer.told for newcomer in newcomers) == 1


@pytest.fixture
def server(harness: ServerHarness) -> SocketServer:
    return harness.serve(queued_max_request_bytes=LIMIT, socket_request_max_bytes=100 * MIB)


def half_sent(
    harness: ServerHarness, server: SocketServer, count: int, *, proven: bool
) -> list[socket.socket]:
    """Connections that have announced 100 MiB each and sent as much as is taken from them, up to 2 MiB."""
    made = []
    for _ in range(count):
        sock = harness.connect(server)
        if proven:
            sock.sendall(frame(b"known"))
            assert read_frame(sock) == b"known"
        sock.setblocking(False)
        sent = 0
        data = struct.pack(">i", 100 * MIB) + bytes(2 * MIB)
        try:
            while sent < len(data):
                sent += sock.send(data[sent:])
        except BlockingIOError:
            pass
        made.append(sock)
    return made


@pytest.mark.parametrize("proven", [True, False])
def test_requests_sent_in_part_have_a_bound_and_small_ones_are_served_beside_them(
    harness: ServerHarness, server: SocketServer, proven: bool
) -> None:
    half_sent(harness, server, 30, proven=proven)
    wait_until(lambda: server.request_memory.exhausted)
    assert MIB < server.request_memory.held <= LIMIT + 4 * MIB
    good = harness.connect(server)
    for _ in range(3):
        good.sendall(frame(b"ping"))
        assert read_frame(good) == b"ping"


def test_a_first_request_of_a_mebibyte_is_served_while_strangers_send_in_part(harness: ServerHarness) -> None:
    server = harness.serve(queued_max_request_bytes=64 * MIB, socket_request_max_bytes=100 * MIB)
    half_sent(harness, server, 10, proven=False)
    wait_until(lambda: server.request_memory.exhausted)
    good = harness.connect(server)
    good.sendall(frame(b"p" * MIB))
    assert read_frame(good) == b"p" * MIB


def test_a_request_larger_than_the_limit_arrives_whole(harness: ServerHarness) -> None:
    server = harness.serve(queued_max_request_bytes=1000, socket_request_max_bytes=100 * MIB)
    for size in (3 * MIB, 3 * MIB + 100_000, 70_000, 5, 0):
        sock = harness.connect(server)
        for _ in range(2):
            body = bytes(range(251)) * (size // 251)
            sock.sendall(frame(body))
            assert read_frame(sock) == body
    wait_until(lambda: server.request_memory.held == 0)


def test_clients_that_never_read_their_answers_keep_no_memory_from_others(harness: ServerHarness) -> None:
    def answer(request: Request) -> Response:
        if request.frame[:1] != b"d":
            return echo(request)
        return Response(request.connection_id, ResponseAction.SEND, [frame(bytes(32 * MIB))])

    server = harness.serve(answer, queued_max_request_bytes=MIB, socket_request_max_bytes=100 * MIB)
    for _ in range(3):
        deaf = harness.connect(server)
        deaf.sendall(frame(b"d" * MIB))
        assert deaf.recv(1, socket.MSG_PEEK) == frame(bytes(32 * MIB))[:1]
    good = harness.connect(server)
    for size in (10, MIB, 10):
        good.sendall(frame(b"p" * size))
        assert read_frame(good) == b"p" * size


def test_what_waits_for_memory_is_read_when_others_were_answered(harness: ServerHarness) -> None:
    parked: list[Request] = []
    server = harness.serve(
        parked.append, queued_max_request_bytes=4 * MIB, socket_request_max_bytes=100 * MIB
    )
    socks = [harness.connect(server) for _ in range(6)]
    for sock in socks:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MIB)
        sock.setblocking(False)
    rest = {sock: frame(bytes([number]) * (2 * MIB)) for number, sock in enumerate(socks)}
    answered = 0

    def step() -> bool:
        nonlocal answered
        for sock, data in rest.items():
            try:
                rest[sock] = data[sock.send(data) :] if data else data
            except BlockingIOError:
                pass
        while answered < len(parked):
            assert server.request_memory.held <= 7 * MIB
            parked[answered].reply(echo(parked[answered]))
            answered += 1
        return answered == len(socks)

    wait_until(step)
    for number, sock in enumerate(socks):
        sock.settimeout(10)
        assert read_frame(sock) == bytes([number]) * (2 * MIB)


@pytest.mark.parametrize("part", [b"\0\0", struct.pack(">i", 1000), frame(b"x" * 1000)[:-1]])
def test_a_request_that_does_not_grow_for_half_a_minute_ends_its_connection(
    harness: ServerHarness, part: bytes
) -> None:
    time = MockTime()
    server = harness.serve(time=time)
    other, growing, stalled = (harness.connect(server) for _ in range(3))
    wait_until(lambda: server.quotas.total == 3)  # a connection is there before the server has accepted it
    growing.sendall(struct.pack(">i", 1000))
    stalled.sendall(part)
    for seconds in range(0, 70, 9):
        other.sendall(frame(b"x"))  # has the server look
        assert read_frame(other) == b"x"
        assert server.quotas.total == 3 or seconds > 30
        growing.sendall(b"x")
        time.advance(9_000)
    assert ended(stalled)
    assert server.quotas.total == 2


def test_a_broker_that_stood_still_itself_ends_no_connection(harness: ServerHarness) -> None:
    time = MockTime()
    server = harness.serve(time=time)
    other, slow = harness.connect(server), harness.connect(server)
    slow.sendall(struct.pack(">i", 1000))
    for _ in range(3):
        other.sendall(frame(b"x"))
        assert read_frame(other) == b"x"
        time.advance(60_000)
    slow.sendall(bytes(1000))
    assert read_frame(slow) == bytes(1000)
