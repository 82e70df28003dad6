"""KafkaMetadata: the part of another broker's metadata that this one takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.broker.kafka_metadata import topic_records, write_kafka_log
from kclient.broker.embedded import EmbeddedKafka
from kclient.broker.log.config import LogConfig
from kclient.broker.metadata.kafka_metadata import KafkaMetadata, with_kept_records
from kclient.broker.metadata.recovered_topic import RecoveredTopic
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError
from kclient.protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    EntityData,
    ProducerIdsRecord,
    RemoveTopicRecord,
    UserScramCredentialRecord,
)
from kclient.protocol.schema import Message
from kclient.utils.time import SYSTEM_TIME

NODE = 1
T = Uuid.random()


def setting(kind: int, resource: str, name: str, value: str) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def read(root: Path, *records: Message, snapshot: bool = False) -> KafkaMetadata:
    write_kafka_log(root, *records, snapshot=snapshot)
    found = KafkaMetadata.read([root], SYSTEM_TIME)
    assert found is not None
    return found


@pytest.mark.parametrize("snapshot", [False, True], ids=["log", "snapshot"])
def test_topics_have_kafkas_ids_counts_settings_and_epochs(tmp_path: Path, snapshot: bool) -> None:
    records = topic_records("t", T, [[1], [2, 3], [2, 1]], leader_epoch=7, retention_ms="5")
    (topic,) = read(tmp_path, *records, snapshot=snapshot).topics(NODE)
    assert (topic.name, topic.id, topic.partition_count) == ("t", T, 3)
    assert (topic.configs, topic.leader_epochs, topic.elsewhere) == ({"retention.ms": "5"}, (7, 7, 7), 1)


def test_settings_that_this_broker_does_not_have_are_left_out_and_named(tmp_path: Path) -> None:
    records = topic_records("t", T, [[1]], retention_ms="5", unknown="true", remote_storage_enable="false")
    found = read(tmp_path, *records)
    assert found.topics(NODE)[0].configs == {"retention.ms": "5"}
    assert found.left_out() == {"t": ["remote.storage.enable", "unknown"]}


def test_deleted_topics_are_known_as_such_and_what_was_not_committed_is_not(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        *topic_records("gone", T, [[1]]),
        RemoveTopicRecord(topic_id=T),
        BeginTransactionRecord(name="never ended"),
        *topic_records("t", Uuid.random(), [[1]]),
    )
    assert found.topics(NODE) == []


def test_all_else_that_is_this_brokers_becomes_records(tmp_path: Path) -> None:
    mine: list[Message] = [
        ProducerIdsRecord(broker_id=-1, next_producer_id=5000),
        ClientQuotaRecord(
            entity=[EntityData(entity_type="user", entity_name="alice")], key="producer_byte_rate", value=1.5
        ),
        AccessControlEntryRecord(
            id=Uuid.random(),
            resource_type=2,
            resource_name="t",
            pattern_type=3,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        ),
        UserScramCredentialRecord(
            name="alice", mechanism=2, salt=b"s", stored_key=b"k", server_key=b"k", iterations=8192
        ),
        setting(4, "", "message.max.bytes", "1"),
        setting(4, "1", "message.max.bytes", "2"),
        setting(16, "metrics", "interval.ms", "3"),
    ]
    others = [setting(4, "2", "message.max.bytes", "4"), setting(2, "t", "retention.ms", "5")]
    found = read(tmp_path, *mine, *topic_records("t", T, [[1]]), *others)
    assert list(found.records(NODE)) == mine


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "-1"),
        ({"log.retention.hours": "2"}, "7200000"),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "180000"),
        ({"log.retention.ms": "4", "log.retention.minutes": "3"}, "4"),
        ({"log.retention.ms": "-1"}, "-1"),
        ({"log.retention.ms": "?"}, "-1"),
    ],
)
def test_the_retention_of_all_topics_is_that_of_the_finest_setting(
    tmp_path: Path, settings: dict[str, str], expected: str
) -> None:
    found = read(tmp_path, *(setting(4, "", name, value) for name, value in settings.items()))
    assert found.retention_ms() == expected


@pytest.mark.parametrize(
    ("configs", "kept"),
    [
        ({}, True),
        ({"retention.ms": "5"}, False),
        ({"cleanup.policy": "compact"}, False),
        ({"cleanup.policy": "compact,delete"}, True),
    ],
)
def test_only_topics_that_would_lose_records_to_a_default_are_given_a_retention(
    configs: dict[str, str], kept: bool
) -> None:
    topic = RecoveredTopic("t", T, 1, configs)
    expected = {**configs, "retention.ms": "-1"} if kept else configs
    assert with_kept_records(topic, LogConfig(), "-1").configs == expected


def test_what_is_ours_or_nobodys_is_no_kafkas(tmp_path: Path) -> None:
    with EmbeddedKafka(data_dir=tmp_path / "ours"):
        pass
    (tmp_path / "empty" / "__cluster_metadata-0").mkdir(parents=True)
    assert KafkaMetadata.read([tmp_path / "ours", tmp_path / "empty", tmp_path / "no"], SYSTEM_TIME) is None


def test_of_several_logs_the_longest_is_taken(tmp_path: Path) -> None:
    write_kafka_log(tmp_path / "a", *topic_records("t", T, [[1]]))
    longer = write_kafka_log(tmp_path / "b", *topic_records("t", T, [[1], [1]]))
    found = KafkaMetadata.read([tmp_path / "a", tmp_path / "b"], SYSTEM_TIME)
    assert found is not None
    assert found.directory == longer


def test_damage_before_the_end_is_an_error_that_says_what_can_be_done(tmp_path: Path) -> None:
    directory = write_kafka_log(tmp_path, *topic_records("t", T, [[1]]))
    (segment,) = directory.glob("*.log")
    data = bytearray(segment.read_bytes())
    second = bytearray(data)
    second[0:8] = (4).to_bytes(8, "big")
    data[70] ^= 1
    segment.write_bytes(bytes(data) + bytes(second))
    with pytest.raises(KafkaStorageError, match=f"Move {directory} away"):
        KafkaMetadata.read([tmp_path], SYSTEM_TIME)
