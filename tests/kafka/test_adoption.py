"""Directories of a real Kafka, read without a change to them and then taken over."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness.broker.directories import fingerprint, flip_bit, last_segment
from harness.broker.requests import topics as described_topics
from harness.broker.wire import Wire
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.logs import read_logs
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AlterConfigOp,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    ResourcePattern,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    TransactionState,
    UserScramCredentialUpsertion,
)
from kclient.broker.config import BrokerConfig
from kclient.broker.embedded import EmbeddedKafka
from kclient.broker.kafka_broker import KafkaBroker
from kclient.broker.log.file_system import ReadOnlyFileSystem
from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.metadata_store import MetadataStore
from kclient.broker.transaction.open_transactions import EndedTransactions
from kclient.errors import IllegalStateError, PolicyViolationError
from kclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kclient.record.memory_records import iter_batches
from kclient.utils.time import SYSTEM_TIME

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIME_MS = 1_700_000_000_000
COUNT = 200
PARTITIONS = {**dict.fromkeys(CODECS, 2), "compacted": 1, "trimmed": 1, "transactions": 1}
CONFIGS = {
    "gzip": {"retention.ms": "-1", "max.message.bytes": "2000000"},
    "compacted": {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"},
    "trimmed": {"retention.ms": "-1", "leader.replication.throttled.replicas": "*"},
}
EAGER = {"log.retention.check.interval.ms": 1, "log.cleaner.backoff.ms": 100}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "log.cleaner.backoff.ms": "100",
    "log.retention.ms": "-1",
}

Contents = dict[tuple[str, str], Any]


@attrs.frozen
class Left:
    """The directory that a Kafka left, and its own account of it."""

    data: Path
    before: dict[str, tuple[int, int, str]]
    contents: Contents

    def copy(self, to: Path) -> Path:
        """A copy to be changed."""
        return Path(shutil.copytree(self.data, to))


def contents(servers: str, names: list[str]) -> Contents:
    """All that a consumer can find out of topics, under both isolation levels."""
    found: Contents = {}
    tps = [TopicPartition(name, number) for name in names for number in range(PARTITIONS[name])]
    for isolation in ("read_uncommitted", "read_committed"):
        with KafkaConsumer(
            bootstrap_servers=servers, isolation_level=isolation, enable_auto_commit=False
        ) as consumer:
            consumer.assign(tps)
            ends = consumer.end_offsets(tps)
            consumer.seek_to_beginning(tps)
            records = []
            while any(consumer.position(tp) < end for tp, end in ends.items()):
                records += consumer.poll(500)
            found[isolation, "ends"] = ends
            found[isolation, "beginnings"] = consumer.beginning_offsets(tps)
            found[isolation, "records"] = sorted(
                (one.topic, one.partition, one.offset, one.timestamp_ms, one.headers, one.key, one.value)
                for one in records
            )
            for time_ms in (TIME_MS, TIME_MS + COUNT // 2, TIME_MS + COUNT - 1):
                asked = dict.fromkeys(tps, time_ms)
                found[isolation, f"at {time_ms}"] = {
                    tp: hit and (hit.offset, hit.timestamp_ms)
                    for tp, hit in consumer.offsets_for_times(asked).items()
                }
    return found


def fill(servers: str, stack: ExitStack) -> None:
    """Write what there is to be read, and leave a transaction open."""
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        created = [
            NewTopic(name, count, 1, configs=CONFIGS.get(name, {})) for name, count in PARTITIONS.items()
        ]
        admin.create_topics([*created, NewTopic("gone", 2, 1)])
        wait_until(lambda: {*PARTITIONS, "gone"} <= set(admin.list_topics()), 60, "the topics")
        for codec in CODECS:
            with KafkaProducer(bootstrap_servers=servers, compression_type=codec, batch_size=500) as producer:
                for number in range(COUNT):
                    producer.send(
                        codec,
                        None if number % 50 == 49 else b"v%d" % number * 5,
                        key=b"k%d" % number,
                        headers=[("n", b"%d" % number), ("none", None)],
                        timestamp_ms=TIME_MS + number,
                        partition=number % 2,
                    )
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for number in range(20):
                producer.send("trimmed", b"%d" % number, timestamp_ms=TIME_MS + number).result(30)
                producer.send("gone", b"%d" % number)
            compact(servers, producer)
        part = DeleteRecordsPartition(partition_index=0, offset=7)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name="trimmed", partitions=[part])], timeout_ms=30_000
        )
        with Wire(servers) as wire:
            assert wire.ask(request, 2).topics[0].partitions[0].low_watermark == 7
        transact(servers, stack)
        with KafkaConsumer(bootstrap_servers=servers, group_id="g", enable_auto_commit=False) as consumer:
            consumer.assign([TopicPartition("none", 0)])
            consumer.commit_sync({TopicPartition("none", 0): 42})
        settle(admin)
        admin.delete_topics(["gone"])


def settle(admin: KafkaAdminClient) -> None:
    """Have the controller know users, rules and quotas, and the cleaner at rest."""
    password = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", password, "secret")])
    admin.alter_client_quotas(
        [ClientQuotaAlteration(ClientQuotaEntity({"user": "alice"}), {"producer_byte_rate": 1e6})]
    )
    entry = AccessControlEntry("User:alice", AclOperation.READ)
    admin.create_acls([AclBinding(ResourcePattern(ResourceType.TOPIC, "none"), entry)])
    broker = ConfigResource(ConfigResourceType.BROKER, "")
    admin.incremental_alter_configs({broker: [AlterConfigOp("message.max.bytes", "1234567")]})
    compacted = ConfigResource(ConfigResourceType.TOPIC, "compacted")
    admin.incremental_alter_configs({compacted: [AlterConfigOp("min.compaction.lag.ms", str(1 << 60))]})


def compact(servers: str, producer: KafkaProducer[bytes, bytes]) -> None:
    """Write keys again and again until the cleaner has removed most of them."""
    for number in range(COUNT):
        producer.send("compacted", b"v%d" % number, key=b"k%d" % (number % 10), timestamp_ms=TIME_MS + number)

    def cleaned() -> bool:
        # A segment is closed by a record that comes when its time is over.
        producer.send("compacted", b"v", key=b"filler").result(30)
        records = contents(servers, ["compacted"])["read_uncommitted", "records"]
        return sum(record[2] < COUNT for record in records) <= 10

    wait_until(cleaned, 90, "compaction")


def transact(servers: str, stack: ExitStack) -> None:
    """Commit a transaction, abort one and leave one open."""
    producers = [
        KafkaProducer(bootstrap_servers=servers, transactional_id=f"t{number}") for number in range(3)
    ]
    for producer in producers:
        stack.callback(producer.close, 0)  # by then there is no broker that could end what is open
        producer.init_transactions()
    for number, producer in enumerate(producers):
        producer.begin_transaction()
        for count in range(5):
            producer.send("transactions", b"%d-%d" % (number, count)).result(30)
        if number == 0:
            producer.commit_transaction()
        elif number == 1:
            producer.abort_transaction()


@pytest.fixture(scope="module", params=["stopped", "killed"])
def left(request: pytest.FixtureRequest) -> Iterator[Left]:
    skip_if(missing())
    with ExitStack() as stack:
        kafka = stack.enter_context(RealKafka(settings=SETTINGS))
        fill(kafka.bootstrap_servers, stack)
        said = contents(kafka.bootstrap_servers, list(PARTITIONS))
        with pytest.raises(IllegalStateError, match=f"in use by another broker, process {kafka.pid} "):
            EmbeddedKafka(data_dir=kafka.log_dir, read_only=True).start()
        if request.param == "stopped":
            kafka.stop()
        else:
            kafka.kill()
        assert any(kafka.log_dir.glob("gone-*-delete"))
        yield Left(kafka.log_dir, fingerprint(kafka.log_dir), said)


def test_everything_kafka_had_is_read_and_nothing_is_changed(left: Left) -> None:
    with EmbeddedKafka(EAGER, data_dir=left.data, read_only=True) as ours:
        servers = ours.bootstrap_servers
        found = contents(servers, list(PARTITIONS))
        assert found == left.contents
        with Wire(servers) as wire:
            assert set(described_topics(wire)) == {*PARTITIONS, "__consumer_offsets", "__transaction_state"}
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            assert own_settings(admin) == known_settings()
        with KafkaConsumer(bootstrap_servers=servers, group_id="g") as consumer:
            tp = TopicPartition("none", 0)
            assert [found and found.offset for found in consumer.committed([tp]).values()] == [42]
            with pytest.raises(PolicyViolationError):
                consumer.commit_sync({tp: 43})
    assert fingerprint(left.data) == left.before


def test_logs_alone_are_opened_without_a_change(left: Left) -> None:
    logs = LogManager([left.data], file_system=ReadOnlyFileSystem())
    logs.startup()
    try:
        ends = left.contents["read_uncommitted", "ends"]
        starts = left.contents["read_uncommitted", "beginnings"]
        opened = {tp: logs.get_log(tp) for tp in ends}
        assert {tp: log and (log.log_start_offset, log.log_end_offset) for tp, log in opened.items()} == {
            tp: (starts[tp], end) for tp, end in ends.items()
        }
    finally:
        logs.shutdown()
    assert fingerprint(left.data) == left.before


def with_the_open_transaction_aborted(found: Contents) -> Contents:
    """The same, where a marker has ended the transaction that was open."""
    tp = TopicPartition("transactions", 0)
    found = {key: dict(value) if isinstance(value, dict) else value for key, value in found.items()}
    found["read_uncommitted", "ends"][tp] += 1
    assert found["read_committed", "ends"][tp] < found["read_uncommitted", "ends"][tp]
    found["read_committed", "ends"][tp] = found["read_uncommitted", "ends"][tp]
    return found


def known_settings() -> dict[str, dict[str, str]]:
    """The topics' own settings, as far as this broker has them."""
    known = {name: dict(CONFIGS.get(name, {})) for name in PARTITIONS}
    del known["trimmed"]["leader.replication.throttled.replicas"]
    known["compacted"]["min.compaction.lag.ms"] = str(1 << 60)
    return known


