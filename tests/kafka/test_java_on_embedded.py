"""Java's own tools on the embedded broker, which they cannot tell from Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.real_kafka.node import missing, tool
from harness.requirements import skip_if
from kclient.broker.embedded import EmbeddedKafka

TOOLS = "org.apache.kafka.tools."
COUNT = 5000


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedKafka]:
    skip_if(missing())
    with EmbeddedKafka({"num.partitions": "2"}) as broker:
        yield broker


def run(kafka: EmbeddedKafka, name: str, *arguments: str, stdin: bytes | None = None) -> str:
    return tool(f"{TOOLS}{name}", "--bootstrap-server", kafka.bootstrap_servers, *arguments, stdin=stdin)


def ends(kafka: EmbeddedKafka, topic: str) -> int:
    """The sum of the end offsets of a topic, as GetOffsetShell tells them."""
    lines = run(kafka, "GetOffsetShell", "--topic", topic).split()
    return sum(int(line.rpartition(":")[2]) for line in lines)


def test_topics_are_made_described_changed_and_deleted(embedded: EmbeddedKafka) -> None:
    run(
        embedded,
        "TopicCommand",
        *("--create", "--topic", "made", "--partitions", "3", "--config", "retention.ms=1000"),
    )
    described = run(embedded, "TopicCommand", "--describe", "--topic", "made")
    assert "PartitionCount: 3" in described
    assert "retention.ms=1000" in described
    run(embedded, "TopicCommand", "--alter", "--topic", "made", "--partitions", "5")
    assert run(embedded, "TopicCommand", "--describe", "--topic", "made").count("Leader: 1") == 5
    run(embedded, "TopicCommand", "--delete", "--topic", "made")
    assert "made" not in run(embedded, "TopicCommand", "--list").split()


def test_the_console_producers_lines_reach_the_console_consumer_and_its_group_is_described(
    embedded: EmbeddedKafka,
) -> None:
    lines = "".join(f"line {number}\n" for number in range(100))
    run(embedded, "ConsoleProducer", "--topic", "lines", stdin=lines.encode())
    printed = run(
        embedded,
        "consumer.ConsoleConsumer",
        *("--topic", "lines", "--from-beginning", "--max-messages", "100", "--timeout-ms", "30000"),
        *("--group", "readers"),
    )
    assert sorted(printed.splitlines()) == sorted(lines.splitlines())
    described = run(embedded, "consumer.group.ConsumerGroupCommand", "--describe", "--group", "readers")
    rows = [line.split() for line in described.splitlines() if "lines" in line.split()]
    assert sum(int(row[3]) for row in rows) == 100
    assert [row[5] for row in rows] == ["0"] * len(rows), described
    assert ends(embedded, "lines") == 100


def test_the_performance_tools_write_and_read(embedded: EmbeddedKafka, tmp_path: Path) -> None:
    said = tool(
        f"{TOOLS}ProducerPerformance",
        *("--topic", "perf", "--num-records", str(COUNT), "--record-size", "100", "--throughput", "-1"),
        *("--producer-props", f"bootstrap.servers={embedded.bootstrap_servers}", "acks=all"),
    )
    assert f"{COUNT} records sent" in said
    assert ends(embedded, "perf") == COUNT
    said = run(
        embedded,
        "ConsumerPerformance",
        *("--topic", "perf", "--messages", str(COUNT), "--timeout", "30000", "--hide-header"),
    )
    assert int(said.split(",")[4]) == COUNT


def test_the_verifiable_producer_and_consumer_agree(embedded: EmbeddedKafka) -> None:
    written = run(
        embedded, "VerifiableProducer", "--topic", "verified", "--max-messages", str(COUNT), "--acks", "-1"
    )
    events = [json.loads(line) for line in written.splitlines()]
    assert sum(event["name"] == "producer_send_success" for event in events) == COUNT
    read = run(
        embedded,
        "VerifiableConsumer",
        *("--topic", "verified", "--group-id", "verifiers", "--max-messages", str(COUNT)),
        *("--reset-policy", "earliest"),
    )
    events = [json.loads(line) for line in read.splitlines()]
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == COUNT
    assert all(event["success"] for event in events if event["name"] == "offsets_committed")


def test_versions_and_settings_are_told(embedded: EmbeddedKafka) -> None:
    assert "Produce(0): 0 to" in run(embedded, "BrokerApiVersionsCommand")
    described = tool(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", embedded.bootstrap_servers, "--describe", "--entity-type", "brokers"),
        *("--entity-name", "1", "--all"),
    )
    assert "num.partitions=2" in described


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_javas_clients_prove_who_they_are(tmp_path: Path, protocol: str) -> None:
    skip_if(missing())
    users = {"alice": "secret"} if protocol.startswith("SASL") else None
    with EmbeddedKafka(security=protocol, users=users) as kafka:
        settings = kafka.client_settings()
        if "ssl.truststore.location" in settings:
            settings["ssl.truststore.type"] = "PEM"
        if "sasl.jaas.config" in settings:
            module = "org.apache.kafka.common.security.plain.PlainLoginModule"
            settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace("PlainLoginModule", module)
        path = tmp_path / "client.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        run(kafka, "ConsoleProducer", "--topic", "t", "--command-config", str(path), stdin=b"one\ntwo\n")
        printed = run(
            kafka,
            "consumer.ConsoleConsumer",
            *("--topic", "t", "--from-beginning", "--max-messages", "2", "--timeout-ms", "30000"),
            *("--command-config", str(path)),
        )
    assert printed.split() == ["one", "two"]


def test_kafka_acls_gives_lists_and_takes_rights() -> None:
    skip_if(missing())
    with EmbeddedKafka(super_users=["ANONYMOUS"]) as kafka:
        may = ("--topic", "orders", "--allow-principal", "User:alice")
        added = run(kafka, "AclCommand", "--add", *may, "--consumer", "--group", "billing")
        assert "operation=READ" in added
        run(
            kafka,
            "AclCommand",
            *("--add", "--deny-principal", "User:eve", "--deny-host", "10.0.0.7", "--operation", "Write"),
            *("--topic", "pay", "--resource-pattern-type", "prefixed"),
        )
        listed = run(kafka, "AclCommand", "--list")
        assert listed.count("principal=User:alice") == 3
        assert "principal=User:eve, host=10.0.0.7, operation=WRITE, permissionType=DENY" in listed
        assert "resourceType=TOPIC, name=pay, patternType=PREFIXED" in listed
        matching = run(
            kafka, "AclCommand", "--list", "--topic", "payments", "--resource-pattern-type", "match"
        )
        assert ("User:eve" in matching, "User:alice" in matching) == (True, False)
        run(kafka, "AclCommand", "--remove", "--force", *may, "--operation", "Read")
        left = run(kafka, "AclCommand", "--list", "--topic", "orders")
        assert "operation=DESCRIBE" in left
        assert "operation=READ" not in left
