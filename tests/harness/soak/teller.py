"""A teller of the bank in a process of its own.

usage: teller.py SERVERS SEED VERSION SETTINGS NAME HISTORY

VERSION is "TV1" or "TV2"; SETTINGS are those of the producer, as JSON. SIGTERM makes it finish and leave the group.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
from pathlib import Path

from harness.checker.log import HistoryLog
from harness.programs import end_with_parent
from harness.soak.bank import Teller
from kclient.client.network_client import NetworkClient


def as_an_older_client() -> None:
    """Take no broker for one that ends transactions with a new epoch."""
    NetworkClient.finalized_level = lambda self, feature: 0  # type: ignore[method-assign]


def main() -> int:
    """Book until told to stop; 1 if anything went wrong."""
    end_with_parent()
    servers, seed, version, settings, name, path = sys.argv[1:]
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    if version == "TV1":
        as_an_older_client()
    log = HistoryLog.at(Path(path))
    teller = Teller(servers, name, random.Random(f"{seed} {name}"), log, **json.loads(settings))
    while not stopping.wait(0.2) and teller.is_alive():
        pass
    teller.end()
    teller.wait()
    print(dict(teller.counts), *teller.problems, sep="\n")
    return 1 if teller.problems or not stopping.is_set() else 0


if __name__ == "__main__":
    sys.exit(main())