def own_settings(admin: KafkaAdminClient) -> dict[str, dict[str, str]]:
    resources = {name: ConfigResource(ConfigResourceType.TOPIC, name) for name in PARTITIONS}
    described = admin.describe_configs(list(resources.values()))
    return {
        name: {
            entry.name: entry.value
            for entry in described[resource].values()
            if entry.source.name == "DYNAMIC_TOPIC_CONFIG" and entry.value is not None
        }
        for name, resource in resources.items()
    }


def test_of_what_is_damaged_the_valid_prefix_is_read(left: Left, tmp_path: Path) -> None:
    data = left.copy(tmp_path / "data")
    (data / "none-0" / f"{0:020d}.index").unlink()
    (data / "none-0" / f"{0:020d}.timeindex").write_bytes(b"\x7f" * 50)
    with last_segment(data / "none-1").open("ab") as file:
        file.write(b"\x00" * 30)
    size = sum(1 for record in left.contents["read_uncommitted", "records"] if record[:2] == ("gzip", 0))
    segment = last_segment(data / "gzip-0")
    flip_bit(segment, len(segment.read_bytes().rstrip(b"\0")) - 2)
    before = fingerprint(data)
    with EmbeddedKafka(EAGER, data_dir=data, read_only=True) as ours:
        found = contents(ours.bootstrap_servers, ["none", "gzip"])
    expected = left.contents["read_uncommitted", "records"]
    records = found["read_uncommitted", "records"]
    assert [one for one in records if one[0] == "none"] == [one for one in expected if one[0] == "none"]
    prefix = [one for one in records if one[:2] == ("gzip", 0)]
    assert 0 < len(prefix) < size
    assert prefix == [one for one in expected if one[:2] == ("gzip", 0)][: len(prefix)]
    assert fingerprint(data) == before


