"""Builders of channels: one per security protocol."""

from __future__ import annotations

import socket
from typing import Protocol

import attrs

from kclient.network.channel import KafkaChannel
from kclient.network.tls_transport import SCRATCH_BYTES, TlsTransport
from kclient.network.transport import PlaintextTransport
from kclient.security.tls import TlsContexts


class ChannelBuilder(Protocol):
    """Makes the channel for a socket. The Selector knows nothing else about security."""

    def build(
        self, channel_id: str, sock: socket.socket, max_receive_bytes: int, host: str | None = None
    ) -> KafkaChannel:
        """A channel that owns `sock` (non-blocking); `host` is the name its peer must prove, if any."""

    def close(self) -> None:
        """Release what all channels share."""


class PlaintextChannelBuilder:
    """Channels without encryption and authentication. Thread-safe: it has no state."""

    __slots__ = ()

    def build(
        self, channel_id: str, sock: socket.socket, max_receive_bytes: int, host: str | None = None
    ) -> KafkaChannel:
        del host  # nobody proves a name in plaintext
        return KafkaChannel(channel_id, PlaintextTransport(sock), max_receive_bytes)

    def close(self) -> None:
        pass


@attrs.define(eq=False, repr=False)
class TlsChannelBuilder:
    """Channels of a client over TLS. Belongs to one thread."""

    _contexts: TlsContexts
    _scratch: memoryview = attrs.field(factory=lambda: memoryview(bytearray(SCRATCH_BYTES)), init=False)

    def build(
        self, channel_id: str, sock: socket.socket, max_receive_bytes: int, host: str | None = None
    ) -> KafkaChannel:
        return KafkaChannel(
            channel_id, TlsTransport(sock, self._contexts.current(), self._scratch, host), max_receive_bytes
        )

    def close(self) -> None:
        pass
