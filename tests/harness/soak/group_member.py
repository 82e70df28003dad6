"""A consumer in a process of its own, which writes down what happens to it: one JSON object a line.

usage: group_member.py SERVERS TOPIC GROUP AUTO_COMMIT JOURNAL

What `poll` returned is written before the next call of the consumer, so nothing can be committed that is not in the
journal already. Times are CLOCK_MONOTONIC, which all processes share. SIGTERM makes it leave the group.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Collection
from typing import TextIO

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener, ConsumerRecords, KafkaConsumer
from kclient.errors import CommitFailedError, RetriableError


class Journal:
    """The file of one member."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, event: str, content: object = None) -> None:
        """Add a line; it survives a kill from here on."""
        line = {"at": time.monotonic(), "event": event, "content": content}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


class Listener(ConsumerRebalanceListener):
    """Writes down what the member owns, and commits before it gives up anything."""

    def __init__(self, consumer: KafkaConsumer[bytes, bytes], journal: Journal, auto_commit: bool) -> None:
        self._consumer = consumer
        self._journal = journal
        self._auto_commit = auto_commit

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._journal.write("assigned", _numbers(partitions))

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        if partitions and not self._auto_commit:
            commit(self._consumer, self._journal)
        self._journal.write("revoked", _numbers(partitions))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._journal.write("lost", _numbers(partitions))


def commit(consumer: KafkaConsumer[bytes, bytes], journal: Journal) -> None:
    """Commit the positions; a group that has moved on meanwhile may refuse."""
    try:
        consumer.commit_sync()
    except (CommitFailedError, RetriableError) as error:
        journal.write("uncommitted", str(error))


def _numbers(partitions: Collection[TopicPartition]) -> list[int]:
    return sorted(tp.partition for tp in partitions)


def _ranges(records: ConsumerRecords[bytes, bytes]) -> dict[int, list[int]]:
    """Partition -> first offset, last offset, how many."""
    return {
        tp.partition: [batch[0].offset, batch[-1].offset, len(batch)]
        for tp, batch in records.by_partition().items()
    }


def main() -> None:
    """Read until told to stop."""
    servers, topic, group, auto, path = sys.argv[1:]
    auto_commit = auto == "true"
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    with open(path, "w", encoding="utf-8") as file:
        journal = Journal(file)
        journal.write("started")
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
            consumer.subscribe([topic], listener=Listener(consumer, journal, auto_commit))
            while not stopping.is_set():
                records = consumer.poll(100)
                if records:
                    journal.write("read", _ranges(records))
                    if not auto_commit:
                        commit(consumer, journal)
        journal.write("closed")


if __name__ == "__main__":
    main()
