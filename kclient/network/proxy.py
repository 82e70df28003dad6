"""Proxies: the exchange by which one connects to a broker for us, SOCKS5 (RFC 1928, 1929) or HTTP CONNECT (RFC 9110).

It comes after TCP and before TLS, and what follows is between client and broker alone. The proxy is told the broker's
name and resolves it, as names that brokers advertise often mean something only behind it.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Generator
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import attrs

from kclient.config.values import Password
from kclient.errors import ConfigError, ProxyAuthenticationError, ProxyError
from kclient.network.sockets import MOST_PORT
from kclient.network.transport import Transport
from kclient.utils.text import host_and_port

SETTING: Final = "kclient.proxy.url"
_SCHEMES = ("socks5", "socks5h", "http")
_NO_AUTHENTICATION, _PASSWORD, _NOTHING_FITS = 0, 2, 0xFF
_ADDRESS_BYTES = {1: 4, 4: 16}  # of IPv4 and IPv6
_NAME = 3
_REPLIES = {
    1: "it failed",
    2: "its rules do not allow that",
    3: "the network is unreachable",
    4: "the host is unreachable, or its name does not resolve there",
    5: "the connection was refused",
    6: "the packet's time to live expired",
    7: "it does not connect for others",
    8: "it does not take addresses of this kind",
}
_MOST_HEAD_BYTES = 16 * 1024  # of an answer of HTTP
_MOST_SHOWN = 200  # characters of what a proxy said
_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,255}")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?")

Dialog = Generator[tuple[bytes, int, int], bytes, None]
"""Yields what to send and the least and the most bytes to receive then; is sent them, and returns at the end."""


@attrs.frozen(kw_only=True)
class ProxyAddress:
    """The address of a proxy, and who the client is to it. Its text has no password."""

    scheme: str
    host: str
    port: int
    username: str | None = None
    password: str = attrs.field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.scheme}://{host_and_port(self.host, self.port)}"


def parse_proxy(url: Password) -> ProxyAddress:
    """Return what `kclient.proxy.url` says. Raises ConfigError, which never shows user or password."""
    try:
        parts = urlsplit(url.value.strip())
        port = parts.port
    except ValueError:
        raise _wrong("it is no URL") from None
    if parts.scheme not in _SCHEMES:
        raise _wrong("its scheme has to be socks5 or http (which is for CONNECT, without TLS to the proxy)")
    if not parts.hostname or not port:
        raise _wrong("it has to have a host and a port")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise _wrong("nothing may follow the port; %40 stands for @ in a password, %2F for /, %23 for #")
    username, password = _credentials(parts)
    scheme = "http" if parts.scheme == "http" else "socks5"
    return ProxyAddress(scheme=scheme, host=parts.hostname, port=port, username=username, password=password)


def _credentials(parts: SplitResult) -> tuple[str | None, str]:
    if parts.username is None:
        return None, ""
    username, password = unquote(parts.username), unquote(parts.password or "")
    if parts.scheme == "http":
        if ":" in username:
            raise _wrong("Basic authentication has no way to send a colon in the user's name")
    elif not all(1 <= len(each.encode()) <= 255 for each in (username, password)):
        raise _wrong("SOCKS5 wants user and password, of 1 to 255 bytes each")
    return username, password


def _wrong(what: str) -> ConfigError:
    return ConfigError(
        f"{SETTING}: {what}; it is socks5://[user:password@]host:port or http://...", name=SETTING
    )


@attrs.define(eq=False, repr=False)
class ProxyTunnel:
    """Has a proxy connect to `host` and `port` over a connection to the proxy itself. Used by one thread.

    Reads no byte more than the proxy's answers have: what comes behind them is the broker's.
    """

    proxy: ProxyAddress
    _transport: Transport
    host: str
    port: int
    complete: bool = attrs.field(default=False, init=False)
    _dialog: Dialog = attrs.field(init=False)
    _begun: bool = attrs.field(default=False, init=False)
    _unsent: memoryview = attrs.field(factory=lambda: memoryview(b""), init=False)
    _incoming: memoryview = attrs.field(factory=lambda: memoryview(bytearray()), init=False)
    _filled: int = attrs.field(default=0, init=False)
    _least: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        dialog = _connect if self.proxy.scheme == "http" else _socks5
        self._dialog = dialog(self.proxy, self.host, self.port)

    def __str__(self) -> str:
        return f"{host_and_port(self.host, self.port)} through {self.proxy}"

    @property
    def wants_write(self) -> bool:
        """True while bytes for the proxy wait for the socket to take them."""
        return bool(self._unsent)

    def advance(self) -> None:
        """Go on as far as possible without blocking; raises ProxyError, ProxyAuthenticationError or OSError."""
        if not self._begun:
            self._begun = True
            self._expect(next(self._dialog))
        while not self.complete:
            if self._unsent:
                self._unsent = self._unsent[self._transport.send([self._unsent]) :]
                if self._unsent:
                    return
            if not self._received():
                return
            try:
                self._expect(self._dialog.send(bytes(self._incoming[: self._filled])))
            except StopIteration:
                self.complete = True

    def _expect(self, asked: tuple[bytes, int, int]) -> None:
        data, self._least, most = asked
        self._unsent = memoryview(data)
        self._incoming = memoryview(bytearray(most))
        self._filled = 0

    def _received(self) -> bool:
        while self._filled < self._least:
            try:
                count = self._transport.recv_into(self._incoming[self._filled :])
            except EOFError:
                raise ProxyError(
                    f"The proxy {self.proxy} closed the connection instead of answering"
                ) from None
            if not count:
                return False
            self._filled += count
        return True


def _socks5(proxy: ProxyAddress, host: str, port: int) -> Dialog:
    target = _socks5_address(_checked(host, port)) + port.to_bytes(2, "big")
    methods = [_NO_AUTHENTICATION] if proxy.username is None else [_NO_AUTHENTICATION, _PASSWORD]
    version, method = yield bytes([5, len(methods), *methods]), 2, 2
    if version != 5:
        raise ProxyError(
            f"The proxy {proxy} does not speak SOCKS5: it answered {bytes([version, method])!r}; see {SETTING}"
        )
    if method == _NOTHING_FITS:
        wanted = "user and password" if proxy.username is None else "another authentication than a password"
        raise ProxyAuthenticationError(f"The proxy {proxy} wants {wanted}; see {SETTING}")
    if method not in methods:
        raise ProxyError(f"The proxy {proxy} chose the authentication method {method}, which was not offered")
    if method == _PASSWORD:
        username, password = (proxy.username or "").encode(), proxy.password.encode()
        request = bytes([1, len(username), *username, len(password), *password])
        _, status = yield request, 2, 2
        if status:
            raise ProxyAuthenticationError(
                f"The proxy {proxy} does not accept user and password of {SETTING}"
            )
    version, reply = yield bytes([5, 1, 0]) + target, 2, 2
    if version != 5:
        raise ProxyError(f"The proxy {proxy} does not answer as SOCKS5 does: {bytes([version, reply])!r}")
    if reply:
        what = _REPLIES.get(reply, "it gives no reason that is known")
        raise ProxyError(
            f"The proxy {proxy} did not connect to {host_and_port(host, port)}: {what} (SOCKS5 reply {reply})"
        )
    # The address that it connects from is of no use, but the broker's bytes stand behind it.
    _, kind = yield b"", 2, 2
    size = _ADDRESS_BYTES.get(kind, 0)
    if kind == _NAME:
        (size,) = yield b"", 1, 1
    elif not size:
        raise ProxyError(f"The proxy {proxy} answered with an address of the unknown kind {kind}")
    yield b"", size + 2, size + 2


def _socks5_address(name: str) -> bytes:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return bytes([_NAME, len(name)]) + name.encode()
    return bytes([1 if address.version == 4 else 4]) + address.packed


def _connect(proxy: ProxyAddress, host: str, port: int) -> Dialog:
    target = host_and_port(_checked(host, port), port)
    request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
    if proxy.username is not None:
        credentials = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
        request += f"Proxy-Authorization: Basic {credentials}\r\n"
    unsent = f"{request}\r\n".encode()
    head = b""
    end = None
    while end is None:
        if len(head) == _MOST_HEAD_BYTES:
            raise ProxyError(f"The proxy {proxy} answered with more than {_MOST_HEAD_BYTES} bytes of headers")
        head += yield unsent, 1, _MOST_HEAD_BYTES - len(head)
        unsent = b""
        if not head.startswith(b"HTTP/"[: len(head)]):
            raise ProxyError(
                f"The proxy {proxy} does not speak HTTP: it answered {_shown(head)}; see {SETTING}"
            )
        end = _END_OF_HEAD.search(head)
    line = head.splitlines()[0]
    status = _STATUS_LINE.fullmatch(line)
    if status is None:
        raise ProxyError(
            f"The proxy {proxy} does not speak HTTP/1.1: it answered {_shown(line)}; see {SETTING}"
        )
    if status[1] == b"407":
        wanted = "wants user and password" if proxy.username is None else "does not accept user and password"
        raise ProxyAuthenticationError(f"The proxy {proxy} {wanted}: {_shown(line)}; see {SETTING}")
    if not status[1].startswith(b"2"):
        raise ProxyError(f"The proxy {proxy} did not connect to {target}: {_shown(line)}")
    if end.end() != len(head):
        # A broker says nothing before it is asked, so these are not its bytes.
        raise ProxyError(f"The proxy {proxy} sent {len(head) - end.end()} bytes behind its answer to CONNECT")


def _checked(host: str, port: int) -> str:
    """Return `host` as it may be sent: a broker's metadata says what it is, and could break out of a line."""
    try:
        name = host.encode("ascii" if host.isascii() else "idna").decode()
    except UnicodeError:
        name = ""
    if not _HOST.fullmatch(name):
        raise ProxyError(f"{host!r} cannot be the name of a host")
    if not 0 <= port <= MOST_PORT:
        raise ProxyError(f"{port} cannot be a port")
    return name


def _shown(data: bytes) -> str:
    return repr(data[:_MOST_SHOWN].decode("latin-1").strip())
