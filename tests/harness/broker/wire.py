"""Talking to a broker in messages, over a plain socket and with our own codec."""

from __future__ import annotations

import socket
import struct
import time
from types import TracebackType
from typing import Any, Self

from kclient.protocol.header import parse_response, request_buffers
from kclient.protocol.schema import Message
from kclient.record import MemoryRecordsBuilder

_LENGTH = struct.Struct(">i")


class Wire:
    """One connection. A context manager; one thread at a time."""

    def __init__(self, address: str, timeout_s: float = 10.0, client_id: str = "wire") -> None:
        host, _, port = address.rpartition(":")
        self.sock = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
        self.client_id = client_id
        self._correlation_id = 0
        self._expected: list[tuple[Any, int, int]] = []

    def send(self, request: Message, version: int) -> None:
        """Write a request whose answer `receive` will read."""
        self._correlation_id += 1
        self.sock.sendall(b"".join(request_buffers(request, version, self._correlation_id, self.client_id)))
        self._expected.append((request.API_KEY, version, self._correlation_id))

    def receive(self) -> Any:
        """The answer to the oldest request without one. Raises EOFError if the broker closes the connection."""
        api, version, expected = self._expected.pop(0)
        correlation_id, message = parse_response(api, version, self.read_frame())
        assert correlation_id == expected
        return message

    def ask(self, request: Message, version: int) -> Any:
        """Send and receive."""
        self.send(request, version)
        return self.receive()

    def read_frame(self) -> bytes:
        """The next frame without its length."""
        return self._read(_LENGTH.unpack(self._read(4))[0])

    def closed_by_peer(self) -> bool:
        """Wait for what comes next; True if that is the end."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self.sock.recv(count - len(parts))
            if not part:
                raise EOFError
            parts += part
        return bytes(parts)


def batch(*values: bytes, first_ms: int | None = None, **options: Any) -> bytes:
    """A record batch as a producer sends it, with timestamps a millisecond apart from `first_ms` (now) on."""
    builder = MemoryRecordsBuilder(**options)
    for number, value in enumerate(values):
        builder.append((int(time.time() * 1000) if first_ms is None else first_ms) + number, None, value)
    return builder.close()
