"""Directories that are only read: everything in them is served, and nothing of them is changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker.cleaning import end_transaction, put
from harness.broker.directories import fingerprint, flip_bit, last_segment
from harness.broker.logs import LogHarness
from harness.broker.requests import create, fetch, produce, topics, try_produce, values
from harness.broker.wire import Wire, batch
from kclient import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kclient.admin import AlterConfigOp, ConfigResource, ConfigResourceType, NewTopic
from kclient.broker.embedded import EmbeddedKafka
from kclient.broker.log.config import LogConfig
from kclient.common.uuid import Uuid
from kclient.errors import (
    ConfigError,
    Errors,
    IllegalStateError,
    InconsistentClusterIdError,
    KafkaStorageError,
    PolicyViolationError,
)
from kclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kclient.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

LONG_AGO_MS = 1_500_000_000_000
EAGER = {"log.retention.check.interval.ms": 1, "log.retention.ms": 1000, "log.cleaner.backoff.ms": 1}
POLICY = int(Errors.POLICY_VIOLATION)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A directory with topics a and b, several segments in one of them, and a group."""
    root = tmp_path / "data"
    with EmbeddedKafka(data_dir=root, offsets_topic_num_partitions=1) as kafka:
        servers = kafka.bootstrap_servers
        with Wire(servers) as wire:
            create(wire, "a", 2, segment_bytes="200", retention_ms="123456789012")
            create(wire, "b", 1)
            for number in range(10):
                produce(wire, "a", batch(b"v%d" % number, first_ms=LONG_AGO_MS + number))
            produce(wire, "b", batch(b"b"))
        with KafkaConsumer(bootstrap_servers=servers, group_id="g", enable_auto_commit=False) as consumer:
            consumer.assign([TopicPartition("a", 0)])
            consumer.commit_sync({TopicPartition("a", 0): 4})
    return root


@pytest.fixture
def unchanged(written: Path) -> Iterator[Path]:
    """The same directory, which has to be the same at the end."""
    before = fingerprint(written)
    yield written
    assert fingerprint(written) == before


def opened(root: Path, **settings: object) -> EmbeddedKafka:
    return EmbeddedKafka(EAGER, data_dir=root, read_only=True, **settings)


def test_records_settings_and_groups_are_served_and_nothing_is_deleted(unchanged: Path) -> None:
    with opened(unchanged) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert set(topics(wire)) == {"a", "b", "__consumer_offsets"}
        assert len(topics(wire)["a"].partitions) == 2
        assert values(wire, "a") + values(wire, "b") != []
        tp = TopicPartition("a", 0)
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            resource = ConfigResource(ConfigResourceType.TOPIC, "a")
            assert admin.describe_configs([resource])[resource]["retention.ms"].value == "123456789012"
            assert set(admin.list_groups()) == set(admin.describe_groups(["g"])) == {"g"}
            (committed,) = admin.list_consumer_group_offsets("g").items()
            assert (committed[0], committed[1] and committed[1].offset) == (tp, 4)
        dirs = wire.ask(DescribeLogDirsRequest(topics=None), 4).results
        assert [(one.error_code, one.log_dir, len(one.topics)) for one in dirs] == [(0, str(unchanged), 3)]
        with KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([tp])
            read: list[bytes | None] = []
            while len(read) < 6:
                read += [record.value for record in consumer.poll(10_000)]
            assert read == [b"v%d" % number for number in range(4, 10)]
            assert consumer.offsets_for_times({tp: LONG_AGO_MS + 6})[tp].offset == 6
            assert (consumer.beginning_offsets([tp])[tp], consumer.end_offsets([tp])[tp]) == (0, 10)


def test_a_consumer_joins_its_group_and_is_told_that_it_cannot_commit(unchanged: Path) -> None:
    with opened(unchanged) as kafka:
        consumer = KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers,
            group_id="new",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        with consumer:
            consumer.subscribe(["a"])
            read: list[bytes | None] = []
            while len(read) < 10:
                read += [record.value for record in consumer.poll(10_000)]
            assert read == [b"v%d" % number for number in range(10)]
            with pytest.raises(PolicyViolationError):
                consumer.commit_sync()


