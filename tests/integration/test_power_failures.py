"""A broker that forces to disk what it acknowledges has it after a power failure: topics, records, offsets."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from harness.broker.power import RecordingDisk, not_forced
from harness.broker.requests import create, delete, find_coordinator, produce, topics
from harness.broker.wire import Wire, batch
from kclient.broker.embedded import EmbeddedKafka
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kclient.record.memory_records import iter_batches

SETTINGS: dict[str, Any] = {
    "kclient_ack_policy": "batch",
    "offsets_topic_num_partitions": 1,
    "log_segment_bytes": 1000,
    "log_segment_delete_delay_ms": 0,
    "log_flush_offset_checkpoint_interval_ms": 10,
    "metadata_log_max_record_bytes_between_snapshots": 1500,
}
CUTS = 15


def commit(wire: Wire, offset: int) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(name="kept", partitions=[partition])]
    )
    assert wire.ask(request, 8).topics[0].partitions[0].error_code == 0


def committed(wire: Wire) -> int:
    wanted = [OffsetFetchRequestTopic(name="kept", partition_indexes=[0])]
    return int(
        wire.ask(OffsetFetchRequest(group_id="g", topics=wanted), 7).topics[0].partitions[0].committed_offset
    )


def everything(wire: Wire, topic: str) -> list[bytes]:
    """The values of all records of the first partition, whichever segment they are in."""
    found: list[bytes] = []
    while True:
        wanted = FetchPartition(partition=0, fetch_offset=len(found), partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 20,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        data = wire.ask(request, 12).responses[0].partitions[0]
        assert data.error_code == 0
        records = [record.value for one in iter_batches(data.records) for record in one.records()]
        if not records:
            return found
        found += records


def use(directory: Path, disk: RecordingDisk) -> None:
    """Do all kinds of things, in two lives of the broker, and note what was promised."""
    number = 0
    for life in range(2):
        with EmbeddedKafka(data_dir=directory, **SETTINGS) as kafka, Wire(kafka.bootstrap_servers) as wire:
            for name in ("kept", "doomed") if life == 0 else ("later",):
                create(wire, name, 2)
                disk.note(("created", name))
            find_coordinator(wire, "g")
            for _ in range(12):
                number += 1
                value = b"%d" % number + b"." * 100
                produce(wire, "kept", batch(value))
                disk.note(("produced", value))
                if number % 4 == 0:
                    commit(wire, number)
                    disk.note(("committed", number))
            if life == 0:
                disk.note(("deleting", "doomed"))
                delete(wire, "doomed")
                disk.note(("deleted", "doomed"))
                create(wire, "doomed")
                disk.note(("created", "doomed again"))


def check(directory: Path, promised: list[tuple[str, Any]]) -> None:
    """Start on what is left, and compare."""
    said: dict[str, list[Any]] = {}
    for what, value in promised:
        said.setdefault(what, []).append(value)
    with EmbeddedKafka(data_dir=directory, **SETTINGS) as kafka, Wire(kafka.bootstrap_servers) as wire:
        there = topics(wire)
        created = set(said.get("created", ()))
        expected = created & {"kept", "later"}
        if "deleting" not in said:
            expected |= created & {"doomed"}
        assert expected <= there.keys()
        if "doomed again" in created:
            assert len(there["doomed"].partitions) == 1
        if "kept" in there:
            produced = said.get("produced", [])
            found = everything(wire, "kept")
            assert found[: len(produced)] == produced
            assert len(found) <= len(produced) + 1
            produce(wire, "kept", batch(b"after"))
            if said.get("committed"):
                assert committed(wire) >= said["committed"][-1]


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(2))
def test_what_was_promised_outlives_a_power_failure(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    root = tmp_path / "disk"
    root.mkdir()
    disk = RecordingDisk(root)
    with disk.recording():
        use(root / "d", disk)
    for number in range(CUTS):
        at = chance.randrange(len(disk) + 1)
        left = tmp_path / f"left-{number}"
        disk.after_crash(at, left, chance)
        with not_forced():
            check(left / "d", disk.noted(at))
