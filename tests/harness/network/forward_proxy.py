"""Servers between clients and brokers: proxies that connect to whom a client names, and TLS before a broker without."""

from __future__ import annotations

import base64
import ipaddress
import socket
import ssl
import time

from harness.network.listener import JOIN_S, Listener, hang_up, read_exactly


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Pass on what comes until the end, which is passed on as well."""
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
    except OSError:
        pass
    finally:
        hang_up(sink)


class Relay(Listener):
    """Passes on bytes as they are, whatever is spoken. `accepted_s` has the times at which connections came."""

    def __init__(self, target: tuple[str, int]) -> None:
        super().__init__("relay")
        self.target = target
        self.accepted_s: list[float] = []

    def serve(self, sock: socket.socket) -> None:
        self.accepted_s.append(time.monotonic())
        upstream = socket.create_connection(self.target, timeout=JOIN_S)
        upstream.settimeout(None)
        self.track(upstream)
        try:
            self.spawn(pump, upstream, sock)
            pump(sock, upstream)
        finally:
            self.untrack(upstream)
            hang_up(upstream)


class ForwardProxy(Listener):
    """A proxy for SOCKS5 and HTTP CONNECT, whichever a client begins with.

    `names` are the hosts that it resolves, which need not exist anywhere else. `asked` holds the hosts and ports that
    clients named, `refusal` what it answers them: a reply of SOCKS5, or a status line.
    """

    def __init__(
        self, names: dict[str, str] | None = None, credentials: tuple[str, str] | None = None
    ) -> None:
        super().__init__("forward-proxy")
        self.names = names or {}
        self.credentials = credentials
        self.asked: list[tuple[str, int]] = []
        self.refusal: int | str | None = None

    def url(self, scheme: str) -> str:
        """The value of kclient.proxy.url."""
        user = "" if self.credentials is None else ":".join(self.credentials) + "@"
        return f"{scheme}://{user}{self.bootstrap}"

    def serve(self, sock: socket.socket) -> None:
        first = read_exactly(sock, 1)
        upstream = self._socks5(sock) if first == b"\5" else self._http(sock, first)
        if upstream is None:
            return
        self.track(upstream)
        try:
            self.spawn(pump, upstream, sock)
            pump(sock, upstream)
        finally:
            self.untrack(upstream)
            hang_up(upstream)

    def _connect(self, host: str, port: int) -> socket.socket:
        self.asked.append((host, port))
        made = socket.create_connection((self.names.get(host, host), port), timeout=JOIN_S)
        made.settimeout(None)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _socks5(self, sock: socket.socket) -> socket.socket | None:
        methods = read_exactly(sock, read_exactly(sock, 1)[0])
        method = 0 if self.credentials is None else 2
        if method not in methods:
            sock.sendall(b"\5\xff")
            return None
        sock.sendall(bytes([5, method]))
        if self.credentials is not None:
            read_exactly(sock, 1)
            given = tuple(read_exactly(sock, read_exactly(sock, 1)[0]).decode() for _ in range(2))
            sock.sendall(b"\1" + bytes([given != self.credentials]))
            if given != self.credentials:
                return None
        kind = read_exactly(sock, 4)[3]
        if kind == 3:
            host = read_exactly(sock, read_exactly(sock, 1)[0]).decode()
        else:
            host = str(ipaddress.ip_address(read_exactly(sock, 4 if kind == 1 else 16)))
        port = int.from_bytes(read_exactly(sock, 2), "big")
        if isinstance(self.refusal, int):
            self.asked.append((host, port))
            sock.sendall(bytes([5, self.refusal, 0, 1, 0, 0, 0, 0, 0, 0]))
            return None
        try:
            upstream = self._connect(host, port)
        except OSError:
            sock.sendall(bytes([5, 4, 0, 1, 0, 0, 0, 0, 0, 0]))
            return None
        sock.sendall(bytes([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
        return upstream

    def _http(self, sock: socket.socket, head: bytes) -> socket.socket | None:
        while not head.endswith(b"\r\n\r\n"):
            head += read_exactly(sock, 1)
        lines = head.decode().split("\r\n")
        method, target, _ = lines[0].split(" ")
        assert method == "CONNECT"
        host, _, port = target.rpartition(":")
        if self.credentials is not None:
            wanted = base64.b64encode(":".join(self.credentials).encode()).decode()
            if f"Proxy-Authorization: Basic {wanted}" not in lines:
                sock.sendall(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n"
                )
                return None
        if isinstance(self.refusal, str):
            self.asked.append((host, int(port)))
            sock.sendall(f"{self.refusal}\r\nContent-Length: 0\r\n\r\n".encode())
            return None
        try:
            upstream = self._connect(host.strip("[]"), int(port))
        except OSError:
            sock.sendall(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return None
        sock.sendall(b"HTTP/1.1 200 Connection established\r\nVia: here\r\n\r\n")
        return upstream


class TlsFront(Listener):
    """TLS before a broker that has none."""

    def __init__(self, target: tuple[str, int], context: ssl.SSLContext, *, port: int = 0) -> None:
        super().__init__("tls-front", port)
        self.target = target
        self.context = context

    def serve(self, sock: socket.socket) -> None:
        with self.context.wrap_socket(sock, server_side=True) as inner:
            upstream = socket.create_connection(self.target, timeout=JOIN_S)
            upstream.settimeout(None)
            self.track(inner)
            self.track(upstream)
            try:
                self.spawn(pump, upstream, inner)
                pump(inner, upstream)
            finally:
                self.untrack(inner)
                self.untrack(upstream)
                hang_up(upstream)
