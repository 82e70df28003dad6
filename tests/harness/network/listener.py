"""Sockets of brokers and networks in tests: frames, rude ways to hang up, a listener that leaves nothing behind."""

from __future__ import annotations

import ctypes
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

JOIN_S = 10.0
"""The time for which threads are waited for."""


def read_exactly(sock: socket.socket, count: int) -> bytes:
    """`count` bytes; raises EOFError if the stream ends before."""
    parts = bytearray()
    while len(parts) < count:
        part = sock.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


class UnfinishedFrameError(EOFError):
    """A stream ended, or broke, within a frame."""


def read_frame(sock: socket.socket) -> bytes:
    """One frame without its length; raises EOFError at the end, UnfinishedFrameError at one before the frame's."""
    length = int.from_bytes(read_exactly(sock, 4), "big")
    try:
        return read_exactly(sock, length)
    except (OSError, EOFError) as error:
        raise UnfinishedFrameError from error


def reset(sock: socket.socket) -> None:
    """Send RST, not FIN: what was not delivered yet is lost. Also ends a recv of another thread.

    Closing with SO_LINGER 0 would send it only after that recv returned; disconnecting the socket does so at once.
    """
    unspecified = bytes(16)  # struct sockaddr with sa_family AF_UNSPEC
    try:
        ctypes.CDLL(None).connect(sock.fileno(), unspecified, len(unspecified))
    finally:
        sock.close()


def hang_up(sock: socket.socket) -> None:
    """Close with FIN; also ends a recv of another thread."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    sock.close()


class Listener:
    """Accepts on a loopback port and serves each connection on a thread of its own."""

    def __init__(self, name: str, port: int = 0) -> None:
        self.host = "127.0.0.1"  # another one of the loopback's addresses for a broker that moves
        self._name = name
        self._wanted_port = port
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._sockets: set[socket.socket] = set()
        self.stopping = threading.Event()
        self.port = 0
        self.accepted = 0

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to connect to."""
        return self.host, self.port

    @property
    def bootstrap(self) -> str:
        """The address as bootstrap.servers wants it."""
        return f"{self.host}:{self.port}"

    def start(self) -> None:
        """Listen; `port` is known afterwards."""
        self.stopping.clear()
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listening.bind((self.host, self._wanted_port))
        self._listening.listen(64)
        # Known from now on, also after a stop and a new start: clients keep the address.
        self.port = self._wanted_port = self._listening.getsockname()[1]
        self.spawn(self._accept)

    def stop(self) -> None:
        """Close the port and every connection, and wait for the threads."""
        self.stopping.set()
        hang_up(self._listening)
        # Again and again, because a connection that was accepted just now starts one more thread.
        while self._threads:
            self.drop_connections()
            with self._lock:
                threads, self._threads = self._threads, []
            for thread in threads:
                thread.join(JOIN_S)
                assert not thread.is_alive(), f"{thread.name} did not end"

    def drop_connections(self, with_reset: bool = False) -> None:
        """Close every connection there is now; new ones are welcome."""
        with self._lock:
            sockets = list(self._sockets)
        for sock in sockets:
            (reset if with_reset else hang_up)(sock)

    def spawn(self, target: Callable[..., None], *args: object) -> threading.Thread:
        """Run `target` on a thread that `stop` waits for, and return that."""
        thread = threading.Thread(target=target, args=args, name=self._name, daemon=True)
        with self._lock:
            self._threads.append(thread)
        thread.start()
        return thread

    def track(self, sock: socket.socket) -> None:
        """Close `sock` in `stop` and `drop_connections`."""
        with self._lock:
            self._sockets.add(sock)
        if self.stopping.is_set():
            hang_up(sock)  # `stop` may have looked already

    def untrack(self, sock: socket.socket) -> None:
        """`sock` is closed."""
        with self._lock:
            self._sockets.discard(sock)

    def serve(self, sock: socket.socket) -> None:
        """One connection, until it ends."""
        raise NotImplementedError

    def _accept(self) -> None:
        while not self.stopping.is_set():
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            if self.stopping.is_set():
                sock.close()
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted += 1
            self.track(sock)
            self.spawn(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        try:
            self.serve(sock)
        except (OSError, EOFError):
            pass
        finally:
            self.untrack(sock)
            hang_up(sock)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class SilentListener(Listener):
    """Accepts, reads, and says nothing."""

    def __init__(self, port: int = 0) -> None:
        super().__init__("silent", port)

    def serve(self, sock: socket.socket) -> None:
        while sock.recv(1 << 16):
            pass
