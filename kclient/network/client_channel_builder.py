"""ClientChannelBuilder: channels to brokers through proxies, with TLS and SASL."""

from __future__ import annotations

import socket
from collections.abc import Callable

import attrs

from kclient.network.channel import KafkaChannel, Tunnel
from kclient.network.channel_builder import TlsContextSource
from kclient.network.sasl_authenticator import SaslClientAuthenticator
from kclient.network.tls_transport import SCRATCH_BYTES, TlsTransport
from kclient.network.transport import PlaintextTransport, Transport
from kclient.security.sasl import SaslCredentials


@attrs.define(eq=False, repr=False, kw_only=True)
class ClientChannelBuilder:
    """Channels of a client with a proxy, TLS and SASL, whichever of them there is. Belongs to one thread."""

    _tls: TlsContextSource | None = None
    _sasl: SaslCredentials | None = None
    _tunnel: Callable[[Transport, str, int], Tunnel] | None = None  # to a host and its port
    _client_id: str | None = None
    _scratch: memoryview = attrs.field(factory=lambda: memoryview(bytearray(SCRATCH_BYTES)), init=False)

    def build(
        self,
        channel_id: str,
        sock: socket.socket,
        max_receive_bytes: int,
        host: str | None = None,
        port: int = 0,
    ) -> KafkaChannel:
        transport: Transport
        if self._tls is None:
            transport = PlaintextTransport(sock)
        else:
            transport = TlsTransport(sock, self._tls.current(), self._scratch, host)
        authenticator = None
        if self._sasl is not None:
            authenticator = SaslClientAuthenticator(transport, self._sasl, self._client_id, host or "")
        tunnel = None
        if self._tunnel is not None:
            tunnel = self._tunnel(PlaintextTransport(sock), host or "", port)
        return KafkaChannel(channel_id, transport, max_receive_bytes, authenticator, tunnel)

    def close(self) -> None:
        if self._sasl is not None:
            self._sasl.close()
