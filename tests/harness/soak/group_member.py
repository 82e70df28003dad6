"""A consumer in a process of its own, which writes down what happens to it.

usage: group_member.py SERVERS TOPIC GROUP COMMIT SETTINGS NAME HISTORY

COMMIT is "auto"; or "positions", then it commits all its positions after every poll that returned something, again
after the next one if that is refused, and before it gives up anything; or "offsets", then it commits what the last poll
returned, and writes that down as well. SETTINGS are more of them, as JSON. What `poll` returned is written before the
next call of the consumer, so nothing can be committed that is not in the history already. SIGTERM makes it leave the
group. What the consumer logs goes to the standard error.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from collections.abc import Collection
from pathlib import Path

from harness.checker.history import Place
from harness.checker.log import ConsumerLog, HistoryLog
from harness.programs import end_with_parent
from harness.soak.recorded import RecordingListener, write_poll
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecords, KafkaConsumer
from kclient.errors import CommitFailedError, RebalanceInProgressError, RetriableError

CLASSIC = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 300}


class CommittingListener(RecordingListener):
    """Commits before it gives up anything."""

    def __init__(self, consumer: KafkaConsumer[bytes, bytes], log: ConsumerLog) -> None:
        super().__init__(log)
        self._consumer = consumer

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        try:
            self._consumer.commit_sync()
        except CommitFailedError:
            logging.exception("Lost before they were given up")
            super().on_partitions_lost(partitions)
        else:
            super().on_partitions_revoked(partitions)


def commit_positions(consumer: KafkaConsumer[bytes, bytes]) -> bool:
    """Commit the positions; returns False if a group that has moved on meanwhile refuses."""
    try:
        consumer.commit_sync()
    except (CommitFailedError, RebalanceInProgressError, RetriableError) as error:
        logging.warning("Not committed: %s", error)
        return False
    return True


def commit_offsets(
    consumer: KafkaConsumer[bytes, bytes],
    records: ConsumerRecords[bytes, bytes],
    group: str,
    log: ConsumerLog,
) -> None:
    """Commit what one poll returned, and write that down; a group that has moved on meanwhile may refuse."""
    ends = {tp: batch[-1].offset + 1 for tp, batch in records.by_partition().items()}
    number = log.commit(group, {Place(*tp): offset for tp, offset in ends.items()})
    try:
        consumer.commit_sync({tp: OffsetAndMetadata(offset) for tp, offset in ends.items()})
    except (CommitFailedError, RebalanceInProgressError):
        log.committed(number, "fail")
    except RetriableError:
        log.committed(number, "unknown")
    else:
        log.committed(number)


def main() -> None:
    """Read until told to stop."""
    end_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(message)s")
    servers, topic, group, commit, more, name, path = sys.argv[1:]
    auto_commit = commit == "auto"
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    # Commits that are not written down count as the consumer's own.
    log = HistoryLog.at(Path(path)).consumer(name, group=group, auto_commit=commit != "offsets")
    settings = {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": auto_commit,
        "auto.commit.interval.ms": 200,
        "max.poll.records": 200,
        **(CLASSIC if "group.protocol" not in json.loads(more) else {}),
        **json.loads(more),
    }
    with KafkaConsumer(settings) as consumer:
        positions = commit == "positions"
        listener = CommittingListener(consumer, log) if positions else RecordingListener(log)
        consumer.subscribe([topic], listener=listener)
        refused = False
        while not stopping.is_set():
            records = consumer.poll(100)
            write_poll(log, records)
            if records and commit == "offsets":
                commit_offsets(consumer, records, group, log)
            elif positions and (records or refused):
                refused = not commit_positions(consumer)
    log.closed()


if __name__ == "__main__":
    main()