def test_a_directory_is_taken_over_with_all_that_kafkas_metadata_say(left: Left, tmp_path: Path) -> None:
    data = left.copy(tmp_path / "data")
    theirs = fingerprint(data / "__cluster_metadata-0")
    broker = KafkaBroker(
        BrokerConfig.parse(
            {
                **EAGER,
                "log.dirs": str(data),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "kclient.adopt.topics": True,
            }
        )
    )
    broker.start()
    try:
        account = broker.adoption
        assert account is not None
        assert (account.topics, account.users, account.rules, account.quotas) == (
            len(PARTITIONS) + 2,
            1,
            1,
            1,
        )
        assert (account.unclaimed, account.transactions) == (
            [],
            EndedTransactions(aborted=("transactions-0",)),
        )
        assert account.left_out == {"trimmed": ["leader.replication.throttled.replicas"]}
        servers = broker.bootstrap_servers
        assert contents(servers, list(PARTITIONS)) == with_the_open_transaction_aborted(left.contents)
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            kept = {name: {"retention.ms": "-1"} for name in account.kept}
            assert own_settings(admin) == {
                name: {**settings, **kept.get(name, {})} for name, settings in known_settings().items()
            }
        with KafkaProducer(bootstrap_servers=servers) as producer:
            producer.send("none", b"ours", partition=0).result(30)
    finally:
        broker.stop()
    assert fingerprint(data / "__cluster_metadata-0") == theirs
    assert not list(data.glob("gone-*"))
    with EmbeddedKafka(EAGER, data_dir=data) as ours:
        again = contents(ours.bootstrap_servers, list(PARTITIONS))["read_uncommitted", "records"]
        added = [one for one in again if one not in left.contents["read_uncommitted", "records"]]
        assert [one[-1] for one in added] == [b"ours"]
        assert len(again) == len(left.contents["read_uncommitted", "records"]) + 1
        with KafkaConsumer(bootstrap_servers=ours.bootstrap_servers, group_id="g") as consumer:
            tp = TopicPartition("none", 0)
            assert [found and found.offset for found in consumer.committed([tp]).values()] == [42]
    image = MetadataStore(data / "__kclient_metadata-0", SYSTEM_TIME, snapshot_bytes=1 << 40).image
    assert {name for _, name in image.scram.credentials} == {"alice"}
    for log in read_logs([data], PARTITIONS):
        assert log.damage == []


