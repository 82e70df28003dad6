"""TLS as a Transport: an `ssl.SSLObject` between two buffers, with the socket at their other ends."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from kclient._accel import Poller
from kclient.errors import ConnectionFailure, SslAuthenticationError
from kclient.network.transport import Buffer, PlaintextTransport

_RECORD_BYTES = 16 * 1024  # the most that one record of TLS holds
SCRATCH_BYTES = 512 * 1024
"""The size of `scratch`: as much is taken from the socket at once."""
_LOW_WATER_BYTES = 256 * 1024
# Elsewhere nobody has looked whether an end or an error still wakes the reader.
_GATHERS = sys.platform == "linux"
# Of what is still to come OpenSSL may hold most of a record already, which the socket will never give.
_SURELY_TO_COME_BYTES = _LOW_WATER_BYTES + 2 * _RECORD_BYTES
_CLOSED_IN_HANDSHAKE = (
    "it was closed by the peer in the TLS handshake; is security.protocol that of this listener?"
)
_TURN_BYTES = 256 * 1024  # encrypted before the socket is asked whether it takes it


class TlsTransport:
    """TLS over TCP. Used by one thread.

    `context` belongs to others, as does `scratch`, memory for what is taken from the socket: all transports of a thread
    may have the same. `host` is the name that the certificate of the peer must have, None for a server.

    Whatever OpenSSL has against the peer raises SslAuthenticationError: in the handshake, or with the first bytes after
    it, since TLS 1.3 tells a client as late that its certificate is refused.
    """

    __slots__ = (
        "_dry",
        "_heard",
        "_host",
        "_incoming",
        "_low_water",
        "_outgoing",
        "_read",
        "_scratch",
        "_tcp",
        "_tls",
        "_unsent",
        "ready",
        "sock",
    )

    receives_as_is = False

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        scratch: memoryview,
        host: str | None = None,
        *,
        server: bool = False,
    ) -> None:
        self.sock = sock
        self.ready = False
        self._tcp = PlaintextTransport(sock)
        self._scratch = scratch
        self._host = host
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self._tls = context.wrap_bio(
                self._incoming, self._outgoing, server_side=server, server_hostname=host
            )
        except ValueError as error:  # a name that a broker advertises may be anything
            raise OSError(errno.EINVAL, f"{host!r} cannot be the name of a certificate: {error}") from None
        # For type checkers it reads into a bytearray alone, and returns bytes.
        self._read: Callable[[int, memoryview], int] = cast("Any", self._tls).read
        self._unsent = memoryview(b"")
        self._dry = True  # OpenSSL has asked for more than there was
        self._heard = False  # bytes of the application have come
        self._low_water = 1

    @property
    def wants_write(self) -> bool:
        """True while encrypted bytes wait for the socket to take them."""
        return bool(self._unsent) or self._outgoing.pending > 0

    @property
    def has_buffered_bytes(self) -> bool:
        """True if a read may give something without a look at the socket."""
        return not self._dry and (self._incoming.pending > 0 or self._tls.pending() > 0)

    @property
    def peer_subject(self) -> Sequence[Sequence[tuple[str, str]]] | None:
        """The subject of the certificate that the peer has shown and proven, as `ssl` gives it; None without one."""
        certificate = self._tls.getpeercert()
        return cast("Any", certificate)["subject"] if certificate else None

    def finish_connect(self) -> None:
        self._tcp.finish_connect()

    def handshake(self) -> None:
        while not self.ready:
            try:
                self._tls.do_handshake()
                self.ready = True
                self._dry = False  # what came behind the handshake may be there already
            except ssl.SSLWantReadError:
                self.flush()
                if not self._take():
                    return
            except ssl.SSLError as error:
                raise self._refusal(error) from error
        self.flush()

    def send(self, buffers: Sequence[Buffer]) -> int:
        total = turn = 0
        if not self.flush():
            return total
        for piece in _pieces(buffers):
            try:
                total += self._tls.write(piece)
            except ssl.SSLError as error:
                raise self._refusal(error) from error
            turn += len(piece)
            if turn >= _TURN_BYTES:
                if not self.flush():
                    return total
                turn = 0
        self.flush()
        return total

    def send_file(self, fd: int, position: int, size: int) -> int:
        if not self.flush():
            return 0
        data = os.pread(fd, min(size, _TURN_BYTES), position)
        if not data:
            raise OSError(errno.EIO, f"a file that is sent has no more than {position} bytes")
        return self.send([data])

    def recv_into(self, buffer: memoryview) -> int:
        filled = 0
        while filled < len(buffer):
            try:
                count = self._read(len(buffer) - filled, buffer[filled:])
            except ssl.SSLWantReadError:
                if self._take():
                    continue
                break
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                # Kafka's frames say how long they are, so an end without a farewell cuts nothing off unseen.
                count = 0
            except ssl.SSLError as error:
                raise self._refusal(error) from error
            if not count:
                if filled:
                    break  # the end is told with the next read
                raise EOFError
            self._dry = False
            self._heard = True
            filled += count
        self._wake_at(len(buffer) - filled)
        if self.wants_write:  # an answer of TLS itself, such as one to a change of keys
            try:
                self.flush()
            except OSError:
                if not filled:
                    raise  # else the next read tells, and what came before the end is not lost
        return filled

    def _wake_at(self, missing: int) -> None:
        """Have the socket gather more before it wakes the thread, where at least `missing` bytes are still to come.

        Brokers send record by record, and a look at the socket for each costs twice as much as OpenSSL's part.
        """
        low_water = _LOW_WATER_BYTES if missing >= _SURELY_TO_COME_BYTES and _GATHERS else 1
        if low_water != self._low_water:
            self._low_water = low_water
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, low_water)

    def flush(self) -> bool:
        while True:
            if not self._unsent:
                data = self._outgoing.read()
                if not data:
                    return True
                self._unsent = memoryview(data)
            sent = Poller.send(self.sock, [self._unsent])
            self._unsent = self._unsent[sent:]
            if self._unsent:
                return False

    def close(self) -> None:
        try:
            if self.ready:
                try:
                    self._tls.unwrap()
                except ssl.SSLError:
                    pass  # the farewell of the other side is not waited for
                self.flush()
        except (OSError, ValueError):
            pass
        finally:
            self.sock.close()

    def _take(self) -> bool:
        """Take what the socket has; False if it has nothing. The end of it is told to OpenSSL."""
        try:
            count = Poller.recv_into(self.sock, self._scratch)
        except EOFError:
            if not self.ready:
                raise ConnectionResetError(_CLOSED_IN_HANDSHAKE) from None
            self._incoming.write_eof()
            self._dry = False
            return True
        if not count:
            self._dry = True
            return False
        self._incoming.write(self._scratch[:count])
        return True

    def _refusal(self, error: ssl.SSLError) -> SslAuthenticationError | OSError:
        """Return the error to raise for OpenSSL's `error`: what is wrong, and the setting to look at."""
        try:
            self.flush()  # the alert that tells the peer
        except OSError:
            pass
        if self._heard:
            return OSError(errno.EPROTO, f"TLS failed in the middle of the connection: {_reason(error)}")
        hint, setting = _hint(error)
        return SslAuthenticationError(
            f"The TLS handshake with {self._host or 'the peer'} failed: {_reason(error)}; {hint}",
            connection=ConnectionFailure(step="tls", setting=setting),
        )


