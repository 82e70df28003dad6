"""ServerChannelBuilder: channels of a listener, with TLS and SASL as its security protocol says."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial

import attrs

from kclient.broker.security.listener_config import ListenerConfig
from kclient.broker.security.principal import (
    ANONYMOUS,
    KafkaPrincipal,
    PrincipalMapping,
    distinguished_name,
)
from kclient.broker.security.sasl_authenticator import SaslServerAuthenticator, SaslServerSettings
from kclient.network.channel import KafkaChannel
from kclient.network.tls_transport import SCRATCH_BYTES, TlsTransport
from kclient.network.transport import PlaintextTransport, Transport
from kclient.security.tls import TlsContexts
from kclient.utils.time import Time


@attrs.define(eq=False, repr=False, kw_only=True)
class ServerChannelBuilder:
    """Builds the channels of one processor. Belongs to its thread, but for `use`.

    `on_refused(channel_id)` is called when a client was refused; see `SaslServerAuthenticator`.
    """

    _time: Time
    _tls: TlsContexts | None = None
    _sasl: SaslServerSettings | None = None
    _mapping: PrincipalMapping = attrs.field(factory=PrincipalMapping)
    _on_refused: Callable[[str], None]
    _scratch: memoryview = attrs.field(init=False)

    @_scratch.default
    def _memory(self) -> memoryview:
        return memoryview(bytearray(0 if self._tls is None else SCRATCH_BYTES))

    def build(
        self,
        channel_id: str,
        sock: socket.socket,
        max_receive_bytes: int,
        host: str | None = None,
        port: int = 0,
    ) -> KafkaChannel:
        del host, port  # clients prove no name of a host
        transport: Transport
        if self._tls is None:
            transport = PlaintextTransport(sock)
        else:
            transport = TlsTransport(sock, self._tls.current(), self._scratch, server=True)
        authenticator = None
        if self._sasl is not None:
            refused = partial(self._on_refused, channel_id)
            authenticator = SaslServerAuthenticator(transport, self._sasl, self._time, refused)
        return KafkaChannel(channel_id, transport, max_receive_bytes, authenticator)

    def use(self, config: ListenerConfig) -> None:
        """Have the keys and certificates of these settings for new connections."""
        if self._tls is not None:
            self._tls.use(config)

    def principal(self, channel: KafkaChannel) -> KafkaPrincipal:
        """Return who is at the other end of a channel that is ready."""
        authenticator = channel.authenticator
        if isinstance(authenticator, SaslServerAuthenticator):
            assert authenticator.principal is not None
            return authenticator.principal
        if isinstance(channel.transport, TlsTransport):
            subject = channel.transport.peer_subject
            if subject is not None:
                return self._mapping.user(distinguished_name(subject))
        return ANONYMOUS

    def close(self) -> None:
        """Nothing is shared that would have to be let go of."""
