"""FrameExchange: frames to and fro before a channel is ready, as authentication needs them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kclient.network.receive import NetworkReceive
from kclient.network.send import NetworkSend
from kclient.network.transport import Buffer, Transport


@attrs.define(eq=False, repr=False)
class FrameExchange:
    """At most one frame going out and one coming in, over a transport that others own. Used by one thread.

    `source` names the other side in errors, and no frame of it may have more than `max_bytes`.
    """

    _transport: Transport
    _source: str
    _max_bytes: int
    _send: NetworkSend | None = attrs.field(default=None, init=False)
    _receive: NetworkReceive | None = attrs.field(default=None, init=False)

    @property
    def wants_write(self) -> bool:
        """True while a frame is only partly written."""
        return self._send is not None

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Begin to send a frame; the one before it is `written`."""
        self._send = NetworkSend(buffers)

    def written(self) -> bool:
        """Write as far as possible; return True once nothing is left. Raises OSError."""
        if self._send is not None:
            self._send.write_to(self._transport)
            if self._send.remaining:
                return False
            self._send = None
        return not self._transport.wants_write or self._transport.flush()

    def read(self) -> memoryview | None:
        """Read as far as possible; return a frame once it is whole.

        Raises EOFError at the end of the stream, OSError, and InvalidReceiveError for an impossible length.
        """
        if self._receive is None:
            self._receive = NetworkReceive(self._source, self._max_bytes)
        self._receive.read_from(self._transport)
        if not self._receive.completed:
            return None
        receive, self._receive = self._receive, None
        return receive.payload

    def close(self) -> None:
        """Let go of what is on its way."""
        self._send = self._receive = None
