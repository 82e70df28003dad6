"""A consumer of confluent-kafka in a process of its own, which writes down what happens to it.

usage: librdkafka_member.py SERVERS TOPIC GROUP COMMIT SETTINGS NAME HISTORY

The arguments are those of `group_member.py`, with librdkafka's own SETTINGS; COMMIT is always "offsets".
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException

from harness.checker.history import Place
from harness.checker.log import HistoryLog
from harness.programs import end_with_parent


def main() -> None:
    """Read until told to stop."""
    end_with_parent()
    servers, topic, group, _, more, name, path = sys.argv[1:]
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    log = HistoryLog.at(Path(path)).consumer(name, group=group)
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **json.loads(more),
        }
    )

    def places(partitions: Any) -> list[Place]:
        return [Place(each.topic, each.partition) for each in partitions]

    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: log.assigned(places(partitions)),
        on_revoke=lambda _, partitions: log.revoked(places(partitions)),
        on_lost=lambda _, partitions: log.lost(places(partitions)),
    )
    while not stopping.is_set():
        # One by one: what consume() gathers may be from before a rebalance that it calls back for.
        message = consumer.poll(0.1)
        if message is None or message.error() is not None:
            continue
        place = Place(message.topic(), message.partition())
        log.polled({place: [(message.offset(), message.value())]})
        number = log.commit(group, {place: message.offset() + 1})
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            print(f"not committed: {error}", file=sys.stderr)
            log.committed(number, "unknown")
        else:
            log.committed(number)
    consumer.close()
    log.closed()


if __name__ == "__main__":
    main()
