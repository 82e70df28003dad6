"""NetworkSend: one frame on its way out."""

from __future__ import annotations

from collections.abc import Sequence

from kclient.network.transport import Buffer, Transport

_MAX_BUFFERS = 1024  # IOV_MAX of Linux and macOS: the most that one sendmsg takes


class NetworkSend:
    """The buffers of one frame, length included, written without joining them. Used by one thread.

    The buffers belong to the caller and must not change before `completed`; they are let go of as soon as
    they are written, or by `release` when the connection ends before that.
    """

    __slots__ = ("_buffers", "_next", "remaining", "size")

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self._buffers: list[Buffer] = list(buffers)
        self._next = 0
        self.size = sum(map(len, self._buffers))
        self.remaining = self.size

    @property
    def completed(self) -> bool:
        """True once every byte was handed to the transport."""
        return self.remaining == 0

    def write_to(self, transport: Transport) -> int:
        """Write what the transport takes now; returns how many bytes that was. Raises OSError."""
        if self.remaining == 0:
            return 0
        buffers = self._buffers
        if self._next or len(buffers) > _MAX_BUFFERS:
            buffers = buffers[self._next : self._next + _MAX_BUFFERS]
        written = transport.send(buffers)
        self.remaining -= written
        if self.remaining == 0:
            self._buffers = []
        elif written:
            self._advance(written)
        return written

    def release(self) -> None:
        """Let go of the buffers; the rest of the frame can no longer be written."""
        self._buffers = []

    def _advance(self, written: int) -> None:
        index = self._next
        while written >= len(self._buffers[index]):
            written -= len(self._buffers[index])
            self._buffers[index] = b""
            index += 1
        if written:
            self._buffers[index] = memoryview(self._buffers[index])[written:]
        self._next = index
