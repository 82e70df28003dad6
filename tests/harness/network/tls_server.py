"""TlsServer: TLS before a broker that has none, with all that OpenSSL can do to a connection in mid-stream.

Python's `ssl` has no method for a change of keys or for a renegotiation, so these are OpenSSL's own functions.
"""

from __future__ import annotations

import _ssl
import ctypes
import select
import socket
from collections.abc import Callable
from pathlib import Path

from harness.network.listener import JOIN_S, Listener, hang_up

TLS_1_2, TLS_1_3 = 0x0303, 0x0304
_PEM = 1
_CHUNK_BYTES = 1 << 16
_WANT_READ = 2  # SSL_ERROR_...
_CLEAR_MODE, _SET_MIN_VERSION, _SET_MAX_VERSION = 78, 123, 124  # SSL_CTRL_...
_AUTO_RETRY = 4  # SSL_MODE_...: a read that finds no data of the application waits for some

_POINTER = ctypes.c_void_p
_FUNCTIONS = {
    "TLS_server_method": (_POINTER,),
    "SSL_CTX_new": (_POINTER, _POINTER),
    "SSL_CTX_ctrl": (ctypes.c_long, _POINTER, ctypes.c_int, ctypes.c_long, _POINTER),
    "SSL_CTX_use_certificate_chain_file": (ctypes.c_int, _POINTER, ctypes.c_char_p),
    "SSL_CTX_use_PrivateKey_file": (ctypes.c_int, _POINTER, ctypes.c_char_p, ctypes.c_int),
    "SSL_CTX_free": (None, _POINTER),
    "SSL_new": (_POINTER, _POINTER),
    "SSL_free": (None, _POINTER),
    "SSL_set_fd": (ctypes.c_int, _POINTER, ctypes.c_int),
    "SSL_accept": (ctypes.c_int, _POINTER),
    "SSL_ctrl": (ctypes.c_long, _POINTER, ctypes.c_int, ctypes.c_long, _POINTER),
    "SSL_read": (ctypes.c_int, _POINTER, ctypes.c_char_p, ctypes.c_int),
    "SSL_write": (ctypes.c_int, _POINTER, ctypes.c_char_p, ctypes.c_int),
    "SSL_pending": (ctypes.c_int, _POINTER),
    "SSL_get_error": (ctypes.c_int, _POINTER, ctypes.c_int),
    "SSL_key_update": (ctypes.c_int, _POINTER, ctypes.c_int),
    "SSL_renegotiate": (ctypes.c_int, _POINTER),
    "SSL_do_handshake": (ctypes.c_int, _POINTER),
    "SSL_shutdown": (ctypes.c_int, _POINTER),
}


def missing() -> str | None:
    """The reason why OpenSSL's functions cannot be called here, None if they can."""
    try:
        library = ctypes.CDLL(_ssl.__file__)
    except (AttributeError, OSError):
        return "Python's module _ssl is no library of its own"
    absent = [name for name in _FUNCTIONS if not hasattr(library, name)]
    return f"Python's OpenSSL does not lend {', '.join(absent)}" if absent else None


class TlsConnection:
    """One connection; used by the thread that serves it."""

    def __init__(self, library: ctypes.CDLL, ssl: int, sock: socket.socket) -> None:
        self._library = library
        self._ssl = ssl
        self._sock = sock
        self.is_over = False

    def send(self, data: bytes) -> None:
        """Send data of the application; raises EOFError where the client does not want it any more."""
        if self._library.SSL_write(self._ssl, data, len(data)) <= 0:
            raise EOFError

    def receive(self) -> bytes:
        """Data of the application, b"" where there was something else; raises EOFError at the end."""
        data = ctypes.create_string_buffer(_CHUNK_BYTES)
        count = self._library.SSL_read(self._ssl, data, _CHUNK_BYTES)
        if count <= 0 and self._library.SSL_get_error(self._ssl, count) != _WANT_READ:
            raise EOFError
        return data.raw[: max(count, 0)]

    @property
    def has_buffered_bytes(self) -> bool:
        """True if there is something to receive that the socket has given away already."""
        return bool(self._library.SSL_pending(self._ssl) > 0)

    def update_keys(self, *, of_both: bool) -> None:
        """Write with new keys from now on (TLS 1.3); `of_both` asks the client to do so as well."""
        assert self._library.SSL_key_update(self._ssl, int(of_both)) == 1
        assert self._library.SSL_do_handshake(self._ssl) == 1

    def renegotiate(self) -> None:
        """Ask for a new handshake (TLS 1.2)."""
        assert self._library.SSL_renegotiate(self._ssl) == 1
        self._library.SSL_do_handshake(self._ssl)

    def begin_record(self) -> None:
        """Send the first bytes of a record that holds as much as one may. Nothing can come behind that."""
        self._sock.sendall(b"\x17\x03\x03\x40\x00" + bytes(100))

    def say_goodbye(self) -> None:
        """Send close_notify, and end."""
        self._library.SSL_shutdown(self._ssl)
        self.is_over = True

    def hang_up(self) -> None:
        """End without a word of TLS."""
        self.is_over = True


Answering = Callable[[TlsConnection, bytes], None]
"""Gets a connection and what the broker has to say there; usually sends that."""


class TlsServer(Listener):
    """Serves with the key and certificate of `pair`, in one version of TLS. `answer` says how answers are sent."""

    def __init__(
        self,
        target: tuple[str, int],
        pair: Path,
        *,
        version: int = TLS_1_3,
        answer: Answering = TlsConnection.send,
    ) -> None:
        super().__init__("tls-server")
        self.target = target
        self.answer = answer
        self.failures: list[BaseException] = []
        """Errors of serving, but for ends of connections."""
        self._library = ctypes.CDLL(_ssl.__file__)
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
        self._context = self._library.SSL_CTX_new(self._library.TLS_server_method())
        for control in (_SET_MIN_VERSION, _SET_MAX_VERSION):
            assert self._library.SSL_CTX_ctrl(self._context, control, version, None) == 1
        file = str(pair).encode()
        assert self._library.SSL_CTX_use_certificate_chain_file(self._context, file) == 1
        assert self._library.SSL_CTX_use_PrivateKey_file(self._context, file, _PEM) == 1

    def stop(self) -> None:
        super().stop()
        self._library.SSL_CTX_free(self._context)

    def serve(self, sock: socket.socket) -> None:
        # A descriptor of its own: nobody else closes it, and its number stays ours for as long as OpenSSL uses it.
        with sock.dup() as own, socket.create_connection(self.target, timeout=JOIN_S) as upstream:
            upstream.settimeout(None)
            self.track(upstream)
            ssl = self._library.SSL_new(self._context)
            try:
                self._library.SSL_set_fd(ssl, own.fileno())
                if self._library.SSL_accept(ssl) == 1:
                    self._library.SSL_ctrl(ssl, _CLEAR_MODE, _AUTO_RETRY, None)
                    self._pass_on(TlsConnection(self._library, ssl, own), own, upstream)
            except (AssertionError, TypeError, ValueError) as error:
                self.failures.append(error)
            finally:
                self._library.SSL_free(ssl)
                self.untrack(upstream)
                hang_up(sock)

    def _pass_on(self, connection: TlsConnection, sock: socket.socket, upstream: socket.socket) -> None:
        while not connection.is_over:
            ready = select.select([sock, upstream], [], [])[0]
            while sock in ready or connection.has_buffered_bytes:
                upstream.sendall(connection.receive())
                ready = [each for each in ready if each is not sock]
            if upstream in ready:
                data = upstream.recv(_CHUNK_BYTES)
                if not data:
                    return
                self.answer(connection, data)
