"""NetworkReceive: one frame on its way in."""

from __future__ import annotations

from typing import Protocol

import attrs

from kclient._accel import FrameMemory
from kclient.errors import InvalidReceiveError
from kclient.network.transport import Transport

LENGTH_BYTES = 4
_GROWTH = 4
_MUCH_BYTES = 32 * 1024
_FIRST_HELD_BYTES = 64 * 1024
_NOTHING = FrameMemory(0)  # until the size is known; never grows
_STRANGERS = {
    b"HTTP": "the peer speaks HTTP",
    b"SSH-": "the peer speaks SSH",
    b"\x15\x03\x01\x00": "the peer speaks TLS; set security.protocol to match its listener",
    b"\x15\x03\x03\x00": "the peer speaks TLS; set security.protocol to match its listener",
    b"\x16\x03\x01\x02": "the peer speaks TLS to a plaintext listener",
}


class ReceiveMemory(Protocol):
    """The memory that the frames of one connection may take up. Used by the connection's thread."""

    def hold(self, size: int, whole: int) -> bool:
        """Have `size` bytes in all for a frame of `whole`; False if it has to wait until they are there."""

    def take(self, size: int) -> None:
        """Have `size` bytes in all, whatever there is: they have arrived already."""


@attrs.define(eq=False, repr=False)
class NetworkReceive:
    """The four bytes of the length, then one buffer for the frame. Used by one thread.

    Memory is taken up as bytes arrive, so a peer that announces 100 MiB and sends nothing costs 64 KiB at most.
    If there is a `memory` to ask, twice what has arrived is asked for, or `likely_bytes` if that is more.
    `payload` belongs to whoever takes the receive; nothing here keeps or reuses it.
    """

    source: str
    _max_bytes: int
    _memory: ReceiveMemory | None = None
    _likely_bytes: int = 0
    _size_view: memoryview = attrs.field(factory=lambda: memoryview(bytearray(LENGTH_BYTES)), init=False)
    _size_filled: int = attrs.field(default=0, init=False)
    size: int = attrs.field(default=-1, init=False)
    """Bytes of the frame without its length; -1 while that is not known."""
    _buffer: FrameMemory = attrs.field(default=_NOTHING, init=False)
    # Where the frame begins in there: behind its length, if they came together.
    _start: int = attrs.field(default=0, init=False)
    filled: int = attrs.field(default=0, init=False)
    """Bytes of the frame that have arrived, without its length."""
    # How many the buffer can have; what comes behind the frame must stay in the socket.
    _room: int = attrs.field(default=0, init=False)
    _ahead: FrameMemory | None = attrs.field(default=None, init=False)
    starved: bool = attrs.field(default=False, init=False)
    """True while it waits for memory."""

    @property
    def arrived(self) -> int:
        """Bytes that have arrived, those of the length included."""
        return self._size_filled + self.filled

    @property
    def started(self) -> bool:
        """True once the first byte arrived."""
        return self._size_filled > 0

    @property
    def completed(self) -> bool:
        """True once the whole frame is there."""
        return self.filled == self.size

    @property
    def payload(self) -> memoryview:
        """The frame without its length, read-only."""
        return memoryview(self._buffer).toreadonly()[self._start : self._start + self.filled]

    def read_from(self, transport: Transport) -> int:
        """Read what is there; returns how many bytes that was.

        Raises EOFError at the end of the stream, OSError, and InvalidReceiveError for an impossible length.
        """
        total = 0
        if self.size < 0:
            filled = self._size_filled
            total = transport.recv_into(self._size_view[filled:] if filled else self._size_view)
            self._size_filled += total
            if self._size_filled < LENGTH_BYTES:
                return total
            self.size = self._checked_size()
        while self.filled < self.size:
            if self.filled == self._room and not self._make_room():
                break
            # The view must be gone before the buffer can grow again.
            with self._unfilled() as rest:
                asked = len(rest)
                count = transport.recv_into(rest)
            self.filled += count
            total += count
            if count < asked:
                break
        return total

    def rest(self) -> memoryview | None:
        """The memory that is to be filled next, if there is much of it; to be released before reading on."""
        if self.size < 0 or self._room - self.filled < _MUCH_BYTES:
            return None
        return self._unfilled()

    def ahead(self, size: int) -> memoryview:
        """Memory for the whole frame with its length, if it has no more than `size` bytes and nothing came yet."""
        self._ahead = FrameMemory(LENGTH_BYTES + size)
        return memoryview(self._ahead)

    def advance(self, count: int) -> None:
        """`count` bytes were received into `rest()` or `ahead()`, whichever was asked for last.

        Raises InvalidReceiveError for an impossible length.
        """
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            self.filled += count
            return
        with memoryview(ahead) as view:
            self._size_filled = min(count, LENGTH_BYTES)
            self._size_view[: self._size_filled] = view[: self._size_filled]
        if self._size_filled == LENGTH_BYTES:
            self.size = self._checked_size()
            if count > LENGTH_BYTES:
                self._buffer, self._start = ahead, LENGTH_BYTES
                self.filled = self._room = count - LENGTH_BYTES
                if self._memory is None:
                    self._room = min(len(ahead) - LENGTH_BYTES, self.size)
                else:
                    self._memory.take(self.filled)

    def _make_room(self) -> bool:
        """Have memory for the bytes that come next; False if they have to wait for it."""
        first = min(self.size, FrameMemory.FIRST_BYTES)
        if self._memory is None:
            room = min(self.size, self._room * _GROWTH) if self._room else first
        else:
            room = min(self.size, max(self._likely_bytes, 2 * self.filled, _FIRST_HELD_BYTES))
            self.starved = not self._memory.hold(room, self.size)
            if self.starved:
                return False
        if self._buffer is _NOTHING:
            self._buffer = FrameMemory(max(room, first))
        elif len(self._buffer) < self._start + room:
            self._buffer.grow(self._start + room)
        self._room = room
        return True

    def _unfilled(self) -> memoryview:
        with memoryview(self._buffer) as view:
            return view[self._start + self.filled : self._start + self._room]

    def _checked_size(self) -> int:
        head = bytes(self._size_view)
        size = int.from_bytes(head, "big", signed=True)
        if size < 0 or 0 <= self._max_bytes < size:
            hint = _STRANGERS.get(head, "is this a Kafka listener of the expected security protocol?")
            raise InvalidReceiveError(
                f"{self.source} announced {size} bytes, allowed are 0 to {self._max_bytes}: {hint}",
                size=size,
                limit=self._max_bytes,
            )
        return size
