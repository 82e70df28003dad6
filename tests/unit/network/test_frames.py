"""NetworkSend and NetworkReceive over transports that take and give bytes as they please."""

from __future__ import annotations

import os
import random
import socket
import tempfile
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.errors import InvalidReceiveError
from kclient.network.receive import NetworkReceive
from kclient.network.send import NetworkSend, send_of
from kclient.network.transport import Buffer, PlaintextTransport, Transport


class Wire(PlaintextTransport):
    """Takes at most `portions[i]` bytes at the i-th send and gives as much at the i-th read; then everything."""

    def __init__(self, incoming: bytes = b"", portions: Sequence[int] = ()) -> None:
        self.incoming = bytearray(incoming)
        self.taken = bytearray()
        self.portions = list(portions)
        self.sends = 0

    def send(self, buffers: Sequence[Buffer]) -> int:
        self.sends += 1
        data = b"".join(buffers)
        portion = data[: self.portions.pop(0)] if self.portions else data
        self.taken += portion
        return len(portion)

    def send_file(self, fd: int, position: int, size: int) -> int:
        return self.send([os.pread(fd, size, position)])

    def recv_into(self, buffer: memoryview) -> int:
        limit = min(len(buffer), self.portions.pop(0) if self.portions else len(buffer), len(self.incoming))
        buffer[:limit] = self.incoming[:limit]
        del self.incoming[:limit]
        return limit


@given(st.lists(st.binary(max_size=20), max_size=8), st.lists(st.integers(0, 30), max_size=20))
def test_a_send_arrives_whole_however_it_is_cut_up(buffers: list[bytes], portions: list[int]) -> None:
    wire = Wire(portions=portions)
    send = NetworkSend(buffers)
    while not send.completed:
        send.write_to(wire)
    assert wire.taken == b"".join(buffers)


def test_a_send_of_more_buffers_than_one_system_call_takes_arrives_whole() -> None:
    wire = Wire()
    send = NetworkSend([bytes([i % 256]) for i in range(3000)])
    while not send.completed:
        send.write_to(wire)
    assert wire.taken == bytes(i % 256 for i in range(3000))
    assert wire.sends == 3


def test_a_completed_send_lets_go_of_its_buffers() -> None:
    batch = bytearray(b"records")
    send = NetworkSend([b"head", memoryview(batch)])
    send.write_to(Wire())
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
        wire = Wire(portions=portions)
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


@given(st.binary(max_size=300), st.lists(st.integers(0, 7), max_size=60))
def test_a_frame_is_received_whole_however_it_is_cut_up(payload: bytes, portions: list[int]) -> None:
    wire = Wire(len(payload).to_bytes(4, "big") + payload + b"next", portions)
    receive = NetworkReceive("peer", 1000)
    while not receive.completed:
        receive.read_from(wire)
    assert bytes(receive.payload) == payload
    assert wire.incoming == b"next"


def test_a_frame_larger_than_the_first_buffer_is_received_whole() -> None:
    payload = bytes(range(256)) * 4096
    wire = Wire(len(payload).to_bytes(4, "big") + payload, [4, 70_000, 1, 5])
    receive = NetworkReceive("peer", 1 << 24)
    while not receive.completed:
        receive.read_from(wire)
    assert bytes(receive.payload) == payload


@pytest.mark.parametrize("size", [-1, -(2**31), 104_857_601, 2**31 - 1])
def test_an_impossible_length_is_refused_and_nothing_is_allocated_for_it(size: int) -> None:
    receive = NetworkReceive("broker:9092", 104_857_600)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidReceiveError, match=str(size)):
            receive.read_from(Wire(size.to_bytes(4, "big", signed=True) + b"x" * 10))
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_memory_grows_with_what_arrives_and_not_with_what_is_announced() -> None:
    receive = NetworkReceive("peer", 1 << 30)
    tracemalloc.start()
    try:
        wire = Wire((100 << 20).to_bytes(4, "big") + bytes(100_000))
        receive.read_from(wire)
        assert not receive.completed
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_a_frame_larger_than_the_first_memory_arrives_whole() -> None:
    contents = random.Random(1).randbytes(9_000_000)
    receive = NetworkReceive("peer", 1 << 30)
    wire = Wire(len(contents).to_bytes(4, "big") + contents)
    while not receive.completed:
        receive.read_from(wire)
    assert receive.payload == contents


def test_a_frame_that_is_held_is_not_written_over_by_the_next_ones() -> None:
    held = []
    for i in range(20):
        receive = NetworkReceive("peer", 1 << 30)
        size = 70_000 * (1 + i % 3)
        receive.read_from(Wire(size.to_bytes(4, "big") + bytes([i]) * size))
        assert receive.completed
        if i % 2:
            held.append((i, size, receive.payload))
    assert all(payload == bytes([i]) * size for i, size, payload in held)


def test_an_unlimited_receive_takes_any_length_but_a_negative_one() -> None:
    NetworkReceive("peer", -1).read_from(Wire((1 << 30).to_bytes(4, "big")))
    with pytest.raises(InvalidReceiveError):
        NetworkReceive("peer", -1).read_from(Wire(b"\xff\xff\xff\xff"))


def test_a_stranger_is_recognised_by_its_first_bytes() -> None:
    with pytest.raises(InvalidReceiveError, match="speaks HTTP"):
        NetworkReceive("peer", 1000).read_from(Wire(b"HTTP/1.1 400 Bad Request"))
    with pytest.raises(InvalidReceiveError, match="speaks TLS"):
        NetworkReceive("peer", 1000).read_from(Wire(b"\x15\x03\x03\x00\x02"))


def test_an_empty_frame_is_a_frame() -> None:
    receive = NetworkReceive("peer", 1000)
    receive.read_from(Wire(bytes(4)))
    assert receive.completed
    assert bytes(receive.payload) == b""


def test_a_payload_cannot_be_written_to() -> None:
    receive = NetworkReceive("peer", 1000)
    receive.read_from(Wire(b"\0\0\0\1x"))
    with pytest.raises(TypeError):
        receive.payload[0] = 0
