"""The embedded broker on a directory that a real Kafka wrote."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import POM_2_8, missing
from harness.real_kafka.zookeeper import zookeeper
from harness.requirements import skip_if
from harness.topics import new_topic, read_all
from kclient import KafkaConsumer, KafkaProducer, TopicPartition
from kclient.broker.embedded import EmbeddedKafka
from kclient.errors import KafkaStorageError

LONG_AGO_MS = 1_500_000_000_000
EAGER = {"log.retention.check.interval.ms": 1}


def files(root: Path, patterns: Iterable[str] = ("*",)) -> dict[str, bytes]:
    found = (path for pattern in patterns for path in root.rglob(pattern) if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def test_a_directory_of_kafkas_stays_as_it_is_until_it_is_adopted_and_then_keeps_its_records(
    tmp_path: Path,
) -> None:
    skip_if(missing())
    data = tmp_path / "data"
    with RealKafka(settings={"log.retention.ms": "-1"}) as kafka:
        servers = kafka.bootstrap_servers
        topic = new_topic(servers, 2)
        tps = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for number in range(20):
                producer.send(topic, b"v%d" % number, timestamp_ms=LONG_AGO_MS, partition=number % 2)
        with KafkaConsumer(bootstrap_servers=servers, group_id="g", enable_auto_commit=False) as consumer:
            consumer.assign(tps)
            consumer.commit_sync(dict.fromkeys(tps, 7))
        kafka.stop()
        shutil.copytree(kafka.log_dir, data)
    before = files(data)
    with pytest.raises(KafkaStorageError, match=r"kclient\.adopt\.topics=true"):
        EmbeddedKafka(EAGER, data_dir=data).start()
    assert files(data) == before
    kept = files(data, [f"{topic}-*/*.log", "__cluster_metadata-0/*", "__consumer_offsets-*/*.log"])
    assert len(kept) >= 4
    with EmbeddedKafka({**EAGER, "kclient.adopt.topics": True}, data_dir=data) as ours:
        servers = ours.bootstrap_servers
        assert {record.value for record in read_all(servers, topic)} == {b"v%d" % n for n in range(20)}
        with KafkaConsumer(bootstrap_servers=servers, group_id="g") as consumer:
            assert "__cluster_metadata" not in consumer.list_topics()
            assert [found.offset for found in consumer.committed(tps).values() if found] == [7, 7]
    assert {name: (data / name).read_bytes() for name in kept} == kept


def test_the_directory_of_a_broker_with_zookeeper_is_read_without_what_was_aborted(tmp_path: Path) -> None:
    skip_if(missing())
    data = tmp_path / "data"
    with zookeeper() as address, RealKafka(pom=POM_2_8, zookeeper=address) as kafka:
        servers = kafka.bootstrap_servers
        topic = new_topic(servers, 1)
        with KafkaProducer(bootstrap_servers=servers, transactional_id=topic) as producer:
            producer.init_transactions()
            for number in range(4):
                producer.begin_transaction()
                producer.send(topic, b"%d" % number, partition=0)
                producer.flush()
                if number % 2:
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()
        expected = [record.value for record in read_all(servers, topic, isolation_level="read_committed")]
        kafka.stop()
        shutil.copytree(kafka.log_dir, data)
    assert expected == [b"0", b"2"]
    assert "version=0" in (data / "meta.properties").read_text()
    for kept in (True, False):
        if not kept:
            (index,) = (path for path in data.glob(f"{topic}-0/*.txnindex") if path.stat().st_size)
            index.unlink()
        before = files(data)
        with EmbeddedKafka(data_dir=data, read_only=True) as ours:
            read = read_all(ours.bootstrap_servers, topic, isolation_level="read_committed")
            assert [record.value for record in read] == expected
        assert files(data) == before
    with pytest.raises(KafkaStorageError, match=r"kclient\.adopt\.topics=true"):
        EmbeddedKafka(EAGER, data_dir=data).start()
    assert files(data) == before


@pytest.mark.parametrize("snapshot_bytes", [1, 1 << 30], ids=["snapshot", "log"])
def test_a_kafka_does_not_start_on_a_directory_of_ours_and_leaves_it_usable(
    tmp_path: Path, snapshot_bytes: int
) -> None:
    skip_if(missing())
    data = tmp_path / "data"
    settings = {"metadata.log.max.record.bytes.between.snapshots": snapshot_bytes}
    with EmbeddedKafka(settings, data_dir=data) as ours:
        topic = new_topic(ours.bootstrap_servers, 2)
        with KafkaProducer(bootstrap_servers=ours.bootstrap_servers) as producer:
            for number in range(20):
                producer.send(topic, b"v%d" % number)
    kafka = RealKafka()
    try:
        shutil.rmtree(kafka.log_dir)
        shutil.copytree(data, kafka.log_dir)
        partitions = files(kafka.log_dir, [f"{topic}-*/*"])
        with pytest.raises(RuntimeError, match="did not start"):
            kafka.start()
        said = kafka.log_file.with_name("broker.log.slf4j").read_text()
        assert "name='kclient.metadata'" in said
        assert files(kafka.log_dir, [f"{topic}-*/*"]) == partitions
        with EmbeddedKafka(settings, data_dir=kafka.log_dir) as ours:
            servers = ours.bootstrap_servers
            assert {record.value for record in read_all(servers, topic)} == {b"v%d" % n for n in range(20)}
            second = new_topic(servers, 1)
        with (
            EmbeddedKafka(settings, data_dir=kafka.log_dir) as ours,
            KafkaConsumer(bootstrap_servers=ours.bootstrap_servers) as consumer,
        ):
            assert {topic, second} <= set(consumer.list_topics())
    finally:
        kafka.close()


def test_a_kafka_that_is_started_where_it_was_adopted_sets_aside_what_came_since() -> None:
    skip_if(missing())
    with RealKafka() as kafka:
        topic = new_topic(kafka.bootstrap_servers, 1)
        kafka.stop()
        with EmbeddedKafka({"kclient.adopt.topics": True}, data_dir=kafka.log_dir) as ours:
            second = new_topic(ours.bootstrap_servers, 1)
            with KafkaProducer(bootstrap_servers=ours.bootstrap_servers) as producer:
                producer.send(topic, b"ours")
                producer.send(second, b"ours")
        theirs = files(kafka.log_dir, [f"{second}-0/*.log", "__kclient_metadata-0/*.log"])
        kafka.start()
        assert [record.value for record in read_all(kafka.bootstrap_servers, topic)] == [b"ours"]
        kafka.stop()
        aside = files(kafka.log_dir, [f"{second}-0.*-stray/*.log", "__kclient_metadata-0.*-stray/*.log"])
        assert sorted(aside.values()) == sorted(theirs.values())
        with pytest.raises(KafkaStorageError, match=topic):
            EmbeddedKafka(data_dir=kafka.log_dir).start()
