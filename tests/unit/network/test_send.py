"""NetworkSend and FileSend over transports that take bytes as they please."""

from __future__ import annotations

import random
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.network.portions import PortionedTransport
from kclient.network.send import FileSend, NetworkSend, send_of
from kclient.network.transport import Buffer, PlaintextTransport, Transport


@given(st.lists(st.binary(max_size=20), max_size=8), st.lists(st.integers(0, 30), max_size=20))
def test_a_send_arrives_whole_however_it_is_cut_up(buffers: list[bytes], portions: list[int]) -> None:
    wire = PortionedTransport(portions=portions)
    send = NetworkSend(buffers)
    while not send.completed:
        send.write_to(wire)
    assert wire.taken == b"".join(buffers)


def test_a_send_of_more_buffers_than_one_system_call_takes_arrives_whole() -> None:
    wire = PortionedTransport()
    send = NetworkSend([bytes([i % 256]) for i in range(3000)])
    while not send.completed:
        send.write_to(wire)
    assert wire.taken == bytes(i % 256 for i in range(3000))
    assert wire.sends == 3


def test_a_completed_send_lets_go_of_its_buffers() -> None:
    batch = bytearray(b"records")
    send = NetworkSend([b"head", memoryview(batch)])
    send.write_to(PortionedTransport())
    batch.append(1)  # BufferError while the view is held


class Region:
    """A part of a file."""

    def __init__(self, fd: int, position: int, size: int) -> None:
        self._fd, self._position, self._size = fd, position, size

    def __len__(self) -> int:
        return self._size

    def write_to(self, transport: Transport, start: int) -> int:
        return transport.send_file(self._fd, self._position + start, self._size - start)


@given(st.lists(st.integers(0, 3), max_size=8), st.lists(st.integers(0, 30), max_size=20))
def test_a_send_with_parts_of_files_arrives_whole_however_it_is_cut_up(
    kinds: list[int], portions: list[int]
) -> None:
    content = bytes(range(256))
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        parts: list[Buffer | Region] = []
        expected = b""
        for number, kind in enumerate(kinds):
            size = 10 * kind + 1
            parts.append(Region(file.fileno(), number, size) if kind % 2 else content[number : number + size])
            expected += content[number : number + size]
        wire = PortionedTransport(portions=portions)
        send = send_of(parts)
        assert send.size == len(expected)
        while not send.completed:
            send.write_to(wire)
    assert wire.taken == expected


def test_parts_of_files_reach_a_socket_whose_peer_reads_now_and_then(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(10_000_000)
    (tmp_path / "file").write_bytes(content)
    ours, theirs = socket.socketpair()
    with ours, theirs, (tmp_path / "file").open("rb") as file:
        ours.setblocking(False)
        send = send_of(
            [b"head", Region(file.fileno(), 100, 9_000_000), b"middle", Region(file.fileno(), 0, 100)]
        )
        got = bytearray()
        while not send.completed:
            send.write_to(PlaintextTransport(ours))
            got += theirs.recv(1 << 20)
        while len(got) < send.size:
            got += theirs.recv(1 << 20)
    assert got == b"head" + content[100:9_000_100] + b"middle" + content[:100]


def test_a_file_that_is_shorter_than_what_is_sent_of_it_ends_the_send(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 10)
    ours, theirs = socket.socketpair()
    with ours, theirs, (tmp_path / "file").open("rb") as file:
        ours.setblocking(False)
        send = send_of([Region(file.fileno(), 0, 11)])
        with pytest.raises(OSError, match="no more than 10 bytes"):
            send.write_to(PlaintextTransport(ours))


def test_a_send_without_bytes_is_complete_and_writes_nothing() -> None:
    wire = PortionedTransport()
    for send in (NetworkSend([]), NetworkSend([b"", b""]), send_of([])):
        assert send.completed
        assert send.write_to(wire) == 0
    assert wire.sends == 0


def test_empty_buffers_between_others_are_passed_over() -> None:
    wire = PortionedTransport(portions=[2, 0, 1])
    send = NetworkSend([b"", b"ab", b"", b"", b"cd", b""])
    written = []
    while not send.completed:
        written.append(send.write_to(wire))
    assert wire.taken == b"abcd"
    assert written == [2, 0, 1, 1]


def test_a_buffer_is_let_go_of_as_soon_as_it_is_written() -> None:
    first, second = bytearray(b"first"), bytearray(b"second")
    send = NetworkSend([memoryview(first), memoryview(second)])
    send.write_to(PortionedTransport(portions=[7]))
    first.append(1)  # BufferError while the view is held
    with pytest.raises(BufferError):
        second.append(1)
    assert send.remaining == 4


@pytest.mark.parametrize("kind", [NetworkSend, FileSend])
def test_a_send_whose_connection_ended_lets_go_of_its_buffers(kind: type[NetworkSend]) -> None:
    batch = bytearray(b"records")
    send = kind([memoryview(batch)])
    send.release()
    batch.append(1)  # BufferError while the view is held
    assert not send.completed


def test_only_a_frame_with_parts_of_files_needs_more_than_its_buffers(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as file:
        assert type(send_of([b"a", memoryview(b"b")])) is NetworkSend
        assert type(send_of([b"a", Region(file.fileno(), 0, 1)])) is FileSend


def test_one_peer_does_not_get_more_than_its_turn(tmp_path: Path) -> None:
    size = 6 * 1024 * 1024
    (tmp_path / "file").write_bytes(bytes(size))
    with (tmp_path / "file").open("rb") as file:
        wire = PortionedTransport(portions=[1024 * 1024] * 100)
        send = send_of([Region(file.fileno(), 0, size)])
        assert send.write_to(wire) == 4 * 1024 * 1024
        assert send.write_to(wire) == 2 * 1024 * 1024
        assert send.completed


def test_a_peer_that_takes_nothing_is_not_asked_twice(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100))
    with (tmp_path / "file").open("rb") as file:
        wire = PortionedTransport(portions=[40, 0])
        send = send_of([Region(file.fileno(), 0, 100), b"behind"])
        assert send.write_to(wire) == 40
        assert wire.sends == 2
        assert send.remaining == 66
