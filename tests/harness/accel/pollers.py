"""Both Pollers, and sockets for them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from kclient._accel.reference import poller as reference_poller
from kclient._accel.shared.readiness import EVENT_READ, EVENT_WRITE

native = pytest.importorskip("kclient._accel.native.poller", reason="the native body is not built")
if not native.AVAILABLE:
    pytest.skip("the native Poller needs epoll", allow_module_level=True)

BODIES: dict[str, Any] = {"python": reference_poller.Poller, "c": native.Poller}
BOTH = EVENT_READ | EVENT_WRITE
LONG_MS = 60_000


Ends = tuple[socket.socket, socket.socket]


def pair() -> Ends:
    """Connected and not blocking."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    return ours, theirs


def tcp() -> Ends:
    """Connected over TCP; the second one, the peer's, blocks."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        theirs = socket.create_connection(listening.getsockname())
        ours, _ = listening.accept()
    ours.setblocking(False)
    return ours, theirs


def elapsed_ms(call: Callable[[], object]) -> float:
    """The time that `call` takes."""
    started = time.monotonic()
    call()
    return (time.monotonic() - started) * 1000
