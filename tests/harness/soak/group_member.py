"""A consumer in a process of its own, which writes down what happens to it.

usage: group_member.py SERVERS TOPIC GROUP AUTO_COMMIT NAME HISTORY

What `poll` returned is written before the next call of the consumer, so nothing can be committed that is not in the
history already. SIGTERM makes it leave the group.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Collection
from pathlib import Path

from harness.checker.log import ConsumerLog, HistoryLog
from harness.soak.recorded import RecordingListener, write_poll
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import CommitFailedError, RetriableError


class Listener(RecordingListener):
    """Commits before it gives up anything."""

    def __init__(self, consumer: KafkaConsumer[bytes, bytes], log: ConsumerLog, auto_commit: bool) -> None:
        super().__init__(log)
        self._consumer = consumer
        self._auto_commit = auto_commit

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        if partitions and not self._auto_commit:
            commit(self._consumer)
        super().on_partitions_revoked(partitions)


def commit(consumer: KafkaConsumer[bytes, bytes]) -> None:
    """Commit the positions; a group that has moved on meanwhile may refuse."""
    try:
        consumer.commit_sync()
    except (CommitFailedError, RetriableError) as error:
        print(f"not committed: {error}", file=sys.stderr)


def main() -> None:
    """Read until told to stop."""
    servers, topic, group, auto, name, path = sys.argv[1:]
    auto_commit = auto == "true"
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    log = HistoryLog.at(Path(path)).consumer(name, group=group, auto_commit=auto_commit)
    with KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=auto_commit,
        auto_commit_interval_ms=200,
        session_timeout_ms=3000,
        heartbeat_interval_ms=300,
        max_poll_records=200,
    ) as consumer:
        consumer.subscribe([topic], listener=Listener(consumer, log, auto_commit))
        while not stopping.is_set():
            records = consumer.poll(100)
            write_poll(log, records)
            if records and not auto_commit:
                commit(consumer)
    log.closed()


if __name__ == "__main__":
    main()
