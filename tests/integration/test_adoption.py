"""Directories that another broker wrote, taken over with what its metadata log says."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.broker.directories import fingerprint
from harness.broker.kafka_metadata import topic_records, write_kafka_log
from harness.broker.requests import create, fetch, produce, topics, values
from harness.broker.wire import Wire, batch
from harness.waiting import wait_until
from kclient.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kclient.broker.config import BrokerConfig
from kclient.broker.embedded import EmbeddedKafka
from kclient.broker.kafka_broker import KafkaBroker
from kclient.broker.metadata.adoption import Adoption
from kclient.broker.metadata.metadata_store import MetadataStore
from kclient.broker.transaction.open_transactions import EndedTransactions
from kclient.common.uuid import Uuid
from kclient.errors import InconsistentClusterIdError, KafkaStorageError
from kclient.protocol.messages.metadata_records import (
    ClientQuotaRecord,
    EntityData,
    ProducerIdsRecord,
    RemoveTopicRecord,
    UserScramCredentialRecord,
)
from kclient.protocol.schema import Message
from kclient.utils.time import SYSTEM_TIME

OPEN = (
    "and could not be ended: readers of committed records stop before them until another start can end them"
)
KEPT = "retention.ms is now set for topics that had the default of Kafka's server.properties, which is not known: "
LONG_AGO_MS = 1_500_000_000_000
EAGER = {"log.retention.check.interval.ms": 1}
NODE = 7
QUOTA = ClientQuotaRecord(
    entity=[EntityData(entity_type="user", entity_name="alice")], key="producer_byte_rate", value=1.5
)
PASSWORD = UserScramCredentialRecord(
    name="alice", mechanism=2, salt=b"s", stored_key=b"k", server_key=b"k", iterations=8192
)


def kafkas(root: Path, *more: Message, **configs: str) -> dict[str, Uuid]:
    """A directory of node 7 with the topics a (two partitions) and stray, of which the metadata know a; their ids."""
    with EmbeddedKafka(data_dir=root, node_id=NODE) as kafka, Wire(kafka.bootstrap_servers) as wire:
        ids = {name: create(wire, name, count) for name, count in (("a", 2), ("stray", 1), ("gone", 1))}
        for name in ids:
            produce(wire, name, batch(b"old", first_ms=LONG_AGO_MS))
    shutil.rmtree(root / "__cluster_metadata-0")
    write_kafka_log(
        root,
        *topic_records("gone", ids["gone"], [[NODE]]),
        RemoveTopicRecord(topic_id=ids["gone"]),
        *topic_records("a", ids["a"], [[NODE], [NODE, 8], [8, 9]], leader_epoch=41, **configs),
        *more,
    )
    return ids


def adopted(root: Path, **settings: object) -> tuple[KafkaBroker, Adoption]:
    given: Mapping[str, object] = {
        **EAGER,
        "log.dirs": str(root),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "node.id": NODE,
        "kclient.adopt.topics": True,
    }
    broker = KafkaBroker(BrokerConfig.parse({**given, **settings}))
    broker.start()
    assert broker.adoption is not None
    return broker, broker.adoption


def test_topics_come_with_ids_counts_and_epochs_and_what_is_elsewhere_begins_empty(tmp_path: Path) -> None:
    ids = kafkas(tmp_path, ProducerIdsRecord(broker_id=NODE, next_producer_id=12_000), QUOTA, PASSWORD)
    theirs = fingerprint(tmp_path / "__cluster_metadata-0")
    broker, account = adopted(tmp_path)
    try:
        with Wire(broker.bootstrap_servers) as wire:
            found = topics(wire)
            assert {name: (topic.topic_id, len(topic.partitions)) for name, topic in found.items()} == {
                "a": (ids["a"], 3),
                "stray": (ids["stray"], 1),
            }
            assert [part.leader_epoch for part in found["a"].partitions] == [42, 42, 42]
            assert [fetch(wire, "a", number).high_watermark for number in range(3)] == [1, 0, 0]
    finally:
        broker.stop()
    assert (account.topics, account.partitions, account.records) == (2, 3, 2)
    assert (account.users, account.rules, account.quotas, account.deleted) == (1, 0, 1, 1)
    assert (account.unclaimed, account.elsewhere) == (["stray"], {"a": 1})
    assert not list(tmp_path.glob("gone-0"))
    assert fingerprint(tmp_path / "__cluster_metadata-0") == theirs
    image = MetadataStore(tmp_path / "__kclient_metadata-0", SYSTEM_TIME, snapshot_bytes=1 << 40).image
    assert image.producer_ids.next_producer_id >= 12_000
    assert [*image.client_quotas.records(), *image.scram.records()] == [QUOTA, PASSWORD]


@pytest.mark.parametrize(
    ("settings", "configs", "kept"),
    [
        ({}, {}, True),
        ({}, {"retention_ms": "9223372036854775807"}, True),
        ({}, {"retention_ms": "1000"}, False),
        ({"log.retention.ms": 1000}, {}, False),
        ({"log.retention.ms": 1000}, {"retention_ms": "-1"}, True),
    ],
    ids=[
        "nothing said",
        "kept by the topic",
        "not kept by the topic",
        "not kept by the broker",
        "the topic wins",
    ],
)
def test_records_go_only_if_somebody_said_so(
    tmp_path: Path, settings: dict[str, object], configs: dict[str, str], kept: bool
) -> None:
    kafkas(tmp_path, **configs)
    broker, account = adopted(tmp_path, **settings)
    try:
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, "witness", 1, retention_ms="1000")
            produce(wire, "witness", batch(b"old", first_ms=LONG_AGO_MS))
            wait_until(lambda: fetch(wire, "witness").log_start_offset == 1, what="retention")
            if kept:
                assert values(wire, "a") == [b"old"]
            else:
                wait_until(lambda: fetch(wire, "a").log_start_offset == 1, what="retention of a")
            assert values(wire, "stray") == [b"old"]
    finally:
        broker.stop()
    assert list(account.kept) == (["a"] if not settings and not configs else [])


def test_the_next_start_needs_no_adoption_and_knows_what_was_deleted_since(tmp_path: Path) -> None:
    kafkas(tmp_path, *topic_records("b", Uuid.random(), [[NODE]]), max_message_bytes="77777")
    broker, _ = adopted(tmp_path)
    with Wire(broker.bootstrap_servers) as wire:
        produce(wire, "a", batch(b"new"))
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.delete_topics(["stray", "b"])
    broker.stop()
    for settings in ({}, {"kclient.adopt.topics": True}):
        with (
            EmbeddedKafka({**EAGER, **settings}, data_dir=tmp_path, node_id=NODE) as kafka,
            Wire(kafka.bootstrap_servers) as wire,
        ):
            assert set(topics(wire)) == {"a"}
            assert (values(wire, "a"), fetch(wire, "a").high_watermark) == ([b"old"], 2), (
                "each in its segment"
            )
            with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
                resource = ConfigResource(ConfigResourceType.TOPIC, "a")
                assert admin.describe_configs([resource])[resource]["max.message.bytes"].value == "77777"


def test_a_directory_of_another_node_is_not_adopted_before_that_is_said(tmp_path: Path) -> None:
    kafkas(tmp_path)
    before = fingerprint(tmp_path)
    with pytest.raises(InconsistentClusterIdError, match=r"set node\.id=7"):
        adopted(tmp_path, **{"node.id": 1})
    with pytest.raises(KafkaStorageError, match=r"kclient\.read\.only=true"):
        EmbeddedKafka(data_dir=tmp_path, node_id=NODE).start()
    after = fingerprint(tmp_path)
    assert {**after, ".": ()} == {**before, ".": ()}


def test_the_same_is_shown_without_a_change(tmp_path: Path) -> None:
    kafkas(tmp_path, retention_ms="1000")
    before = fingerprint(tmp_path)
    with (
        EmbeddedKafka(EAGER, data_dir=tmp_path, node_id=NODE, read_only=True) as kafka,
        Wire(kafka.bootstrap_servers) as wire,
    ):
        found = topics(wire)
        assert set(found) == {"a", "stray"}
        assert [part.leader_id for part in found["a"].partitions] == [NODE, NODE, -1]
        assert values(wire, "a") == [b"old"]
    assert fingerprint(tmp_path) == before


def test_the_account_names_what_an_operator_has_to_know() -> None:
    account = Adoption(
        metadata_log=Path("/data/__cluster_metadata-0"), topics=3, partitions=9, records=100, size_bytes=5000,
        users=1, rules=2, quotas=3, broker_settings=4, unclaimed=["u"], kept=[f"k{n}" for n in range(7)],
        elsewhere={"e": 2}, unwritable=["w"], left_out={"l": ["remote.storage.enable"]}, deleted=1,
        transactions=EndedTransactions(committed=["c-0"], aborted=["x-0", "x-1"], failed=["f-0"]),
    )  # fmt: skip
    assert str(account).splitlines() == [
        "adopted 3 topics with 9 partitions, as /data/__cluster_metadata-0 has them",
        "adopted 100 records at most, 5000 bytes",
        "adopted 1 SCRAM users, 2 access rules, 3 quotas",
        "adopted 4 settings of brokers",
        "removed 1 partitions of topics that were deleted",
        "keeping all records of topics that no metadata know: u",
        f"{KEPT}k0, k1, k2, k3, k4 and 2 more",
        "warning: 2 partitions of e are on other brokers, and begin empty here",
        "warning: min.insync.replicas is more than 1 for w: writes with acks=all are refused until it is 1",
        "committed transactions that Kafka had decided to commit and not ended: c-0",
        "warning: aborted transactions that were open: x-0, x-1",
        f"warning: transactions are open in f-0, {OPEN}",
        "warning: settings of l that this broker does not have: remote.storage.enable",
    ]


@pytest.mark.parametrize("option", ["--read-only", "--adopt"])
def test_the_command_opens_a_directory_and_says_what_it_took(tmp_path: Path, option: str) -> None:
    kafkas(tmp_path)
    before = fingerprint(tmp_path)
    command = [sys.executable, "-m", "kclient", "broker", "--port", "0", "--data-dir", str(tmp_path)]
    with subprocess.Popen(
        [*command, option, "-X", f"node.id={NODE}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on ")
        with Wire(line.split()[-1]) as wire:
            assert values(wire, "a") == [b"old"]
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0
    assert ("adopted 2 topics with 3 partitions" in said) == (option == "--adopt")
    assert (fingerprint(tmp_path) == before) == (option == "--read-only")


def test_the_command_wants_a_directory_to_open() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kclient", "broker", "--adopt"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode != 0
    assert "--data-dir" in done.stderr
