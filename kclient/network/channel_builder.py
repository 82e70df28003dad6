"""Builders of channels: what one is, and the one for plaintext.

The one with TLS and SASL is in `client_channel_builder`, which most processes do not import.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Protocol

from kclient.network.channel import KafkaChannel
from kclient.network.transport import PlaintextTransport

if TYPE_CHECKING:
    import ssl


class ChannelBuilder(Protocol):
    """Makes the channel for a socket. The Selector knows nothing else about security."""

    def build(
        self,
        channel_id: str,
        sock: socket.socket,
        max_receive_bytes: int,
        host: str | None = None,
        port: int = 0,
    ) -> KafkaChannel:
        """A channel that owns `sock` (non-blocking).

        `host` is the name its peer must prove, if any; a proxy is asked for that and `port`.
        """

    def close(self) -> None:
        """Release what all channels share."""


class TlsContextSource(Protocol):
    """Gives the context for a new connection."""

    def current(self) -> ssl.SSLContext:
        """Return the context for the next connection."""


class PlaintextChannelBuilder:
    """Channels without encryption and authentication. Thread-safe: it has no state."""

    __slots__ = ()

    def build(
        self,
        channel_id: str,
        sock: socket.socket,
        max_receive_bytes: int,
        host: str | None = None,
        port: int = 0,
    ) -> KafkaChannel:
        del host, port  # nobody proves a name in plaintext
        return KafkaChannel(channel_id, PlaintextTransport(sock), max_receive_bytes)

    def close(self) -> None:
        pass