def test_whoever_wants_to_write_is_refused_with_one_error(unchanged: Path) -> None:
    with opened(unchanged) as kafka, Wire(kafka.bootstrap_servers) as wire:
        refused = try_produce(wire, "a", batch(b"v"))
        assert (refused.error_code, "was opened read-only" in refused.error_message) == (POLICY, True)
        part = DeleteRecordsPartition(partition_index=0, offset=3)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="a", partitions=[part])])
        assert wire.ask(request, 2).topics[0].partitions[0].error_code == POLICY
        servers = kafka.bootstrap_servers
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            resource = ConfigResource(ConfigResourceType.TOPIC, "a")
            for change in (
                lambda: admin.create_topics([NewTopic("new", 1)]),
                lambda: admin.delete_topics(["a"]),
                lambda: admin.incremental_alter_configs({resource: [AlterConfigOp("retention.ms", "1")]}),
                lambda: admin.delete_groups(["g"]),
            ):
                with pytest.raises(PolicyViolationError, match=r"opened read-only|operators configured"):
                    change()
        with (
            KafkaProducer(bootstrap_servers=servers) as producer,
            pytest.raises(PolicyViolationError, match="was opened read-only"),
        ):
            producer.send("a", b"v").result(10)
        assert "new" not in topics(wire), "and no topic is made for the asking"


def test_a_directory_without_a_metadata_log_is_read_as_its_directories_say(written: Path) -> None:
    shutil.rmtree(written / "__cluster_metadata-0")
    before = fingerprint(written)
    with opened(written) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert {name: len(topic.partitions) for name, topic in topics(wire).items()} == {
            "a": 2,
            "b": 1,
            "__consumer_offsets": 1,
        }
        assert fetch(wire, "a").high_watermark == 10
    (written / "meta.properties").unlink()
    del before["meta.properties"]
    os_time = fingerprint(written)["."]
    with opened(written) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert fetch(wire, "a").high_watermark == 10
    assert fingerprint(written) == {**before, ".": os_time}


def tear(partition: Path) -> None:
    with last_segment(partition).open("ab") as file:
        file.write(batch(b"never whole")[:-3])


def flip(partition: Path) -> None:
    segment = last_segment(partition)
    flip_bit(segment, segment.stat().st_size - 2)


def drop_indexes(partition: Path) -> None:
    for path in [*partition.glob("*.index"), *partition.glob("*.timeindex"), *partition.glob("*.snapshot")]:
        path.unlink()


def spoil_indexes(partition: Path) -> None:
    for path in [*partition.glob("*.index"), *partition.glob("*.timeindex")]:
        path.write_bytes(b"\x7f" * 25)


def unfinished_compaction(partition: Path) -> None:
    for path in partition.glob("00000000000000000002.*"):
        path.rename(path.with_name(path.name + ".swap"))
    (partition / "00000000000000000004.log.cleaned").write_bytes(b"x")
    (partition / "00000000000000000000.log.deleted").write_bytes(b"x")


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize(
    ("harm", "left"),
    [(tear, 10), (flip, 9), (drop_indexes, 10), (spoil_indexes, 10), (unfinished_compaction, 10)],
)
def test_what_is_damaged_is_read_up_to_there_and_repaired_in_memory_alone(
    written: Path, harm: object, left: int, clean: bool
) -> None:
    harm(written / "a-0")  # type: ignore[operator]
    if not clean:
        (written / ".kafka_cleanshutdown").unlink()
        (written / "recovery-point-offset-checkpoint").unlink()
    before = fingerprint(written)
    with opened(written) as kafka, KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers) as consumer:
        tp = TopicPartition("a", 0)
        consumer.assign([tp])
        consumer.seek_to_beginning([tp])
        read: list[bytes | None] = []
        while consumer.position(tp) < left:
            read += [record.value for record in consumer.poll(10_000)]
        assert read == [b"v%d" % number for number in range(left)]
        assert consumer.end_offsets([tp])[tp] == left
        assert consumer.offsets_for_times({tp: LONG_AGO_MS + 7})[tp].offset == 7
    assert fingerprint(written) == before


def test_the_same_directory_is_read_as_it_would_be_recovered(written: Path, tmp_path: Path) -> None:
    """Recovery in memory and recovery on disk are the same steps."""
    unfinished_compaction(written / "a-0")
    tear(written / "a-0")
    (written / ".kafka_cleanshutdown").unlink()
    shutil.copytree(written, tmp_path / "copy")
    with opened(written) as kafka, Wire(kafka.bootstrap_servers) as wire:
        shown = bytes(fetch(wire, "a").records), fetch(wire, "a").high_watermark
    with EmbeddedKafka(data_dir=tmp_path / "copy") as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert (bytes(fetch(wire, "a").records), fetch(wire, "a").high_watermark) == shown


def test_leftovers_of_deletions_and_moves_are_not_served(written: Path) -> None:
    for name in (
        "gone-0.0123456789abcdef0123456789abcdef-delete",
        "b-1.0123456789abcdef0123456789abcdef-future",
        "c-0.0123456789abcdef0123456789abcdef-stray",
    ):
        shutil.copytree(written / "b-0", written / name)
    before = fingerprint(written)
    with opened(written) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert set(topics(wire)) == {"a", "b", "__consumer_offsets"}
        assert len(topics(wire)["b"].partitions) == 1
    assert fingerprint(written) == before


