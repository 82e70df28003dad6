"""The interface between a channel and the bytes of its connection, and its plaintext implementation."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence
from typing import Protocol

from kclient._accel import Poller

_HAS_SENDFILE = hasattr(os, "sendfile")
_PIECE_BYTES = 256 * 1024

Buffer = bytes | bytearray | memoryview


class Transport(Protocol):
    """A non-blocking connection. Not thread-safe; whoever closes it may not use it again."""

    @property
    def sock(self) -> socket.socket:
        """The socket to watch."""

    @property
    def ready(self) -> bool:
        """True once bytes of the application may be exchanged (TLS: the handshake is over)."""

    @property
    def wants_write(self) -> bool:
        """True while the transport itself has bytes that wait for the socket to take them."""

    @property
    def has_buffered_bytes(self) -> bool:
        """True while bytes were taken from the socket that nobody read yet; no event announces them."""

    @property
    def receives_as_is(self) -> bool:
        """True if what comes from the socket is what `recv_into` gives."""

    def finish_connect(self) -> None:
        """Called once the socket reports that connecting is over; raises OSError if it failed."""

    def handshake(self) -> None:
        """Go on with the handshake as far as possible; raises AuthenticationError or OSError if it failed."""

    def send(self, buffers: Sequence[Buffer]) -> int:
        """Write as much of `buffers` as possible now and return how many bytes that was."""

    def flush(self) -> bool:
        """Write as much as possible now of what `wants_write` tells of; True if nothing is left of it."""

    def send_file(self, fd: int, position: int, size: int) -> int:
        """Write as much as possible now of `size` bytes of a file from `position` on; returns how many that was.

        Raises OSError, also if the file ends before `position`.
        """

    def recv_into(self, buffer: memoryview) -> int:
        """Read at most `len(buffer)` bytes; 0 if none are there now. Raises EOFError at the end."""

    def close(self) -> None:
        """Release the socket."""


class PlaintextTransport:
    """TCP as it is."""

    __slots__ = ("sock",)

    ready = True
    wants_write = False
    has_buffered_bytes = False
    receives_as_is = True

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def finish_connect(self) -> None:
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        # A socket can connect to its own ephemeral port while nobody listens there; the peer would be an
        # echo.
        try:
            mine = self.sock.getsockname()
            if isinstance(mine, tuple) and mine == self.sock.getpeername():
                raise ConnectionRefusedError(errno.ECONNREFUSED, "connected to itself: nobody listens there")
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                raise
            raise ConnectionResetError(errno.ECONNRESET, "closed by the peer at once") from None

    def handshake(self) -> None:
        pass

    def send(self, buffers: Sequence[Buffer]) -> int:
        return Poller.send(self.sock, buffers)

    def flush(self) -> bool:
        return True

    def send_file(self, fd: int, position: int, size: int) -> int:
        try:
            sent = os.sendfile(self.sock.fileno(), fd, position, size) if _HAS_SENDFILE else None
        except BlockingIOError:
            return 0
        if sent is None:
            data = os.pread(fd, min(size, _PIECE_BYTES), position)
            sent = Poller.send(self.sock, [data])
            if data:
                return sent
        if not sent:
            raise OSError(errno.EIO, f"a file that is sent has no more than {position} bytes")
        return sent

    def recv_into(self, buffer: memoryview) -> int:
        return Poller.recv_into(self.sock, buffer)

    def close(self) -> None:
        self.sock.close()
