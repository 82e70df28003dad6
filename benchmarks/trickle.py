"""A process that writes a few records a second to many partitions: `python -m benchmarks.trickle SERVERS TOPIC N RATE`.

It writes to the N partitions in turn, and ends with its standard input.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kclient.producer import KafkaProducer

_ROOT = Path(__file__).resolve().parent.parent
VALUE = bytes(100)


@contextmanager
def trickle(servers: str, topic: str, partitions: int, records_per_s: int) -> Iterator[None]:
    """Have it written to while the block lasts."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.trickle",
        servers,
        topic,
        str(partitions),
        str(records_per_s),
    ]
    with subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE) as process:
        try:
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()


def main() -> None:
    """Write until standard input ends."""
    servers, topic, partitions, records_per_s = sys.argv[1:]
    logging.disable(logging.WARNING)  # a new topic has leaders a moment later
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer:
        began_s = time.monotonic()
        sent = 0
        while not ended.is_set():
            producer.send(topic, VALUE, partition=sent % int(partitions))
            sent += 1
            ended.wait(max(began_s + sent / int(records_per_s) - time.monotonic(), 0))


if __name__ == "__main__":
    main()
