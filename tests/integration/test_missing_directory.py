"""A log directory that is not there when the broker starts: what it holds is out of reach, and comes back with it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.broker.requests import create, delete, fetch, produce, topics, try_produce, values
from harness.broker.wire import Wire, batch
from kclient.broker.embedded import EmbeddedKafka
from kclient.errors import Errors, IllegalStateError, KafkaStorageError
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)

STORAGE_ERROR = int(Errors.KAFKA_STORAGE_ERROR)


class Disks:
    """A broker over the directories a and b, of which b can go away."""

    def __init__(self, root: Path) -> None:
        self.a, self.b, self._away = root / "a", root / "b", root / "away"
        self.settings: dict[str, Any] = {}

    def broker(self, *names: Path, **settings: Any) -> EmbeddedKafka:
        dirs = [str(path) for path in names or (self.a, self.b)]
        return EmbeddedKafka(
            {"log.dirs": dirs, "offsets.topic.num.partitions": 2, **self.settings, **settings}
        )

    def fill(self) -> list[int]:
        """Make topic o with a record in each of its partitions; those that are in b."""
        with self.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
            create(wire, "o", 4)
            for partition in range(4):
                produce(wire, "o", batch(b"v%d" % partition), partition)
        return self.in_b("o")

    def in_b(self, topic: str) -> list[int]:
        return sorted(int(path.name.rpartition("-")[2]) for path in self.b.glob(f"{topic}-?"))

    def take_away(self) -> None:
        self.b.rename(self._away)

    def bring_back(self) -> None:
        if self.b.is_dir():
            self.b.rmdir()
        self.b.unlink(missing_ok=True)
        self._away.rename(self.b)


@pytest.fixture
def disks(tmp_path: Path) -> Disks:
    return Disks(tmp_path)


def nothing(path: Path) -> None:
    """Leave no trace of the directory."""


@pytest.mark.parametrize("in_its_place", [nothing, Path.mkdir, Path.touch])
def test_the_partitions_of_a_missing_directory_are_offline_until_it_is_back(
    disks: Disks, in_its_place: Callable[[Path], None]
) -> None:
    away = disks.fill()
    assert len(away) == 2
    disks.take_away()
    in_its_place(disks.b)
    for _ in range(2):
        with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
            leaders = {p.partition_index: p.leader_id for p in topics(wire)["o"].partitions}
            for partition in range(4):
                if partition not in away:
                    assert values(wire, "o", partition) == [b"v%d" % partition]
                    continue
                assert leaders[partition] == -1
                assert try_produce(wire, "o", batch(b"x"), partition).error_code == STORAGE_ERROR
                assert fetch(wire, "o", partition).error_code == STORAGE_ERROR
                wanted = [ListOffsetsPartition(partition_index=partition, timestamp=-1)]
                request = ListOffsetsRequest(
                    replica_id=-1, topics=[ListOffsetsTopic(name="o", partitions=wanted)]
                )
                listed = wire.ask(request, 5).topics[0].partitions[0]
                assert (listed.error_code, listed.offset) == (STORAGE_ERROR, -1)
        assert not disks.in_b("o")
        assert len(list(disks.a.glob("o-?"))) == 2, "none was made anew elsewhere"
    disks.bring_back()
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert [values(wire, "o", partition) for partition in range(4)] == [[b"v%d" % p] for p in range(4)]


def test_a_partition_that_is_gone_from_its_directory_begins_anew_with_a_warning(
    disks: Disks, caplog: pytest.LogCaptureFixture
) -> None:
    away = disks.fill()
    shutil.rmtree(disks.b / f"o-{away[0]}")
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert values(wire, "o", away[0]) == []
    assert f"o-{away[0]} is not in {disks.b}, where it should be, and begins anew" in caplog.text
    assert disks.in_b("o") == away


def test_new_partitions_go_to_the_directories_that_are_there(disks: Disks) -> None:
    disks.fill()
    disks.take_away()
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire, "new", 4)
        produce(wire, "new", batch(b"v"), 3)
    disks.bring_back()
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert values(wire, "new", 3) == [b"v"]
    assert disks.in_b("new") == []


@pytest.mark.parametrize("snapshot_bytes", [1, 1 << 20], ids=["in snapshots", "in the log"])
def test_a_topic_that_was_deleted_while_its_disk_was_away_stays_deleted(
    disks: Disks, snapshot_bytes: int
) -> None:
    disks.settings = {"metadata.log.max.record.bytes.between.snapshots": snapshot_bytes}
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire, "again", 4)
        create(wire, "gone", 4)
        for partition in range(4):
            produce(wire, "again", batch(b"old"), partition)
    disks.take_away()
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        for name in ("again", "gone"):
            delete(wire, name)
        create(wire, "again", 4)
        for partition in range(4):
            produce(wire, "again", batch(b"new"), partition)
    with disks.broker():
        pass  # a start between does not forget
    disks.bring_back()
    assert disks.in_b("gone")
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert set(topics(wire)) == {"again"}
        assert [values(wire, "again", partition) for partition in range(4)] == [[b"new"]] * 4
        assert disks.in_b("gone") == disks.in_b("again") == []


def test_a_topic_is_deleted_though_one_of_its_disks_fails(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = disks.fill()
    real = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if path.parent == disks.b:
            raise OSError(5, "Input/output error")
        return real(path, target)

    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        with monkeypatch.context() as failing:
            failing.setattr(Path, "replace", replace)
            delete(wire, "o")
        assert topics(wire) == {}
    assert disks.in_b("o") == away
    assert not list(disks.a.glob("o-?")), "where the disk works they go at once"
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert topics(wire) == {}
    assert disks.in_b("o") == []


def test_a_group_whose_offsets_are_out_of_reach_is_not_told_that_it_has_none(disks: Disks) -> None:
    wanted = [OffsetFetchRequestTopic(name="o", partition_indexes=[0])]
    committed = {}
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire, "o", 2)
        for group in ("g0", "g1"):
            wire.ask(FindCoordinatorRequest(key=group), 2)
            partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
            request = OffsetCommitRequest(
                group_id=group, topics=[OffsetCommitRequestTopic(name="o", partitions=[partition])]
            )
            assert wire.ask(request, 7).topics[0].partitions[0].error_code == 0
    assert len(disks.in_b("__consumer_offsets")) == 1
    disks.take_away()
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        for group in ("g0", "g1"):
            found = wire.ask(OffsetFetchRequest(group_id=group, topics=wanted), 7)
            committed[group] = found.error_code or found.topics[0].partitions[0].committed_offset
            if found.error_code:
                old = wire.ask(OffsetFetchRequest(group_id=group, topics=wanted), 1).topics[0].partitions[0]
                assert old.error_code == found.error_code
                request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
                assert wire.ask(request, 8).groups[0].error_code == found.error_code
                coordinator = wire.ask(FindCoordinatorRequest(key=group), 2)
                assert coordinator.error_code == int(Errors.COORDINATOR_NOT_AVAILABLE)
    assert sorted(committed.values()) == [7, int(Errors.NOT_COORDINATOR)]
    disks.bring_back()
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        for group in ("g0", "g1"):
            found = wire.ask(OffsetFetchRequest(group_id=group, topics=wanted), 7).topics[0].partitions[0]
            assert found.committed_offset == 7


def test_without_the_directory_that_has_the_metadata_log_nothing_is_begun_anew(disks: Disks) -> None:
    disks.fill()
    away = disks.a.rename(disks.a.with_name("a-away"))
    with pytest.raises(KafkaStorageError, match=f"Is the disk of {disks.a} missing") as refused:
        disks.broker().start()
    assert "\n" not in str(refused.value)
    assert not disks.a.exists()
    away.rename(disks.a)
    with disks.broker() as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert [values(wire, "o", partition) for partition in range(4)] == [[b"v%d" % p] for p in range(4)]


def test_directories_are_known_by_their_ids_wherever_they_are(disks: Disks) -> None:
    disks.fill()
    elsewhere = disks.b.rename(disks.b.with_name("elsewhere"))
    with disks.broker(elsewhere, disks.a) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert [values(wire, "o", partition) for partition in range(4)] == [[b"v%d" % p] for p in range(4)]
    with disks.broker(elsewhere, disks.a, disks.b) as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire, "new", 2)
    assert disks.in_b("new"), "b is a new directory now"


def test_a_copy_of_a_directory_is_refused(disks: Disks) -> None:
    disks.fill()
    copied = shutil.copytree(disks.b, disks.b.with_name("copied"))
    with pytest.raises(IllegalStateError, match="one is a copy of the other"):
        disks.broker(disks.a, disks.b, copied).start()
