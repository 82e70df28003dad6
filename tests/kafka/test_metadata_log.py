"""The metadata log in both directions: Kafka's tool reads ours, and what a real controller wrote is read by ours."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import missing, tool
from harness.requirements import skip_if
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient import KafkaAdminClient
from kclient.admin import AlterConfigOp, ConfigResource, ConfigResourceType
from kclient.broker.embedded import EmbeddedKafka
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.metadata_store import MetadataStore
from kclient.common.uuid import Uuid
from kclient.protocol.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kclient.utils.time import SYSTEM_TIME

NEVER = 1 << 40


def test_a_log_that_kafka_wrote_is_read_to_its_end(kafka: RealKafka, tmp_path: Path) -> None:
    servers = kafka.bootstrap_servers
    kept, gone = new_topic(servers, 3), new_topic(servers, 1)
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        resource = ConfigResource(ConfigResourceType.TOPIC, kept)
        admin.incremental_alter_configs({resource: [AlterConfigOp("retention.ms", "12345")]})
        admin.delete_topics([gone])
    directory = shutil.copytree(kafka.log_dir / "__cluster_metadata-0", tmp_path / "log")
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    image = MetadataStore(directory, SYSTEM_TIME, snapshot_bytes=NEVER).image
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before
    topic = image.topics.by_name[kept]
    assert [(each.replicas, each.isr, each.leader) for each in topic.partitions] == [((1,), (1,), 1)] * 3
    assert all(each.directory_of(1) != Uuid.ZERO for each in topic.partitions)
    assert image.configs.of(ResourceType.TOPIC, kept)["retention.ms"] == "12345"
    assert gone not in image.topics.by_name
    assert gone in {each.name for each in image.topics.deleted.values()}
    assert image.features.levels["metadata.version"] >= 25
    (broker,) = image.cluster.brokers.values()
    assert (broker.id, broker.fenced) == (1, False)


def test_a_snapshot_that_kafka_wrote_is_read_with_what_came_after_it(tmp_path: Path) -> None:
    skip_if(missing())
    with RealKafka(settings={"metadata.log.max.record.bytes.between.snapshots": "2000"}) as kafka:
        source = kafka.log_dir / "__cluster_metadata-0"
        made = [new_topic(kafka.bootstrap_servers, 2)]

        def has_snapshot() -> bool:
            made.append(new_topic(kafka.bootstrap_servers, 2))
            return any(int(path.name[:20]) > 0 for path in source.glob("*.checkpoint"))

        wait_until(has_snapshot, what="a snapshot")
        made.append(new_topic(kafka.bootstrap_servers, 2))
        kafka.stop()
        directory = shutil.copytree(source, tmp_path / "log")
    image = MetadataStore(directory, SYSTEM_TIME, snapshot_bytes=NEVER).image
    assert set(made) <= set(image.topics.by_name)
    for path in directory.glob("*.checkpoint"):
        path.unlink()
    assert MetadataStore(directory, SYSTEM_TIME, snapshot_bytes=NEVER).image == image, (
        "the log alone says the same"
    )


def test_kafkas_tool_reads_segments_and_snapshots_of_ours(tmp_path: Path) -> None:
    skip_if(missing())
    directory = tmp_path / "__cluster_metadata-0"
    store = MetadataStore(directory, SYSTEM_TIME, snapshot_bytes=NEVER)
    store.start()
    topic_id, log_dir = Uuid.random(), Uuid.random()
    partition = PartitionRecord(
        partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0, partition_epoch=0,
        directories=[log_dir],
    )  # fmt: skip
    records = [
        FeatureLevelRecord(name="metadata.version", feature_level=25),
        RegisterBrokerRecord(broker_id=1, rack=None, fenced=False, log_dirs=[log_dir]),
        TopicRecord(name="t", topic_id=topic_id),
        partition,
        ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="5"),
        PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=1),
        RemoveTopicRecord(topic_id=topic_id),
    ]
    store.commit(records)
    dumped = dump(directory / f"{0:020d}.log")
    kinds = [re.sub(r"(?<!^)(?=[A-Z])", "_", type(record).__name__).upper() for record in records]
    assert re.findall(r'"type":"(\w+)"', dumped) == kinds
    assert "isvalid: false" not in dumped
    store.close()
    store = MetadataStore(directory, SYSTEM_TIME, snapshot_bytes=1)
    store.start()
    second_id = Uuid.random()
    store.commit([TopicRecord(name="u", topic_id=second_id)])
    (snapshot,) = directory.iterdir()
    dumped = dump(snapshot)
    assert "Snapshot end offset: 8, epoch: 1" in dumped
    assert "SnapshotHeader" in dumped
    assert "SnapshotFooter" in dumped
    assert re.findall(r'"type":"(\w+)"', dumped)[-2:] == ["REMOVE_TOPIC_RECORD", "TOPIC_RECORD"]
    assert str(second_id) in dumped
    assert "isvalid: false" not in dumped


def test_kafkas_tool_reads_the_metadata_of_a_broker_of_ours(tmp_path: Path) -> None:
    skip_if(missing())
    for snapshots in ({}, {"metadata.log.max.record.bytes.between.snapshots": 1}):
        with EmbeddedKafka(snapshots, data_dir=tmp_path) as kafka:
            topic = new_topic(kafka.bootstrap_servers, 2)
        (path,) = (tmp_path / "__cluster_metadata-0").iterdir()
        dumped = dump(path)
        assert f'"name":"{topic}"' in dumped
        assert '"name":"kclient.metadata","featureLevel":1' in dumped
        assert "isvalid: false" not in dumped
    assert path.suffix == ".checkpoint"


def dump(path: Path) -> str:
    return tool("org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(path))
