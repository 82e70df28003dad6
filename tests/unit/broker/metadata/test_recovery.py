"""Topics of a broker that starts: what is its own, what is another broker's, and where each partition is put."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

import attrs
import pytest

from harness.mock_time import MockTime
from kclient.broker.log.checkpoints import MetaProperties
from kclient.broker.log.log_directory import FoundPartition, LogDirectory
from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.controller import OFFSETS_TOPIC_CONFIGS
from kclient.broker.metadata.metadata_directory import OLD_JOURNAL, find_metadata_log
from kclient.broker.metadata.metadata_store import FORMAT_FEATURE, FORMAT_LEVEL, MetadataStore
from kclient.broker.metadata.recovered_topic import RecoveredTopic
from kclient.broker.metadata.recovery import RecoveredTopics, recover_topics
from kclient.broker.metadata.registration import partition_record
from kclient.broker.metadata.topic_names import (
    CLUSTER_METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError
from kclient.protocol.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kclient.protocol.schema import Message

OURS = RecoveredTopic("ours", Uuid.random(), 2, MappingProxyType({"retention.ms": "5"}))
STRANGE = Uuid.random()
DIRECTORY = Uuid.random()
NODE = 1


class Disk:
    """A metadata log, and partitions in log directories."""

    def __init__(self, root: Path, count: int = 1) -> None:
        self.dirs = [LogDirectory(root / f"d{number}") for number in range(count)]
        for one in self.dirs:
            one.path.mkdir()
        self.found: list[FoundPartition] = []

    def metadata(self, *topics: RecoveredTopic, deleted: RecoveredTopic | None = None) -> None:
        """Write a metadata log that knows these topics, and one that was deleted before them."""
        records: list[Message] = [FeatureLevelRecord(name=FORMAT_FEATURE, feature_level=FORMAT_LEVEL)]
        if deleted is not None:
            records += [*_records(deleted), RemoveTopicRecord(topic_id=deleted.id)]
        store = self._store()
        store.start()
        store.commit([*records, *(record for topic in topics for record in _records(topic))])
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
        return recover_topics(self._store(), self.found, self.dirs, self.dirs[0], node_id=NODE, adopt=adopt)

    def _store(self) -> MetadataStore:
        log = find_metadata_log([one.path for one in self.dirs], None)
        return MetadataStore(log, MockTime(), snapshot_bytes=1 << 40)


def _records(topic: RecoveredTopic) -> list[Message]:
    directories = topic.directories or [DIRECTORY] * topic.partition_count
    return [
        TopicRecord(name=topic.name, topic_id=topic.id),
        *(
            ConfigRecord(resource_type=2, resource_name=topic.name, name=name, value=value)
            for name, value in topic.configs.items()
        ),
        *(
            partition_record(topic.id, number, NODE, directory, leader=NODE)
            for number, directory in enumerate(directories)
        ),
    ]


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_a_new_broker_has_nothing_to_recover(disk: Disk) -> None:
    assert disk.recover() == RecoveredTopics({}, [], [])


@pytest.mark.parametrize("named", [True, False], ids=["that name it", "that name no topic"])
def test_directories_are_those_of_a_topic_of_the_metadata(disk: Disk, named: bool) -> None:
    disk.metadata(OURS)
    parts = [disk.add("ours", number, OURS.id if named else None) for number in range(2)]
    recovered = disk.recover()
    assert (set(recovered.topics), recovered.partitions, recovered.deleted) == ({"ours"}, parts, [])
    assert dict(recovered.topics["ours"].configs) == {"retention.ms": "5"}


def test_a_topic_of_the_metadata_is_there_without_its_directories(disk: Disk) -> None:
    disk.metadata(OURS)
    recovered = disk.recover()
    assert (set(recovered.topics), recovered.partitions) == ({"ours"}, [])


@pytest.mark.parametrize("adopt", [False, True])
def test_what_is_left_of_a_deleted_topic_is_removed_and_never_adopted(disk: Disk, adopt: bool) -> None:
    disk.metadata(deleted=OURS)
    left = disk.add("ours", 0, OURS.id, b"records")
    assert disk.recover(adopt=adopt) == RecoveredTopics({}, [], [left])


def test_a_topic_made_again_keeps_its_directories_and_loses_those_of_the_deleted_one(disk: Disk) -> None:
    new = RecoveredTopic("ours", Uuid.random(), 1)
    disk.metadata(new, deleted=OURS)
    old, kept = disk.add("ours", 1, OURS.id), disk.add("ours", 0, new.id)
    recovered = disk.recover()
    assert (recovered.topics["ours"].id, recovered.partitions, recovered.deleted) == (new.id, [kept], [old])


@pytest.mark.parametrize("log", [None, b""], ids=["without a log", "with an empty log"])
def test_a_directory_of_a_creation_that_failed_is_removed_while_it_is_empty(
    disk: Disk, log: bytes | None
) -> None:
    disk.metadata(deleted=OURS)
    left = disk.add("ours", 0, None, log)
    assert disk.recover().deleted == [left]


def test_records_without_an_id_are_no_left_over_of_a_deleted_topic_of_that_name(disk: Disk) -> None:
    disk.metadata(deleted=OURS)
    disk.add("ours", 0, None, b"records")
    with pytest.raises(KafkaStorageError, match=r"does not know \(ours\)"):
        disk.recover()
    assert disk.recover(adopt=True).deleted == []


def test_strangers_refuse_the_start_and_three_of_them_are_named(disk: Disk) -> None:
    disk.metadata(OURS)
    for name in ("e", "b", "d", "a", "c"):
        for number in range(2):
            disk.add(name, number, None)
    with pytest.raises(KafkaStorageError, match=r"does not know \(a, b, c and 2 more\)"):
        disk.recover()


@pytest.mark.parametrize("topic_id", [STRANGE, None])
def test_an_adopted_topic_keeps_all_its_records_and_its_id_if_it_has_one(
    disk: Disk, topic_id: Uuid | None, caplog: pytest.LogCaptureFixture
) -> None:
    disk.metadata(OURS)
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
    disk.metadata(OURS)
    disk.add("ours", 0, OURS.id)
    disk.add("ours", 1, STRANGE)
    with pytest.raises(KafkaStorageError, match=r"does not know \(ours\)"):
        disk.recover()
    with pytest.raises(KafkaStorageError, match=r"ours-1 belongs to another topic ours") as refused:
        disk.recover(adopt=True)
    assert str(OURS.id) in str(refused.value)


def test_the_log_of_controllers_is_nobodys_topic(disk: Disk) -> None:
    disk.add(CLUSTER_METADATA_TOPIC, 0, STRANGE, b"theirs")
    with pytest.raises(KafkaStorageError, match=CLUSTER_METADATA_TOPIC):
        disk.recover()
    assert disk.recover(adopt=True) == RecoveredTopics({}, [], [])
    disk.metadata(OURS)
    recovered = disk.recover()
    assert (set(recovered.topics), recovered.partitions, recovered.deleted) == ({"ours"}, [], [])


def test_a_directory_in_which_the_log_was_not_yet_begun_is_the_brokers_own(disk: Disk) -> None:
    disk.add(CLUSTER_METADATA_TOPIC, 0, None)
    assert disk.recover() == RecoveredTopics({}, [], [])


def test_a_journal_from_before_the_metadata_log_is_not_read_and_the_error_says_how_to_go_on(
    disk: Disk,
) -> None:
    journal = disk.dirs[0].path / OLD_JOURNAL
    journal.write_bytes(b"kclient topics 1\n")
    with pytest.raises(KafkaStorageError, match=rf"^{journal} .*kclient\.adopt\.topics=true"):
        disk.recover()
    assert disk.recover(adopt=True) == RecoveredTopics({}, [], [])
    disk.metadata(OURS)
    assert set(disk.recover().topics) == {"ours"}, "it says nothing beside a metadata log"


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
    disk.metadata()
    assert disk.recover() == RecoveredTopics({}, [], []), "the metadata log is there"


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogManager]:
    """Two open directories."""
    with ExitStack() as stack:
        made = LogManager([tmp_path / "a", tmp_path / "b"])
        made.startup()
        stack.callback(made.shutdown)
        yield made


def placed(logs: LogManager, topic: RecoveredTopic, *found: tuple[int, LogDirectory]) -> list[Uuid]:
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
