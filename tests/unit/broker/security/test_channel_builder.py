"""Channels of listeners: what comes with the end of a handshake, and who the other side is then."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.network.certificates import Authority
from kclient.broker.security.channel_builder import ServerChannelBuilder
from kclient.broker.security.principal import ANONYMOUS, PrincipalMapping
from kclient.config.ssl_configs import SslConfig
from kclient.network.selector import Selector
from kclient.network.tls_transport import TlsTransport
from kclient.security.tls import TlsContexts, server_context
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME

FRAME = b"\0\0\0\5hello"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def builder(authority: Authority) -> ServerChannelBuilder:
    config = SslConfig.parse(
        {
            "ssl.keystore.location": str(authority.issue("localhost")),
            "ssl.truststore.location": str(authority.file),
        }
    )
    contexts = TlsContexts(config, LogContext(), make=lambda config: server_context(config, "requested"))
    return ServerChannelBuilder(
        time=SYSTEM_TIME, tls=contexts, mapping=PrincipalMapping.parse("DEFAULT"), on_refused=lambda _: None
    )


@pytest.fixture
def selector(builder: ServerChannelBuilder) -> Iterator[Selector]:
    made = Selector(max_receive_bytes=1000, connections_max_idle_ms=-1, channel_builder=builder)
    yield made
    made.close()


def speak(sock: socket.socket, context: ssl.SSLContext) -> None:
    """Shake hands, and send a frame in one piece with the last message of the handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            sock.sendall(outgoing.read())
            incoming.write(sock.recv(1 << 16))
    tls.write(FRAME)
    sock.sendall(outgoing.read())


@pytest.mark.parametrize("with_certificate", [True, False])
def test_a_request_that_comes_with_the_end_of_the_handshake_is_not_left_lying(
    authority: Authority,
    builder: ServerChannelBuilder,
    selector: Selector,
    monkeypatch: pytest.MonkeyPatch,
    with_certificate: bool,
) -> None:
    take = TlsTransport._take

    def patiently(self: TlsTransport) -> bool:
        select.select([self.sock], [], [], 10)
        return take(self)

    context = ssl.create_default_context(cafile=str(authority.file))
    if with_certificate:
        context.load_cert_chain(authority.issue("alice@example.org"))
    near, far = socket.socketpair(socket.AF_UNIX)
    far.setblocking(False)
    client = threading.Thread(target=speak, args=(near, context))
    with near, monkeypatch.context() as patch:
        client.start()
        # So the whole handshake takes place while the connection is registered.
        patch.setattr(TlsTransport, "_take", patiently)
        channel = selector.register("0", far)
        client.join()
        assert channel.ready
        patch.undo()
        selector.poll(1000)
        assert bytes(selector.completed_receives["0"].payload) == b"hello"
        known = builder.principal(channel)
        assert (known == ANONYMOUS) is not with_certificate
