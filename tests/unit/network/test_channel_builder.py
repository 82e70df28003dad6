"""Channels by security protocol: the transport and the authenticator of each."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from harness.network.certificates import Authority
from kclient.config.sasl_configs import SaslConfig
from kclient.config.ssl_configs import SslConfig
from kclient.config.values import Password
from kclient.errors import InvalidReceiveError
from kclient.network.channel import KafkaChannel
from kclient.network.channel_builder import ChannelBuilder, PlaintextChannelBuilder
from kclient.network.client_channel_builder import ClientChannelBuilder
from kclient.network.proxy import ProxyAddress, ProxyTunnel
from kclient.network.tls_transport import TlsTransport
from kclient.network.transport import PlaintextTransport
from kclient.protocol.header import parse_request
from kclient.security.sasl import SaslCredentials
from kclient.security.sasl_credentials import sasl_credentials
from kclient.security.tls import TlsContexts
from kclient.utils.log_context import LogContext

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    yield near, far
    near.close()
    far.close()


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> TlsContexts:
    directory: Path = tmp_path_factory.mktemp("certificates")
    config = SslConfig(ssl_truststore_location=str(Authority(directory).file))
    return TlsContexts(config, LogContext("[test] "))


def credentials() -> SaslCredentials:
    config = SaslConfig(sasl_mechanism="PLAIN", sasl_jaas_config=Password(JAAS))
    return sasl_credentials(config, LogContext())


@pytest.mark.parametrize(
    "builder", [PlaintextChannelBuilder(), ClientChannelBuilder()], ids=["plaintext", "client"]
)
def test_without_tls_and_sasl_a_channel_is_ready_at_once(
    builder: ChannelBuilder, sockets: tuple[socket.socket, socket.socket]
) -> None:
    channel = builder.build("7", sockets[0], 100, "broker.example")
    channel.prepare()
    assert channel.id == "7"
    assert channel.ready
    assert type(channel.transport) is PlaintextTransport
    assert channel.transport.sock is sockets[0]


@pytest.mark.parametrize(
    "builder", [PlaintextChannelBuilder(), ClientChannelBuilder()], ids=["plaintext", "client"]
)
def test_a_channel_takes_no_larger_frame_than_it_was_made_for(
    builder: ChannelBuilder, sockets: tuple[socket.socket, socket.socket]
) -> None:
    channel = builder.build("7", sockets[0], 100)
    channel.prepare()
    sockets[1].send((101).to_bytes(4, "big"))
    with pytest.raises(InvalidReceiveError):
        channel.read()


def test_with_tls_the_peer_hears_a_hello_with_the_name_it_must_prove(
    contexts: TlsContexts, sockets: tuple[socket.socket, socket.socket]
) -> None:
    channel = ClientChannelBuilder(tls=contexts).build("7", sockets[0], 100, "broker.example")
    assert isinstance(channel.transport, TlsTransport)
    channel.prepare()
    assert not channel.ready
    hello = sockets[1].recv(10_000)
    assert hello[:2] == b"\x16\x03"  # a handshake of TLS
    assert b"broker.example" in hello


def test_with_sasl_the_client_proves_itself_before_anything_else_is_sent(
    sockets: tuple[socket.socket, socket.socket],
) -> None:
    builder = ClientChannelBuilder(sasl=credentials(), client_id="me")
    channel = builder.build("7", sockets[0], 100)
    assert type(channel.transport) is PlaintextTransport
    channel.prepare()
    assert not channel.ready
    header, message = parse_request(sockets[1].recv(10_000)[4:])
    assert type(message).__name__ == "ApiVersionsRequest"
    assert header.client_id == "me"


def test_with_both_nothing_of_sasl_is_said_before_tls_is_there(
    contexts: TlsContexts, sockets: tuple[socket.socket, socket.socket]
) -> None:
    builder = ClientChannelBuilder(tls=contexts, sasl=credentials(), client_id="secret-id")
    channel = builder.build("7", sockets[0], 100, "broker.example")
    assert isinstance(channel.transport, TlsTransport)
    channel.prepare()
    assert b"secret-id" not in sockets[1].recv(10_000)
    with pytest.raises(BlockingIOError):
        sockets[1].recv(1)


def test_every_channel_has_an_exchange_of_its_own(sockets: tuple[socket.socket, socket.socket]) -> None:
    # A mechanism is used up by one exchange, a new connection needs a new one.
    builder = ClientChannelBuilder(sasl=credentials())
    first, second = (builder.build(name, sockets[0], 100)._authenticator for name in "12")
    assert first is not second


def test_channels_of_one_thread_share_what_they_take_encrypted_bytes_into(
    contexts: TlsContexts, sockets: tuple[socket.socket, socket.socket]
) -> None:
    # As large for each of thousands of connections would be too much.
    builder, other = ClientChannelBuilder(tls=contexts), ClientChannelBuilder(tls=contexts)
    first, second, alien = (
        each.build("1", sockets[0], 100, "broker.example").transport for each in (builder, builder, other)
    )
    assert first._scratch is second._scratch  # type: ignore[attr-defined]
    assert first._scratch is not alien._scratch  # type: ignore[attr-defined]


def test_a_context_that_has_changed_holds_for_the_next_channel(
    sockets: tuple[socket.socket, socket.socket], contexts: TlsContexts
) -> None:
    asked: list[str] = []

    class Changing:
        def current(self) -> object:
            asked.append("current")
            return contexts.current()

    builder = ClientChannelBuilder(tls=Changing())  # type: ignore[arg-type]
    assert not asked
    builder.build("1", sockets[0], 100, "broker.example")
    builder.build("2", sockets[0], 100, "broker.example")
    assert asked == ["current", "current"]


@pytest.mark.parametrize("secured", [False, True])
def test_through_a_proxy_nothing_is_said_to_the_broker_before_the_tunnel_is_there(
    contexts: TlsContexts, sockets: tuple[socket.socket, socket.socket], secured: bool
) -> None:
    proxy = ProxyAddress(scheme="http", host="proxy", port=3128)
    builder = ClientChannelBuilder(
        tls=contexts if secured else None,
        sasl=credentials() if secured else None,
        tunnel=partial(ProxyTunnel, proxy),
    )
    channel: KafkaChannel = builder.build("7", sockets[0], 100, "broker.example", 9092)
    assert channel.step == "tcp"
    assert not channel.prepare()
    assert channel.step == "proxy"
    assert sockets[1].recv(10_000) == (
        b"CONNECT broker.example:9092 HTTP/1.1\r\nHost: broker.example:9092\r\n\r\n"
    )
    assert channel.peer == "broker.example:9092 through http://proxy:3128"
    assert not channel.prepare()
    with pytest.raises(BlockingIOError):
        sockets[1].recv(1)
    sockets[1].sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    assert channel.prepare() is not secured
    assert channel.step == ("tls" if secured else "request")
    if secured:
        hello = sockets[1].recv(10_000)
        assert hello[:2] == b"\x16\x03"
        assert b"broker.example" in hello
