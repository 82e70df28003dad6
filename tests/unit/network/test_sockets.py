from __future__ import annotations

import errno
import socket

import pytest

from harness.network.ports import closed_port
from kclient.network.sockets import SYSTEM_DEFAULT, begin_connect, configure


def test_a_connection_is_begun_without_waiting_and_with_the_buffers_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        sock, _ = begin_connect("127.0.0.1", server.getsockname()[1], 50_000, 60_000)
        with sock:
            assert sock.gettimeout() == 0
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) >= 50_000
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 60_000
            server.accept()[0].close()


def test_nobody_there_is_told_later_and_what_cannot_begin_at_once() -> None:
    sock, _ = begin_connect("127.0.0.1", closed_port(), SYSTEM_DEFAULT, SYSTEM_DEFAULT)
    with sock:
        assert sock.family == socket.AF_INET
    with pytest.raises(OSError, match="connecting to") as raised:
        begin_connect("255.255.255.255", 9, SYSTEM_DEFAULT, SYSTEM_DEFAULT)
    assert raised.value.errno in {errno.EACCES, errno.ENETUNREACH, errno.EPERM}


def test_a_socket_of_this_machine_alone_has_no_options_of_tcp() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        configure(ours, SYSTEM_DEFAULT, 20_000)
        assert ours.gettimeout() == 0
        assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 20_000
