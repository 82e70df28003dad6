"""The logs of a cluster, those of deleted topics included, read from disk by Kafka's own tool."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import attrs

from harness.real_kafka.node import tool

_FILES_AT_ONCE = 200
_TOOL_TIMEOUT_S = 600.0
_FILE = re.compile(r"Dumping (.*)")
_BATCH = re.compile(
    r"baseOffset: (\d+) .*baseSequence: (-?\d+) .*producerId: (-?\d+) producerEpoch: (-?\d+) .*isvalid: (\w+)"
)
_RECORD = re.compile(r"\| offset: (\d+) .*payload: (.*)")


@attrs.define(frozen=True)
class LoggedRecord:
    """A record, and who wrote its batch: producer id, epoch and first sequence."""

    offset: int
    value: bytes
    batch: str


@attrs.define
class PartitionLog:
    """All of a partition of a topic, for as long as the topic had this id."""

    topic: str
    partition: int
    topic_id: str
    records: list[LoggedRecord] = attrs.Factory(list)
    damage: list[str] = attrs.Factory(list)


def read_logs(log_dirs: Iterable[Path], topics: Iterable[str]) -> list[PartitionLog]:
    """The logs of `topics`, each from the replica that has most; the others are its followers."""
    longest: dict[tuple[str, int], tuple[int, Path, str]] = {}
    wanted = set(topics)
    for directory in (path for log_dir in log_dirs for path in log_dir.iterdir() if path.is_dir()):
        # Named topic-partition, or topic-partition.<hash>-delete when the topic was deleted.
        found = re.fullmatch(r"(.+)-(\d+)(?:\.[0-9a-f]{32}-delete)?", directory.name)
        if found is None or found[1] not in wanted:
            continue
        topic_id = re.search(r"topic_id: (\S+)", (directory / "partition.metadata").read_text())
        assert topic_id is not None
        size = sum(path.stat().st_size for path in directory.glob("*.log"))
        key = topic_id[1], int(found[2])
        if key not in longest or size > longest[key][0]:
            longest[key] = size, directory, found[1]
    logs = {
        directory: PartitionLog(topic, partition, topic_id)
        for (topic_id, partition), (_, directory, topic) in longest.items()
    }
    files = sorted(str(path) for directory in logs for path in directory.glob("*.log"))
    for begin in range(0, len(files), _FILES_AT_ONCE):
        arguments = "--print-data-log", "--files", ",".join(files[begin : begin + _FILES_AT_ONCE])
        parse_dump(
            tool("org.apache.kafka.tools.DumpLogSegments", *arguments, timeout_s=_TOOL_TIMEOUT_S), logs
        )
    return list(logs.values())


def parse_dump(dump: str, logs: dict[Path, PartitionLog]) -> None:
    """Put the records that the tool printed into the logs of their directories."""
    log: PartitionLog | None = None
    batch = ""
    for line in dump.splitlines():
        if found := _RECORD.match(line):
            assert log is not None
            log.records.append(LoggedRecord(int(found[1]), found[2].encode(), batch))
        elif found := _BATCH.match(line):
            assert log is not None
            batch = f"producer {found[3]} epoch {found[4]} sequence {found[2]}"
            if found[5] != "true":
                log.damage.append(f"the batch at offset {found[1]} is not valid")
        elif found := _FILE.match(line):
            log = logs[Path(found[1]).parent]
