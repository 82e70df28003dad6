"""PortionedTransport: takes and gives bytes in the portions that a test says."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kclient.network.transport import Buffer, PlaintextTransport


class PortionedTransport(PlaintextTransport):
    """Takes at most `portions[i]` bytes at the i-th send and gives as much at the i-th read; then everything."""

    def __init__(self, incoming: bytes = b"", portions: Sequence[int] = ()) -> None:
        self.incoming = bytearray(incoming)
        self.taken = bytearray()
        self.portions = list(portions)
        self.sends = 0

    def send(self, buffers: Sequence[Buffer]) -> int:
        self.sends += 1
        data = b"".join(buffers)
        portion = data[: self.portions.pop(0)] if self.portions else data
        self.taken += portion
        return len(portion)

    def send_file(self, fd: int, position: int, size: int) -> int:
        return self.send([os.pread(fd, size, position)])

    def recv_into(self, buffer: memoryview) -> int:
        limit = min(len(buffer), self.portions.pop(0) if self.portions else len(buffer), len(self.incoming))
        buffer[:limit] = self.incoming[:limit]
        del self.incoming[:limit]
        return limit