def _pieces(buffers: Sequence[Buffer]) -> list[Buffer]:
    """Return `buffers` with small neighbours put together: each write is a record of its own, with 22 bytes on top."""
    pieces: list[Buffer] = []
    small = bytearray()
    for buffer in buffers:
        if len(buffer) < _RECORD_BYTES:
            small += buffer
            continue
        if small:
            pieces.append(bytes(small))
            small.clear()
        view = memoryview(buffer)
        pieces += [view[at : at + _TURN_BYTES] for at in range(0, len(view), _TURN_BYTES)]
    if small:
        pieces.append(bytes(small))
    return pieces


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()


_TRUST, _KEY, _VERSIONS = "ssl.truststore.location", "ssl.keystore.location", "ssl.enabled.protocols"
NAMES_SETTING: Final = "ssl.endpoint.identification.algorithm"
_UNCHECKED = f"{NAMES_SETTING}= (empty) turns this check off"
_NOTHING_FITS = (
    "nothing fits both sides; see ssl.cipher.suites and ssl.enabled.protocols, and whether the broker wants a "
    "certificate (ssl.keystore.location)"
)
_NOT_ACCEPTED = (
    "the broker wants a certificate, and has not accepted that of ssl.keystore.location, if there is one",
    _KEY,
)
# What to look at, and the setting of it.
_HINTS: dict[str, tuple[str, str]] = {
    "CERTIFICATE_VERIFY_FAILED": ("the certificates to trust are those of ssl.truststore.location", _TRUST),
    "WRONG_VERSION_NUMBER": (
        "the peer does not speak TLS; is security.protocol that of this listener?",
        "security.protocol",
    ),
    "UNSUPPORTED_PROTOCOL": ("see ssl.enabled.protocols", _VERSIONS),
    "TLSV1_ALERT_PROTOCOL_VERSION": (
        "the peer wants another version of TLS; see ssl.enabled.protocols",
        _VERSIONS,
    ),
    "SSLV3_ALERT_HANDSHAKE_FAILURE": (_NOTHING_FITS, "ssl.cipher.suites"),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": (
        "the broker wants a certificate of the client; set ssl.keystore.location",
        _KEY,
    ),
    "SSLV3_ALERT_BAD_CERTIFICATE": _NOT_ACCEPTED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _NOT_ACCEPTED,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": ("the certificate of ssl.keystore.location has expired", _KEY),
    "TLSV1_ALERT_UNKNOWN_CA": (
        "the broker does not trust who signed the certificate of ssl.keystore.location",
        _KEY,
    ),
}
# X509_V_ERR_...: what was wrong with a certificate.
_VERIFY_HINTS: dict[int, tuple[str, str]] = {
    9: ("the broker's certificate is not valid yet, or the clock of this machine is wrong", _TRUST),
    10: ("the broker's certificate has to be renewed, or the clock of this machine is wrong", _TRUST),
    18: ("a certificate that signs itself has to be in ssl.truststore.location", _TRUST),
    62: (f"the broker's certificate needs the name by which it is reached; {_UNCHECKED}", NAMES_SETTING),
    64: (f"the broker's certificate needs the address by which it is reached; {_UNCHECKED}", NAMES_SETTING),
}


def _hint(error: ssl.SSLError) -> tuple[str, str]:
    hint = _HINTS.get(error.reason or "", ("check the certificates on both sides", _TRUST))
    if isinstance(error, ssl.SSLCertVerificationError):
        hint = _VERIFY_HINTS.get(error.verify_code, hint)
    return hint
