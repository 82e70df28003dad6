"""PlaintextTransport over sockets of this machine: what is taken now, what never was connected, and files that end."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.network.listener import reset
from harness.network.ports import closed_port
from harness.waiting import wait_until
from kclient.network import transport as module
from kclient.network.transport import PlaintextTransport


@pytest.fixture
def pair() -> Iterator[tuple[PlaintextTransport, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield PlaintextTransport(ours), theirs


@pytest.fixture(params=[True, False], ids=["sendfile", "read_and_send"])
def sendfile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system call, and what takes its place where there is none."""
    monkeypatch.setattr(module, "_HAS_SENDFILE", request.param)


def test_nothing_is_read_where_nothing_is_there(pair: tuple[PlaintextTransport, socket.socket]) -> None:
    transport, theirs = pair
    assert transport.recv_into(memoryview(bytearray(10))) == 0
    theirs.sendall(b"abc")
    buffer = bytearray(2)
    assert transport.recv_into(memoryview(buffer)) == 2
    assert buffer == b"ab"


def test_the_end_of_the_stream_is_no_empty_read(pair: tuple[PlaintextTransport, socket.socket]) -> None:
    transport, theirs = pair
    theirs.close()
    with pytest.raises(EOFError):
        transport.recv_into(memoryview(bytearray(10)))


def test_a_full_socket_takes_nothing_of_buffers_or_files(
    pair: tuple[PlaintextTransport, socket.socket], tmp_path: Path, sendfile: None
) -> None:
    transport, _ = pair
    (tmp_path / "file").write_bytes(bytes(1000))
    while transport.send([bytes(100_000)]):
        pass
    with (tmp_path / "file").open("rb") as file:
        assert transport.send_file(file.fileno(), 0, 1000) == 0


def test_a_part_of_a_file_is_sent_from_its_position_on_and_no_further(
    pair: tuple[PlaintextTransport, socket.socket], tmp_path: Path, sendfile: None
) -> None:
    transport, theirs = pair
    (tmp_path / "file").write_bytes(b"0123456789")
    with (tmp_path / "file").open("rb") as file:
        assert transport.send_file(file.fileno(), 3, 4) == 4
        assert file.tell() == 0
    assert theirs.recv(100) == b"3456"


def test_a_file_that_ends_before_its_part_begins_is_an_error(
    pair: tuple[PlaintextTransport, socket.socket], tmp_path: Path, sendfile: None
) -> None:
    transport, _ = pair
    (tmp_path / "file").write_bytes(b"0123456789")
    with (tmp_path / "file").open("rb") as file:
        assert transport.send_file(file.fileno(), 8, 100) == 2
        with pytest.raises(OSError, match="no more than 10 bytes"):
            transport.send_file(file.fileno(), 10, 1)


def test_a_connection_that_was_refused_is_told_when_connecting_is_over() -> None:
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", closed_port()))
        with pytest.raises(OSError) as raised:
            PlaintextTransport(sock).finish_connect()
        assert raised.value.errno == errno.ECONNREFUSED


def test_a_connection_that_is_there_is_finished_without_a_word(
    pair: tuple[PlaintextTransport, socket.socket],
) -> None:
    pair[
        0
    ].finish_connect()  # its addresses are equal, as those of all socket pairs are: that is no connection to itself
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sock,
    ):
        PlaintextTransport(sock).finish_connect()


def test_a_socket_that_connected_to_itself_found_nobody() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.connect(sock.getsockname())
        with pytest.raises(ConnectionRefusedError, match="connected to itself"):
            PlaintextTransport(sock).finish_connect()


def test_a_peer_that_reset_at_once_is_told_as_that() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sock,
    ):
        reset(server.accept()[0])

        def is_gone() -> bool:
            try:
                sock.getpeername()
            except OSError:
                return True
            return False

        wait_until(is_gone)
        sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)  # as if somebody had asked for it already
        with pytest.raises(ConnectionResetError, match="at once"):
            PlaintextTransport(sock).finish_connect()
