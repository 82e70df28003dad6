"""Knowing that the process was forked.

A forked child inherits a client's sockets and its epoll descriptor, but not its I/O thread. Whatever the child does
with them reaches the parent's connections, so a client of the parent refuses to work in the child, at once.
"""

from __future__ import annotations

import os

from kclient._accel import forks
from kclient.errors import ForkedClientError


class ForkGuard:
    """Remembers the process a client was made in. Thread-safe."""

    __slots__ = ("_generation", "_pid", "_what")

    # Finalizers ask for it, and at the end of the interpreter the names of this module may be gone.
    _getpid = staticmethod(os.getpid)

    def __init__(self, what: str) -> None:
        self._what = what
        self._generation = forks.generation
        self._pid = os.getpid()

    @property
    def forked(self) -> bool:
        """True in a child of the process that made this guard."""
        return self._getpid() != self._pid

    def check(self) -> None:
        """Raise `ForkedClientError` in a child of the process that made this guard."""
        if forks.generation != self._generation:
            raise ForkedClientError(
                f"{self._what} was created before os.fork() and cannot be used in the child process: its I/O thread "
                "and connections belong to the parent. Create a new one in the child."
            )
