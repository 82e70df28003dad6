"""Java's consumer (Kafka's VerifiableConsumer), whose words are written down as a history.

usage: java_member.py SERVERS TOPIC GROUP COMMIT SETTINGS NAME HISTORY

The arguments are those of `group_member.py`; SETTINGS are those of the consumer, and options of VerifiableConsumer for
what it sets itself. COMMIT is always "offsets". SIGTERM makes it leave the group.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness.checker.history import Place
from harness.checker.log import HistoryLog
from harness.programs import end_with_parent
from harness.real_kafka.node import SHORT_LIVED, classpath

_CLASS = "org.apache.kafka.tools.VerifiableConsumer"
_TURNS = {"partitions_assigned": "assigned", "partitions_revoked": "revoked"}


class Scribe:
    """Writes Java's events into a history, at the times that Java gives them, which are in whole milliseconds."""

    def __init__(self, history: HistoryLog, name: str, group: str) -> None:
        self._history = history
        self._log = history.consumer(name, group=group)
        self._group = group
        self._records: dict[Place, list[tuple[int, bytes | None]]] = {}
        self._commit: int | None = None

    def note(self, event: dict[str, Any]) -> None:
        """Write one event down; records when Java has told of all of one poll, which it does before it commits them."""
        kind = event["name"]
        if kind in _TURNS:
            places = [list(Place(each["topic"], each["partition"])) for each in event["partitions"]]
            self._history.write(_TURNS[kind], self._log.name, places, at=self._time(event))
        elif kind == "record_data":
            place = Place(event["topic"], event["partition"])
            value = event["value"]
            record = (event["offset"], None if value is None else value.encode())
            self._records.setdefault(place, []).append(record)
        elif kind == "records_consumed":
            records, self._records = self._records, {}
            at = self._time(event)
            self._log.polled(records, at=at)
            ends = {place: of_place[-1][0] + 1 for place, of_place in records.items()}
            self._commit = self._log.commit(self._group, ends, at=at)
        elif kind == "offsets_committed" and self._commit is not None:
            self._log.committed(self._commit, "ok" if event["success"] else "unknown")
        elif kind == "shutdown_complete":
            self._log.closed()

    @staticmethod
    def _time(event: dict[str, Any]) -> float:
        ago = max(time.time() - event["timestamp"] / 1000, 0.0)
        return time.monotonic() - ago


def scribe(group: str, name: str, path: str) -> None:
    """Write down what comes on the standard input, to its end."""
    writing = Scribe(HistoryLog.at(Path(path)), name, group)
    for line in sys.stdin:
        if line.startswith("{"):
            writing.note(json.loads(line))


def main() -> None:
    """Run Java until told to stop."""
    end_with_parent()
    servers, topic, group, _, more, name, path = sys.argv[1:]
    given = json.loads(more)
    options = [word for option, value in given.items() if option.startswith("--") for word in (option, value)]
    properties = Path(f"{path}.properties")
    properties.write_text(
        "".join(f"{name}={value}\n" for name, value in given.items() if not name.startswith("--"))
    )
    # In a session of its own: when Java is killed with all that belongs to it, its last words are written down still.
    writer = subprocess.Popen(
        [sys.executable, __file__, group, name, path], stdin=subprocess.PIPE, start_new_session=True
    )
    java = subprocess.Popen(
        [
            *("java", *SHORT_LIVED, "-Xmx128m", "-cp", classpath(), _CLASS, "--verbose"),
            *("--bootstrap-server", servers, "--topic", topic, "--group-id", group),
            *("--reset-policy", "earliest", "--consumer.config", str(properties), *options),
        ],
        stdout=writer.stdin,
    )
    assert writer.stdin is not None
    writer.stdin.close()
    signal.signal(signal.SIGTERM, lambda *_: java.terminate())
    code = java.wait()
    writer.wait()
    # Java says 143 when it has ended well after SIGTERM, which ends it the hard way before it has begun.
    sys.exit(0 if code in (0, 143, -signal.SIGTERM) else f"Java ended with {code}")


if __name__ == "__main__":
    if len(sys.argv) == 4:
        scribe(*sys.argv[1:])
    else:
        main()