def cut_last_batch_off(segment: Path) -> None:
    """Cut a segment off before its last batch."""
    *_, last = iter_batches(segment.read_bytes())
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - last.size_in_bytes)


def test_a_transaction_that_kafka_had_decided_to_commit_is_committed(tmp_path: Path) -> None:
    skip_if(missing())
    with RealKafka(settings=SETTINGS) as kafka:
        topic = new_topic(kafka.bootstrap_servers, 1)
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="t") as producer:
            producer.init_transactions()
            with producer.transaction():
                producer.send(topic, b"committed").result(30)
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            wait_until(
                lambda: admin.describe_transactions(["t"])["t"].state is TransactionState.COMPLETE_COMMIT,
                what="the end of the transaction",
            )
        kafka.kill()
        # As a power failure right after the decision would leave it: no marker, and nobody who knows of one.
        cut_last_batch_off(last_segment(kafka.log_dir / f"{topic}-0"))
        (states,) = (
            segment
            for number in range(5)
            if (segment := last_segment(kafka.log_dir / f"__transaction_state-{number}")).stat().st_size
        )
        cut_last_batch_off(states)
        with (
            EmbeddedKafka({"kclient.adopt.topics": True}, data_dir=kafka.log_dir) as ours,
            KafkaConsumer(
                bootstrap_servers=ours.bootstrap_servers, isolation_level="read_committed"
            ) as consumer,
        ):
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek_to_beginning()
            assert [record.value for record in consumer.poll(30_000)] == [b"committed"]
