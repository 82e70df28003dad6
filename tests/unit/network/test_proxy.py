"""Proxies: their address, the exchange with them in portions of every size, and answers that are wrong."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator

import pytest

from harness.network.portions import PortionedTransport
from kclient.config.values import Password
from kclient.errors import ConfigError, DisconnectError, KafkaError, ProxyAuthenticationError, ProxyError
from kclient.network.proxy import ProxyAddress, ProxyTunnel, parse_proxy
from kclient.network.transport import PlaintextTransport

SOCKS = ProxyAddress(scheme="socks5", host="proxy", port=1080)
SOCKS_USER = ProxyAddress(scheme="socks5", host="proxy", port=1080, username="me", password="secret")
HTTP = ProxyAddress(scheme="http", host="proxy", port=3128)
HTTP_USER = ProxyAddress(scheme="http", host="proxy", port=3128, username="me", password="secret")

HOST, PORT = "broker.example", 9092
NAMED = b"\3\x0ebroker.example" + PORT.to_bytes(2, "big")
BOUND = b"\0\1\1\2\3\4\0\7"
"""The end of a SOCKS5 reply, behind its code: the address and port that the proxy connects from."""
CONNECT = b"CONNECT broker.example:9092 HTTP/1.1\r\nHost: broker.example:9092\r\n"
BASIC = b"Proxy-Authorization: Basic " + base64.b64encode(b"me:secret") + b"\r\n"
OK = b"HTTP/1.1 200 Connection established\r\nVia: proxy\r\n\r\n"

# A proxy, what it says, and what it has to be told.
EXCHANGES = {
    "socks5": (SOCKS, b"\5\0" + b"\5\0" + BOUND, b"\5\1\0" + b"\5\1\0" + NAMED),
    "socks5 with a password": (
        SOCKS_USER,
        b"\5\2" + b"\1\0" + b"\5\0" + BOUND,
        b"\5\2\0\2" + b"\1\2me\6secret" + b"\5\1\0" + NAMED,
    ),
    "socks5 that wants no password": (
        SOCKS_USER,
        b"\5\0" + b"\5\0" + BOUND,
        b"\5\2\0\2" + b"\5\1\0" + NAMED,
    ),
    "socks5, bound to IPv6": (SOCKS, b"\5\0\5\0\0\4" + bytes(18), b"\5\1\0" + b"\5\1\0" + NAMED),
    "socks5, bound to a name": (SOCKS, b"\5\0\5\0\0\3\2ab\0\7", b"\5\1\0" + b"\5\1\0" + NAMED),
    "http": (HTTP, OK, CONNECT + b"\r\n"),
    "http with a password": (HTTP_USER, OK, CONNECT + BASIC + b"\r\n"),
    "http with bare line feeds": (HTTP, b"HTTP/1.0 200\nA: b\n\n", CONNECT + b"\r\n"),
}


def exchange(
    proxy: ProxyAddress, said: bytes, portions: list[int] | None = None, host: str = HOST
) -> PortionedTransport:
    """Open a tunnel through a proxy that says all that, whatever it hears."""
    transport = PortionedTransport(said, portions or ())
    tunnel = ProxyTunnel(proxy, transport, host, PORT)
    assert not tunnel.complete
    for _ in range(len(said) * 3 + 500):
        tunnel.advance()
        if tunnel.complete:
            break
    assert tunnel.complete
    assert not tunnel.wants_write
    return transport


def refused(proxy: ProxyAddress, said: bytes, host: str = HOST) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        exchange(proxy, said, host=host)
    assert "secret" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", EXCHANGES)
def test_the_exchange_is_the_same_in_portions_of_every_size(name: str) -> None:
    proxy, said, heard = EXCHANGES[name]
    assert bytes(exchange(proxy, said).taken) == heard
    for size in (1, 2, 3, 7):
        assert bytes(exchange(proxy, said, [size] * 500).taken) == heard
    for cut in range(1, len(said) + len(heard)):
        # One short portion somewhere, with nothing behind it for a while.
        assert bytes(exchange(proxy, said, [1000] * (cut % 7) + [cut, 0, 0]).taken) == heard


@pytest.mark.parametrize("name", [name for name in EXCHANGES if name.startswith("socks5")])
def test_what_comes_behind_the_answer_is_left_to_the_broker(name: str) -> None:
    proxy, said, _ = EXCHANGES[name]
    assert bytes(exchange(proxy, said + b"of the broker").incoming) == b"of the broker"


@pytest.mark.parametrize(
    ("host", "kind", "address"),
    [("10.1.2.3", b"\1", b"\x0a\1\2\3"), ("::1", b"\4", bytes(15) + b"\1"), ("bücher.example", b"\3", None)],
)
def test_addresses_and_names_of_every_alphabet_are_told_as_what_they_are(
    host: str, kind: bytes, address: bytes | None
) -> None:
    taken = bytes(exchange(SOCKS, b"\5\0\5\0" + BOUND, host=host).taken)
    assert taken[6:7] == kind
    assert taken[7:-2] == (address or b"\x15xn--bcher-kva.example")


def test_an_address_of_ipv6_is_in_brackets_for_http() -> None:
    assert bytes(exchange(HTTP, OK, host="::1").taken).startswith(
        b"CONNECT [::1]:9092 HTTP/1.1\r\nHost: [::1]:9092"
    )


@pytest.mark.parametrize("proxy", [SOCKS, HTTP], ids=str)
@pytest.mark.parametrize("host", ["a\r\nX: y", "a b", "", "a" * 256, "a/b", "é" * 70])
def test_a_name_that_could_break_out_of_its_place_is_never_sent(proxy: ProxyAddress, host: str) -> None:
    transport = PortionedTransport(OK)
    with pytest.raises(ProxyError, match="cannot be the name of a host"):
        ProxyTunnel(proxy, transport, host, PORT).advance()
    assert not transport.taken


@pytest.mark.parametrize(
    ("proxy", "said", "text"),
    [
        (
            SOCKS,
            b"HT",
            r"socks5://proxy:1080 does not speak SOCKS5: it answered b'HT'; see kclient\.proxy\.url",
        ),
        (SOCKS, b"\5\2", "chose the authentication method 2, which was not offered"),
        (SOCKS_USER, b"\5\1", "chose the authentication method 1, which was not offered"),
        (SOCKS, b"\5\0\4\0", "does not answer as SOCKS5 does"),
        (SOCKS, b"\5\0\5\1", r"did not connect to broker\.example:9092: it failed \(SOCKS5 reply 1\)"),
        (SOCKS, b"\5\0\5\2", "its rules do not allow that"),
        (SOCKS, b"\5\0\5\3", "the network is unreachable"),
        (SOCKS, b"\5\0\5\4", "the host is unreachable, or its name does not resolve there"),
        (SOCKS, b"\5\0\5\5", "the connection was refused"),
        (SOCKS, b"\5\0\5\7", "does not connect for others"),
        (SOCKS, b"\5\0\5\x63", r"no reason that is known \(SOCKS5 reply 99\)"),
        (SOCKS, b"\5\0\5\0\0\2", "an address of the unknown kind 2"),
        (HTTP, b"SSH-2.0-x\r\n", r"does not speak HTTP: it answered 'SSH-2\.0-x'; see kclient\.proxy\.url"),
        (HTTP, b"HTTP/2 200\r\n\r\n", r"does not speak HTTP/1\.1: it answered 'HTTP/2 200'"),
        (
            HTTP,
            b"HTTP/1.1 403 Forbidden\r\n\r\n",
            r"did not connect to broker\.example:9092: 'HTTP/1\.1 403 Forb",
        ),
        (HTTP, b"HTTP/1.1 100 Continue\r\n\r\n", "did not connect"),
        (HTTP, OK + b"xyz", "sent 3 bytes behind its answer"),
        (HTTP, b"HTTP/1.1 200 \x1b[2J\x07\r\n\r\nx", "1 bytes behind"),
        (HTTP, b"HTTP/1.1 \x1b[2J\r\n\r\n", r"answered 'HTTP/1\.1 \\x1b\[2J'"),
        (HTTP, b"HTTP/1.1 200 OK\r\nA: " + b"a" * 20_000, "more than 16384 bytes of headers"),
    ],
)
def test_a_wrong_answer_ends_the_connection_with_what_the_proxy_said(
    proxy: ProxyAddress, said: bytes, text: str
) -> None:
    error = refused(proxy, said)
    assert isinstance(error, ProxyError)
    assert isinstance(error, DisconnectError)  # another try may end otherwise
    with pytest.raises(ProxyError, match=text):
        raise error


@pytest.mark.parametrize(
    ("proxy", "said", "text"),
    [
        (SOCKS, b"\5\xff", "wants user and password"),
        (SOCKS_USER, b"\5\xff", "wants another authentication than a password"),
        (SOCKS_USER, b"\5\2\1\1", "does not accept user and password of kclient.proxy.url"),
        (HTTP, b"HTTP/1.1 407 Authenticate\r\n\r\n", "wants user and password: 'HTTP/1.1 407 Authenticate'"),
        (HTTP_USER, b"HTTP/1.1 407 No\r\n\r\n", "does not accept user and password: 'HTTP/1.1 407 No'"),
    ],
)
def test_credentials_that_are_wrong_or_missing_are_not_tried_again(
    proxy: ProxyAddress, said: bytes, text: str
) -> None:
    error = refused(proxy, said)
    assert isinstance(error, ProxyAuthenticationError)
    assert not error.retriable
    assert text in str(error)


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    with near, far:
        yield near, far


@pytest.mark.parametrize("said", [b"", b"\5", b"\5\0\5"])
def test_a_proxy_that_hangs_up_is_named(sockets: tuple[socket.socket, socket.socket], said: bytes) -> None:
    near, far = sockets
    tunnel = ProxyTunnel(SOCKS, PlaintextTransport(near), HOST, PORT)
    tunnel.advance()
    far.sendall(said)
    far.shutdown(socket.SHUT_WR)
    with pytest.raises(ProxyError, match=r"socks5://proxy:1080 closed the connection instead of answering"):
        tunnel.advance()


def test_what_the_socket_does_not_take_waits_for_it() -> None:
    class Full(PortionedTransport):
        def send(self, buffers: object) -> int:
            return 0

    tunnel = ProxyTunnel(HTTP, Full(), HOST, PORT)
    tunnel.advance()
    assert tunnel.wants_write
    assert str(tunnel) == "broker.example:9092 through http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("socks5://proxy:1080", SOCKS),
        ("socks5h://proxy:1080/", SOCKS),
        ("SOCKS5://me:secret@Proxy:1080", SOCKS_USER),
        ("http://me:secret@proxy:3128", HTTP_USER),
        ("http://[::1]:3128", ProxyAddress(scheme="http", host="::1", port=3128)),
        (
            "http://a%40b:s%2F%3A%25@proxy:1",
            ProxyAddress(scheme="http", host="proxy", port=1, username="a@b", password="s/:%"),
        ),
    ],
)
def test_an_address_is_read(url: str, proxy: ProxyAddress) -> None:
    assert parse_proxy(Password(url)) == proxy


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("proxy:1080", "scheme has to be socks5 or http"),
        ("https://me:secret@proxy:1080", "without TLS to the proxy"),
        ("socks4://proxy:1080", "scheme has to be socks5 or http"),
        ("socks5://me:secret@proxy", "a host and a port"),
        ("socks5://:1080", "a host and a port"),
        ("socks5://proxy:secret", "no URL"),
        ("http://[secret:3128", "no URL"),
        ("http://me:secret/@proxy:3128", "no URL"),
        ("http://proxy:3128/secret", "nothing may follow the port"),
        ("http://proxy:3128?secret", "nothing may follow the port"),
        ("socks5://me@proxy:1080", "of 1 to 255 bytes each"),
        ("socks5://me:" + "secret" * 50 + "@proxy:1080", "of 1 to 255 bytes each"),
        ("http://m%3Ae:secret@proxy:1080", "no way to send a colon"),
    ],
)
def test_an_address_that_is_wrong_is_refused_without_showing_it(url: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_proxy(Password(url))
    assert caught.value.name == "kclient.proxy.url"
    assert text in str(caught.value)
    assert "secret" not in str(caught.value)


def test_no_text_has_the_password() -> None:
    assert str(HTTP_USER) == "http://proxy:3128"
    assert "secret" not in repr(HTTP_USER)


@pytest.mark.parametrize("proxy", [SOCKS, HTTP], ids=str)
@pytest.mark.parametrize("port", [-1, 65_536, 2**31 - 1])
def test_a_port_that_no_host_has_is_never_sent(proxy: ProxyAddress, port: int) -> None:
    transport = PortionedTransport(OK)
    with pytest.raises(ProxyError, match=f"{port} cannot be a port"):
        ProxyTunnel(proxy, transport, HOST, port).advance()
    assert not transport.taken