@pytest.mark.parametrize(
    "lost",
    [("index", "timeindex", "txnindex", "snapshot"), ("txnindex", "snapshot"), ("txnindex",)],
    ids=["all", "of transactions, and the producers", "of transactions alone"],
)
def test_aborted_transactions_are_known_though_indexes_are_lost(
    tmp_path: Path, lost: tuple[str, ...]
) -> None:
    harness = LogHarness(tmp_path)
    log = harness.open(LogConfig(), clean=True)
    for number in range(4):
        put(harness, log, (b"k", b"%d" % number), pid=7, seq=number, transactional=True)
        if number % 2:
            log.roll()
        end_transaction(harness, log, 7, commit=number == 3)
        log.roll()
    log.close()
    harness.close()
    for kind in lost:
        paths = list(harness.directory.glob(f"*.{kind}"))
        assert paths
        for path in paths:
            path.unlink()
    (tmp_path / "recovery-point-offset-checkpoint").write_text(f"0\n1\n{harness.directory.name[:-2]} 0 8\n")
    before = fingerprint(tmp_path)
    topic, _, _ = harness.directory.name.rpartition("-")
    with (
        EmbeddedKafka(data_dir=tmp_path, read_only=True) as kafka,
        KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers, isolation_level="read_committed"
        ) as consumer,
    ):
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        consumer.seek_to_beginning([tp])
        read: list[bytes | None] = []
        while consumer.position(tp) < 8:
            read += [record.value for record in consumer.poll(100)]
        assert read == [b"3"]
    assert fingerprint(tmp_path) == before


def test_several_directories_and_one_for_the_metadata_are_read(tmp_path: Path) -> None:
    places = {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}", "metadata.log.dir": str(tmp_path / "m")}
    with EmbeddedKafka(places) as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire, "t", 4, retention_ms="5")
        for number in range(4):
            produce(wire, "t", batch(b"%d" % number), number)
    before = fingerprint(tmp_path)
    for _ in range(2):
        with EmbeddedKafka(places, read_only=True) as kafka, Wire(kafka.bootstrap_servers) as wire:
            assert [values(wire, "t", number) for number in range(4)] == [[b"%d" % n] for n in range(4)]
    assert fingerprint(tmp_path) == before


def test_a_partition_that_is_not_there_has_no_leader(written: Path) -> None:
    shutil.rmtree(written / "a-1")
    before = fingerprint(written)
    with opened(written) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert [part.leader_id for part in topics(wire)["a"].partitions] == [1, -1]
        assert fetch(wire, "a").high_watermark == 10
    assert fingerprint(written) == before


def test_the_broker_that_has_the_directory_keeps_it_and_several_may_read(written: Path) -> None:
    with EmbeddedKafka(data_dir=written), pytest.raises(IllegalStateError, match="in use by another broker"):
        opened(written).start()
    (written / ".lock").touch()
    before = fingerprint(written)
    with opened(written), opened(written) as second, Wire(second.bootstrap_servers) as wire:
        with pytest.raises(IllegalStateError, match="in use by another broker"):
            EmbeddedKafka(data_dir=written).start()
        assert fetch(wire, "a").high_watermark == 10
    assert fingerprint(written) == before
    with EmbeddedKafka(data_dir=written) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert fetch(wire, "a").high_watermark == 10


def test_a_directory_that_is_missing_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(KafkaStorageError, match=f"{tmp_path / 'no'}"):
        opened(tmp_path / "no").start()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_another_node_says_which_setting_opens_it(tmp_path: Path) -> None:
    with EmbeddedKafka(data_dir=tmp_path, node_id=7) as kafka, Wire(kafka.bootstrap_servers) as wire:
        create(wire, "t")
        produce(wire, "t", batch(b"v"))
    before = fingerprint(tmp_path)
    with pytest.raises(InconsistentClusterIdError, match=r"set node\.id=7"):
        opened(tmp_path).start()
    with opened(tmp_path, node_id=7) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert values(wire, "t") == [b"v"]
    assert fingerprint(tmp_path) == before


def test_a_directory_of_another_topic_of_that_name_is_left_out(written: Path) -> None:
    (written / "b-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {Uuid.random()}\n")
    before = fingerprint(written)
    with opened(written) as kafka, Wire(kafka.bootstrap_servers) as wire:
        assert [part.leader_id for part in topics(wire)["b"].partitions] == [-1]
    assert fingerprint(written) == before


def test_reading_alone_and_adopting_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="exclude each other"):
        opened(tmp_path, kclient_adopt_topics=True).start()
    with pytest.raises(ConfigError, match="read_only needs a data_dir"):
        EmbeddedKafka(read_only=True)
