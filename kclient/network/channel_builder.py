"""Builders of channels: one per security protocol."""

from __future__ import annotations

import socket
from typing import Protocol

from kclient.network.channel import KafkaChannel
from kclient.network.transport import PlaintextTransport


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
