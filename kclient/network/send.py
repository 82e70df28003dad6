"""NetworkSend: one frame on its way out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kclient.network.transport import Buffer, Transport

_MAX_BUFFERS = 1024  # IOV_MAX of Linux and macOS: the most that one sendmsg takes

_MAX_TURN_BYTES = 4 * 1024 * 1024  # written to one peer before others get their turn


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


class FileRegion(Protocol):
    """Bytes of a file that are read when they are sent."""

    def __len__(self) -> int: ...

    def write_to(self, transport: Transport, start: int) -> int:
        """Write what `transport` takes now of the bytes from `start` on; returns how many that was. Raises OSError."""


class FileSend(NetworkSend):
    """One frame of buffers and regions of files. Used by one thread.

    What waits for a peer that does not read costs no more than the buffers.
    """

    __slots__ = ("_at", "_parts")

    def __init__(self, parts: Sequence[Buffer | FileRegion]) -> None:
        super().__init__(())
        self.size = self.remaining = sum(map(len, parts))
        self._parts: list[NetworkSend | FileRegion] = []
        buffers: list[Buffer] = []
        for part in parts:
            if isinstance(part, Buffer):
                buffers.append(part)
                continue
            if buffers:
                self._parts.append(NetworkSend(buffers))
                buffers = []
            self._parts.append(part)
        if buffers:
            self._parts.append(NetworkSend(buffers))
        self._parts.reverse()  # the next one is the last of the list
        self._at = 0  # where in a region

    def write_to(self, transport: Transport) -> int:
        total = 0
        while self._parts and total < _MAX_TURN_BYTES:
            part = self._parts[-1]
            if isinstance(part, NetworkSend):
                written = part.write_to(transport)
                finished = part.completed
            else:
                written = part.write_to(transport, self._at)
                self._at += written
                finished = self._at == len(part)
            total += written
            if finished:
                self._parts.pop()
                self._at = 0
            elif not isinstance(part, NetworkSend) and written:
                continue  # perhaps it was no more than one call may write
            else:
                break
        self.remaining -= total
        return total

    def release(self) -> None:
        self._parts = []


def send_of(parts: Sequence[Buffer | FileRegion]) -> NetworkSend:
    """The send for a frame that may have regions of files in it."""
    buffers = [part for part in parts if isinstance(part, Buffer)]
    return NetworkSend(buffers) if len(buffers) == len(parts) else FileSend(parts)
