"""TCP ports that are free, closed, or listened on by nobody who answers."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

# Below the ports that systems give to outgoing connections and to whoever binds port 0 (from 32768, or 49152): nothing
# takes one of these between the answer and the server's start.
_PORTS = range(12_000, 32_000)
_LOCKS = Path(tempfile.gettempdir()) / f"kclient-test-ports-{os.getuid()}"
_turn = itertools.count(os.getpid() * 97)
_mine: dict[int, IO[bytes]] = {}  # locked for as long as this process lives


def free_port() -> int:
    """A free TCP port that no call gives again while this process lives, here or in another test process."""
    _LOCKS.mkdir(exist_ok=True)
    for _ in _PORTS:
        port = _PORTS[next(_turn) % len(_PORTS)]
        if port not in _mine and _lock(port):
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with contextlib.suppress(OSError):
                    probe.bind(("127.0.0.1", port))
                    return port
    raise RuntimeError(f"no free port in {_PORTS}")


def _lock(port: int) -> bool:
    """Take `port` for this process; False where another one has it."""
    file = (_LOCKS / str(port)).open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return False
    _mine[port] = file
    return True


def closed_port() -> int:
    """A port of 127.0.0.1 where nobody listens."""
    return free_port()


@contextlib.contextmanager
def unanswered_port() -> Iterator[int]:
    """A port of 127.0.0.1 where connecting takes for ever, as if a firewall dropped it all."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        # Nobody accepts: once the queue is full, the kernel answers no more.
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        port: int = listening.getsockname()[1]
        yield port
