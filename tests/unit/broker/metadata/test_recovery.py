"""Topics of a broker that starts: what is its own, what is another broker's, and where each partition is put."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

import attrs
import pytest

from kclient.broker.log.checkpoints import MetaProperties
from kclient.broker.log.log_directory import FoundPartition, LogDirectory
from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.cache import (
    CLUSTER_METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    TopicImage,
)
from kclient.broker.metadata.controller import OFFSETS_TOPIC_CONFIGS
from kclient.broker.metadata.recovery import RecoveredTopics, recover_topics
from kclient.broker.metadata.topics import TopicStore
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError

OURS = TopicImage("ours", Uuid.random(), 2, MappingProxyType({"retention.ms": "5"}))
STRANGE = Uuid.random()


class Disk:
    """A journal, and partitions in log directories."""

    def __init__(self, root: Path, count: int = 1) -> None:
        self.dirs = [LogDirectory(root / f"d{number}") for number in range(count)]
        for one in self.dirs:
            one.path.mkdir()
        self.found: list[FoundPartition] = []

    def journal(self, *topics: TopicImage, deleted: TopicImage | None = None) -> None:
        store = TopicStore(self.dirs[0].path)
        store.start(topics, {})
        if deleted is not None:
            store.put(deleted)
            store.delete(deleted)
        store.close()

    def add(self, name: str, number: int, topic_id: Uuid | None, log: bytes | None = None) -> FoundPartition:
        path = self.dirs[0].path / f"{name}-{number}"
        path.mkdir()
        if log is not None:
            (path / f"{0:020d}.log").write_bytes(log)
        one = FoundPartition(TopicPartition(name, number), self.dirs[0], path, topic_id)
        self.found.append(one)
        return one

    def recover(self, *, adopt: bool = False) -> RecoveredTopics:
        return recover_topics(TopicStore(self.dirs[0].path), self.found, self.dirs, adopt=adopt)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_a_new_broker_has_nothing_to_recover(disk: Disk) -> None:
    assert disk.recover() == RecoveredTopics({}, [], [])


@pytest.mark.parametrize("named", [True, False], ids=["that name it", "that name no topic"])
def test_directories_are_those_of_a_topic_of_the_journal(disk: Disk, named: bool) -> None:
    disk.journal(OURS)
    parts = [disk.add("ours", number, OURS.id if named else None) for number in range(2)]
    recovered = disk.recover()
    assert (set(recovered.topics), recovered.partitions, recovered.deleted) == ({"ours"}, parts, [])
    assert dict(recovered.topics["ours"].configs) == {"retention.ms": "5"}


def test_a_topic_of_the_journal_is_there_without_its_directories(disk: Disk) -> None:
    disk.journal(OURS)
    recovered = disk.recover()
    assert (set(recovered.topics), recovered.partitions) == ({"ours"}, [])


@pytest.mark.parametrize("adopt", [False, True])
def test_what_is_left_of_a_deleted_topic_is_removed_and_never_adopted(disk: Disk, adopt: bool) -> None:
    disk.journal(deleted=OURS)
    left = disk.add("ours", 0, OURS.id, b"records")
    assert disk.recover(adopt=adopt) == RecoveredTopics({}, [], [left])


def test_a_topic_made_again_keeps_its_directories_and_loses_those_of_the_deleted_one(disk: Disk) -> None:
    new = TopicImage("ours", Uuid.random(), 1)
    store = TopicStore(disk.dirs[0].path)
    store.start([], {})
    for change in (store.put, store.delete):
        change(OURS)
    store.put(new)
    store.close()
    old, kept = disk.add("ours", 1, OURS.id), disk.add("ours", 0, new.id)
    recovered = disk.recover()
    assert (recovered.topics["ours"].id, recovered.partitions, recovered.deleted) == (new.id, [kept], [old])


@pytest.mark.parametrize("log", [None, b""], ids=["without a log", "with an empty log"])
def test_a_directory_of_a_creation_that_failed_is_removed_while_it_is_empty(
    disk: Disk, log: bytes | None
) -> None:
    disk.journal(deleted=OURS)
    left = disk.add("ours", 0, None, log)
    assert disk.recover().deleted == [left]


def test_records_without_an_id_are_no_left_over_of_a_deleted_topic_of_that_name(disk: Disk) -> None:
    disk.journal(deleted=OURS)
    disk.add("ours", 0, None, b"records")
    with pytest.raises(KafkaStorageError, match=r"does not know \(ours\)"):
        disk.recover()
    assert disk.recover(adopt=True).deleted == []


def test_strangers_refuse_the_start_and_three_of_them_are_named(disk: Disk) -> None:
    disk.journal(OURS)
    for name in ("e", "b", "d", "a", "c"):
        for number in range(2):
            disk.add(name, number, None)
    with pytest.raises(KafkaStorageError, match=r"does not know \(a, b, c and 2 more\)"):
        disk.recover()


@pytest.mark.parametrize("topic_id", [STRANGE, None])
def test_an_adopted_topic_keeps_all_its_records_and_its_id_if_it_has_one(
    disk: Disk, topic_id: Uuid | None, caplog: pytest.LogCaptureFixture
) -> None:
    disk.journal(OURS)
    one = disk.add("theirs", 2, topic_id)
    recovered = disk.recover(adopt=True)
    assert recovered.partitions == [one]
    made = recovered.topics["theirs"]
    assert made.partition_count == 3, "the partitions below it are there too"
    assert dict(made.configs) == {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    assert made.id == topic_id if topic_id else made.id not in {None, Uuid.ZERO, OURS.id}
    assert recovered.topics["ours"] == disk.recover(adopt=True).topics["ours"]
    assert "Adopted topics found on disk: theirs." in caplog.text


def test_an_id_that_some_directories_name_is_that_of_all(disk: Disk) -> None:
    for number, topic_id in enumerate((None, STRANGE, None)):
        disk.add("theirs", number, topic_id)
    made = disk.recover(adopt=True).topics["theirs"]
    assert (made.id, made.partition_count) == (STRANGE, 3)


@pytest.mark.parametrize(
    ("name", "configs"),
    [
        (OFFSETS_TOPIC, dict(OFFSETS_TOPIC_CONFIGS)),
        (TRANSACTION_STATE_TOPIC, {"cleanup.policy": "compact"}),
        (SHARE_GROUP_STATE_TOPIC, {"cleanup.policy": "compact"}),
    ],
)
def test_an_adopted_topic_of_kafkas_own_is_compacted_as_there(
    disk: Disk, name: str, configs: dict[str, str]
) -> None:
    disk.add(name, 0, STRANGE)
    assert dict(disk.recover(adopt=True).topics[name].configs) == configs


def test_directories_of_two_topics_of_one_name_are_not_adopted(disk: Disk) -> None:
    disk.add("theirs", 0, STRANGE)
    disk.add("theirs", 1, Uuid.random())
    with pytest.raises(KafkaStorageError, match=r"theirs-0 belongs to another topic theirs than the rest"):
        disk.recover(adopt=True)


def test_a_directory_that_only_looks_like_a_partition_is_not_adopted_as_millions(disk: Disk) -> None:
    disk.add("backup", 20_260_101, None)
    with pytest.raises(KafkaStorageError, match="backup-20260101 would make a topic of 20260102 partitions"):
        disk.recover(adopt=True)


def test_a_stranger_with_the_name_of_a_topic_of_ours_is_neither_ours_nor_adopted(disk: Disk) -> None:
    disk.journal(OURS)
    disk.add("ours", 0, OURS.id)
    disk.add("ours", 1, STRANGE)
    with pytest.raises(KafkaStorageError, match=r"does not know \(ours\)"):
        disk.recover()
    with pytest.raises(KafkaStorageError, match=r"ours-1 belongs to another topic ours") as refused:
        disk.recover(adopt=True)
    assert str(OURS.id) in str(refused.value)


def test_the_journal_of_kafkas_controllers_is_nobodys_topic(disk: Disk) -> None:
    disk.add(CLUSTER_METADATA_TOPIC, 0, STRANGE)
    with pytest.raises(KafkaStorageError, match=CLUSTER_METADATA_TOPIC):
        disk.recover()
    assert disk.recover(adopt=True) == RecoveredTopics({}, [], [])
    disk.journal(OURS)
    recovered = disk.recover()
    assert (set(recovered.topics), recovered.partitions, recovered.deleted) == ({"ours"}, [], [])


def test_a_first_directory_that_is_new_among_used_ones_is_a_missing_disk(tmp_path: Path) -> None:
    disk = Disk(tmp_path, 2)
    used = MetaProperties("cluster", 1, Uuid.random())
    disk.dirs[1].meta = used
    with pytest.raises(
        KafkaStorageError, match=rf"{disk.dirs[1].path} was used before.*Is the disk of {disk.dirs[0].path}"
    ):
        disk.recover()
    assert disk.recover(adopt=True) == RecoveredTopics({}, [], [])
    disk.dirs[0].meta, disk.dirs[1].meta = used, None
    assert disk.recover() == RecoveredTopics({}, [], []), "a directory that was added behind the first one"
    disk.dirs[0].meta, disk.dirs[1].meta = None, used
    disk.journal()
    assert disk.recover() == RecoveredTopics({}, [], []), "the journal is there"


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogManager]:
    """Two open directories."""
    with ExitStack() as stack:
        made = LogManager([tmp_path / "a", tmp_path / "b"])
        made.startup()
        stack.callback(made.shutdown)
        yield made


def placed(logs: LogManager, topic: TopicImage, *found: tuple[int, LogDirectory]) -> list[Uuid]:
    partitions = [
        FoundPartition(
            TopicPartition(topic.name, number), where, where.path / f"{topic.name}-{number}", topic.id
        )
        for number, where in found
    ]
    (result,) = RecoveredTopics({topic.name: topic}, partitions, []).placed(logs)
    assert attrs.evolve(result, directories=topic.directories) == topic
    return list(result.directories)


def ids(logs: LogManager) -> list[Uuid]:
    return [one.id for one in logs.log_dirs if one.id is not None]


def test_a_partition_is_where_it_was_found_and_not_where_it_was_last(
    logs: LogManager, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = ids(logs)
    first, second = logs.log_dirs
    topic = attrs.evolve(OURS, directories=(b, b))
    assert placed(logs, topic, (0, first), (1, second)) == [a, b]
    assert "begins anew" not in caplog.text


def test_a_partition_that_was_not_found_stays_where_it_was_last(
    logs: LogManager, caplog: pytest.LogCaptureFixture
) -> None:
    a, _ = ids(logs)
    gone = Uuid.random()
    assert placed(logs, attrs.evolve(OURS, directories=(a, gone))) == [a, gone]
    assert f"ours-0 is not in {logs.log_dirs[0].path}, where it should be, and begins anew" in caplog.text
    assert "ours-1" not in caplog.text, "it may be in the directory that is missing"


@pytest.mark.parametrize("directories", [(), (Uuid.ZERO,), (Uuid.ZERO, Uuid.ZERO)])
def test_partitions_that_were_nowhere_are_spread(logs: LogManager, directories: tuple[Uuid, ...]) -> None:
    assert set(placed(logs, attrs.evolve(OURS, directories=directories))) == set(ids(logs))


def test_a_place_is_chosen_for_the_one_partition_that_has_none(logs: LogManager) -> None:
    a, b = ids(logs)
    topic = attrs.evolve(OURS, partition_count=3, directories=(b, Uuid.ZERO, a))
    first, chosen, last = placed(logs, topic, (0, logs.log_dirs[1]), (2, logs.log_dirs[0]))
    assert (first, last) == (b, a)
    assert chosen in {a, b}
