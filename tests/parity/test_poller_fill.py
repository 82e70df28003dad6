"""Receiving into memory while polling: what the native Poller does of itself, and the pure one leaves to its user."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kclient._accel.reference import poller as reference_poller
from kclient._accel.shared.readiness import EVENT_READ

native = pytest.importorskip("kclient._accel.native.poller", reason="the native body is not built")
if not native.AVAILABLE:
    pytest.skip("the native Poller needs epoll", allow_module_level=True)


@pytest.fixture
def poller() -> Iterator[Any]:
    made = native.Poller()
    yield made
    made.close()


@pytest.fixture
def ends(poller: Any) -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        poller.register(ours, EVENT_READ, "x")
        yield ours, theirs


def test_a_poll_returns_when_the_memory_is_full(
    poller: Any, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    memory = native.FrameMemory(1_000_000)
    poller.expect(ours, memory)
    thread = threading.Thread(target=theirs.sendall, args=(b"x" * 1_000_000 + b"rest",))
    thread.start()
    assert poller.poll(60_000) == [("x", EVENT_READ)]
    assert poller.taken(ours) == 1_000_000
    thread.join()
    assert bytes(memory) == b"x" * 1_000_000
    rest = bytearray(10)
    assert poller.recv_into(ours, rest) == 4


def test_what_has_come_is_told_when_the_time_is_over(
    poller: Any, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    memory = native.FrameMemory(100)
    poller.expect(ours, memory)
    assert poller.poll(1) == []
    theirs.sendall(b"abc")
    assert poller.poll(10) == [("x", EVENT_READ)]
    assert poller.taken(ours) == 3
    assert bytes(memory)[:3] == b"abc"
    assert poller.taken(ours) == 0


def test_a_socket_is_received_into_one_memory_at_a_time_and_lets_go_of_it(
    poller: Any, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, _ = ends
    memory = native.FrameMemory(100)
    poller.expect(ours, memory)
    with pytest.raises(ValueError, match="already"):
        poller.expect(ours, bytearray(5))
    with pytest.raises(BufferError):
        memory.grow(200)
    poller.unregister(ours)
    memory.grow(200)
    assert len(memory) == 200


def test_of_a_frame_no_more_is_taken_than_its_length_says(
    poller: Any, ends: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = ends
    memory = native.FrameMemory(100)
    poller.expect(ours, memory, framed=True)
    whole = b"\0\0\0\5" + b"frame"
    thread = threading.Thread(target=lambda: [theirs.sendall(bytes((each,))) for each in whole + b"next"])
    thread.start()
    assert poller.poll(60_000) == [("x", EVENT_READ)]
    thread.join()
    assert poller.taken(ours) == 9
    assert bytes(memory)[:9] == whole
    assert poller.recv_into(ours, bytearray(10)) == 4


@pytest.mark.parametrize("size", [b"\0\0\0\x61", b"\xff\xff\xff\xff", b"\0\0\0\0"])
def test_of_a_frame_without_room_or_contents_only_the_length_is_taken(
    poller: Any, ends: tuple[socket.socket, socket.socket], size: bytes
) -> None:
    ours, theirs = ends
    memory = native.FrameMemory(100)
    poller.expect(ours, memory, framed=True)
    theirs.sendall(size + b"x" * 97)
    assert poller.poll(60_000) == [("x", EVENT_READ)]
    assert poller.taken(ours) == 4
    assert bytes(memory)[:4] == size
    assert poller.recv_into(ours, bytearray(100)) == 97


def test_a_frame_needs_room_for_more_than_its_length(
    poller: Any, ends: tuple[socket.socket, socket.socket]
) -> None:
    memory = native.FrameMemory(4)
    with pytest.raises(ValueError, match="room"):
        poller.expect(ends[0], memory, framed=True)
    memory.grow(100_000)  # nobody holds it


def test_read_only_memory_is_refused(poller: Any, ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(BufferError):
        poller.expect(ends[0], b"read-only")


def test_of_many_sockets_some_are_left_to_be_read(poller: Any) -> None:
    pairs = [socket.socketpair() for _ in range(40)]
    try:
        for ours, theirs in pairs:
            ours.setblocking(False)
            poller.register(ours, EVENT_READ, ours)
            poller.expect(ours, native.FrameMemory(3))
            theirs.sendall(b"abc")
        seen = set()
        while len(seen) < len(pairs):
            for ours, _ in poller.poll(1000):
                got = poller.taken(ours) or poller.recv_into(ours, bytearray(3))
                assert got == 3
                seen.add(ours)
    finally:
        for ours, theirs in pairs:
            ours.close()
            theirs.close()


def test_the_pure_poller_reports_every_piece_and_takes_none() -> None:
    poller = reference_poller.Poller()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        poller.register(ours, EVENT_READ, "x")
        poller.expect(ours, bytearray(100))
        theirs.sendall(b"abc")
        assert poller.poll(1000) == [("x", EVENT_READ)]
        assert poller.taken(ours) == 0
        assert poller.recv_into(ours, bytearray(100)) == 3
        poller.close()


@pytest.mark.parametrize("body", [reference_poller.FrameMemory, native.FrameMemory])
def test_memory_of_a_frame_grows_and_keeps_what_is_in_it(body: Any) -> None:
    memory = body(3)
    memoryview(memory)[:] = b"abc"
    memory.grow(70_000)
    assert len(memory) == 70_000
    assert bytes(memory)[:3] == b"abc"
    with memoryview(memory), pytest.raises(BufferError):
        memory.grow(80_000)
    memory.grow(300_000)
    assert bytes(memory)[:3] == b"abc"
