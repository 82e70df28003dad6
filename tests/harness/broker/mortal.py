"""The embedded broker as a process that kills itself before an operation on files, in the middle of it if it writes.

`python -m harness.broker.mortal OPERATIONS SEED ...` is `kclient ...` that ends so before its OPERATIONS-th, counted
from its start, or if it is negative from when it serves.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.broker.process import BrokerProcess
from kclient.broker import KafkaBroker

_CHANGING = ("replace", "rename", "unlink", "mkdir", "rmdir", "ftruncate", "fdatasync", "fsync")


class MortalBroker(BrokerProcess):
    """A broker that can be told when to die.

    Use as a context manager; it is there after `start`, and until it dies.
    """

    def __init__(self, directory: Path, **settings: str) -> None:
        super().__init__(directory, **settings)
        self._immortal = self.program

    def start_mortal(self, operations: int, seed: int) -> bool:
        """Start a broker that dies before its `operations`-th change of a file; False if it died before it served.

        Negative: what it does before it serves is not counted.
        """
        self.program = [sys.executable, "-m", "harness.broker.mortal", str(operations), str(seed)]
        try:
            self.start()
        except RuntimeError:
            if self.exit_code != -signal.SIGKILL:
                raise
            return False
        finally:
            self.program = self._immortal
        return True

    def dies_within(self, timeout_s: float) -> bool:
        """Wait for the death of the broker; False if it still lives."""
        assert self._process is not None
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def set(self, name: str, value: str) -> None:
        """Change a setting from the next start on."""
        self._settings[name] = value


def die_before(operations: int, seed: int) -> None:
    """Let this process die before its `operations`-th change of a file; a write is then done in part."""
    chance = random.Random(seed)
    count = itertools.count(1)
    counting = threading.Event()
    if operations > 0:
        counting.set()
    start = KafkaBroker.start

    def start_and_count(broker: KafkaBroker, on_listening: Callable[[], None] | None = None) -> None:
        start(broker, on_listening)
        counting.set()

    KafkaBroker.start = start_and_count  # type: ignore[method-assign]

    def patch(name: str, in_part: Callable[..., None] | None = None) -> None:
        real = getattr(os, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            counts = name != "open" or args[1] & (os.O_CREAT | os.O_TRUNC)
            if counts and counting.is_set() and next(count) == abs(operations):
                if in_part is not None:
                    in_part(real, *args)
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        setattr(os, name, watched)

    def in_part(real: Callable[..., int], fd: int, buffers: Any, position: int) -> None:
        data = bytes(buffers) if real.__name__ == "pwrite" else b"".join(map(bytes, buffers))
        os.lseek(fd, position, os.SEEK_SET)
        os.write(fd, data[: chance.randrange(len(data) + 1)])

    for name in (*_CHANGING, "open"):
        patch(name)
    for name in ("pwrite", "pwritev"):
        patch(name, in_part)


if __name__ == "__main__":
    from kclient.cli.main import main

    die_before(int(sys.argv[1]), int(sys.argv[2]))
    sys.exit(main(sys.argv[3:]))
