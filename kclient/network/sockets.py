"""Sockets as connections need them: non-blocking, without Nagle's delay, with the buffers that are asked for."""

from __future__ import annotations

import errno
import socket
from typing import Final

MOST_PORT: Final = 65_535
SYSTEM_DEFAULT: Final = -1
"""A size of a socket's buffer that is left as it is."""
_IN_PROGRESS = frozenset({errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY})


def configure(
    sock: socket.socket,
    send_buffer_bytes: int = SYSTEM_DEFAULT,
    receive_buffer_bytes: int = SYSTEM_DEFAULT,
) -> None:
    """Set the options of a socket, before it connects: the receive buffer decides the window scale. Raises OSError."""
    sock.setblocking(False)
    if sock.family in {socket.AF_INET, socket.AF_INET6}:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if send_buffer_bytes != SYSTEM_DEFAULT:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    if receive_buffer_bytes != SYSTEM_DEFAULT:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)


def begin_connect(
    address: str, port: int, send_buffer_bytes: int, receive_buffer_bytes: int
) -> tuple[socket.socket, bool]:
    """Return a socket that connects to an IP address, and whether it has already. Raises OSError if it cannot begin."""
    if not 0 <= port <= MOST_PORT:  # brokers advertise what they like
        raise OSError(errno.EINVAL, f"{port} cannot be a port")
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        configure(sock, send_buffer_bytes, receive_buffer_bytes)
        code = sock.connect_ex((address, port))
        if code and code not in _IN_PROGRESS:
            raise OSError(code, f"{errno.errorcode.get(code, code)} connecting to {address}:{port}")
    except BaseException:
        sock.close()
        raise
    return sock, code == 0
