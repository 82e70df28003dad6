"""Every command of `kclient` on a real Apache Kafka, with its main options.

What a command is tested by is named `test_COMMAND_...`, for a part of `perf` `test_perf_PART_...`.
"""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import pytest

from harness.real_kafka.broker import RealKafka
from harness.topics import end_offsets, new_topic, produce, read_all
from harness.waiting import wait_until
from kclient.cli import perf
from kclient.cli.main import COMMANDS, main
from kclient.common.topic_partition import TopicPartition

# One is a broker itself, one runs on Spark and is tested there; the others are in test_admin_transactions.py,
# test_admin_security.py and test_cli_groups.py.
_ELSEWHERE = {"broker", "pipeline", "transactions", "delegation-tokens", "groups", "share-groups"}

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def servers(kafka: RealKafka) -> str:
    return kafka.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    return new_topic(servers, 2)


def kclient(servers: str, command: str, *words: str) -> int:
    return main([*command.split(), "--bootstrap-server", servers, *words])


def lines(captured: Captured) -> list[list[str]]:
    """The lines that were printed, without the header."""
    return [line.split("\t") for line in captured.readouterr().out.splitlines()[1:]]


def test_every_command_has_a_test_here() -> None:
    commands = {command for command in COMMANDS if command not in _ELSEWHERE | {"perf"}}
    commands |= {f"perf_{part}" for part in perf.PARTS}
    tests = [test for test in dir(sys.modules[__name__]) if test.startswith("test_")]
    assert not {c for c in commands if not any(test.startswith(f"test_{c}_") for test in tests)}


def test_topics_are_created_listed_described_and_deleted(servers: str, capsys: Captured) -> None:
    name = f"n-{uuid.uuid4().hex[:12]}"
    create = ("--create", "--topic", name, "--partitions", "2", "--replication-factor", "1")
    assert kclient(servers, "topics", *create, "--config", "retention.ms=60000") == 0
    assert capsys.readouterr().out == f"Created topic {name} with 2 partitions.\n"
    assert kclient(servers, "topics", *create) == 1
    assert name in capsys.readouterr().err
    assert kclient(servers, "topics", *create, "--if-not-exists") == 0
    capsys.readouterr()
    assert kclient(servers, "topics", "--list", "--exclude-internal") == 0
    assert name in capsys.readouterr().out.splitlines()
    assert kclient(servers, "topics", "--describe", "--topic", f"{name[:-1]}.") == 0
    assert [line[:5] for line in lines(capsys)] == [[name, "0", "1", "1", "1"], [name, "1", "1", "1", "1"]]
    assert kclient(servers, "topics", "--delete", "--topic", name) == 0
    wait_until(lambda: kclient(servers, "topics", "--describe", "--topic", name) == 1, what="its end")
    assert kclient(servers, "topics", "--delete", "--topic", name, "--if-exists") == 0


def test_produce_and_consume_keep_keys_headers_partitions_and_codecs(
    servers: str, topic: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "lines"
    file.write_text("h:1\tk1\tone\nh:2\tk2\ttwo\n")
    options = ["--topic", topic, "--file", str(file), "--partition", "1", "--compression-codec", "zstd"]
    for name in ("parse.key", "parse.headers"):
        options += ["--reader-property", f"{name}=true"]
    assert kclient(servers, "produce", *options, "--request-required-acks", "all", "-X", "linger.ms=1") == 0
    assert b"2 delivered, 0 failed" in capsysbinary.readouterr().err
    read = ("--topic", topic, "--max-messages", "2", "--timeout-ms", "20000")
    assert kclient(servers, "consume", *read, "--from-beginning", "--output", "json") == 0
    shown = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [(one["partition"], one["offset"], one["key"], one["value"]) for one in shown] == [
        (1, 0, "k1", "one"),
        (1, 1, "k2", "two"),
    ]
    assert shown[1]["headers"] == [{"name": "h", "value": "2"}]
    at_offset = ("--partition", "1", "--offset", "1", "--max-messages", "1", "--format", "%p:%o %k=%v %h\\n")
    assert kclient(servers, "consume", *read, *at_offset) == 0
    assert capsysbinary.readouterr().out == b"1:1 k2=two h=2\n"


def test_consume_reads_patterns_and_groups_and_commits_what_it_printed(
    servers: str, topic: str, capsys: Captured
) -> None:
    produce(servers, topic, 10)
    group = f"g-{topic}"
    pattern = ("--include", f"{topic[:-1]}.", "--group", group, "--from-beginning", "--timeout-ms", "20000")
    committed = ("--isolation-level", "read_committed", "--property", "print.key=true")
    assert kclient(servers, "consume", *pattern, *committed, "--max-messages", "4") == 0
    assert kclient(servers, "consume", *pattern, *committed, "--max-messages", "6") == 0
    printed = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert sorted(printed) == sorted([f"k{number}", f"v{number}"] for number in range(10))
    assert kclient(servers, "groups", "--describe", "--group", group) == 0
    ends = end_offsets(servers, topic)
    assert [line[:6] for line in lines(capsys)] == [
        [group, topic, str(number), str(end), str(end), "0"]
        for number in range(2)
        for end in [ends[TopicPartition(topic, number)]]
    ]


def test_acls_says_that_the_cluster_has_no_authorizer(servers: str, capsys: Captured) -> None:
    """With one it is in test_admin_security.py."""
    assert kclient(servers, "acls", "--list") == 1
    assert "No Authorizer is configured" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("option", "kind", "name", "value"),
    [
        ("--topic", "topics", "retention.ms", "60000"),
        ("--broker", "brokers", "log.cleaner.threads", "2"),
        ("--group", "groups", "consumer.session.timeout.ms", "50000"),
        ("--client-metrics", "client-metrics", "interval.ms", "60000"),
        ("--client", "clients", "request_percentage", "50.5"),
    ],
)
def test_configs_are_set_described_and_deleted(
    servers: str, topic: str, capsys: Captured, option: str, kind: str, name: str, value: str
) -> None:
    entity = "1" if kind == "brokers" else topic

    def described(*words: str) -> list[list[str]]:
        capsys.readouterr()
        assert kclient(servers, "configs", "--describe", *words) == 0
        return [row[1:3] for row in lines(capsys) if row[0] == f"{kind} {entity}"]

    assert kclient(servers, "configs", "--alter", option, entity, "--add-config", f"{name}={value}") == 0
    wait_until(lambda: described(option, entity) == [[name, value]], what="the setting")
    assert described("--entity-type", kind) == [[name, value]]
    delete = ("configs", "--alter", option, entity, "--delete-config", name)
    assert kclient(servers, *delete) == 0
    wait_until(lambda: described(option, entity) == [], what="its end")
    assert kclient(servers, *delete) == 1
    assert "is not set there" in " ".join(capsys.readouterr().err.split())


def test_configs_that_the_broker_does_not_know_are_refused_by_name(
    servers: str, topic: str, capsys: Captured
) -> None:
    assert kclient(servers, "configs", "--alter", "--topic", topic, "--add-config", "no.such=1") == 1
    assert "no.such" in capsys.readouterr().err


def test_doctor_finds_a_cluster_well_and_guesses_its_release(servers: str, capsys: Captured) -> None:
    assert kclient(servers, "doctor", "--output", "json") == 0
    found = json.loads(capsys.readouterr().out)
    (broker,) = found["brokers"]
    assert (f"{broker['host']}:{broker['port']}", broker["id"]) == (servers, 1)
    _, versions, metadata = broker["addresses"][0]["steps"]
    assert versions["speaks_like"] == "Kafka 4.3"
    assert metadata["brokers"] == [f"{servers} (id 1)"]
    assert found["cluster_id"]


def test_perf_produce_and_perf_consume_count_every_record(servers: str, topic: str, capsys: Captured) -> None:
    send = ("--topic", topic, "--num-records", "500", "--record-size", "20", "--print-metrics")
    assert kclient(servers, "perf produce", *send, "--producer-props", "acks=all", "linger.ms=1") == 0
    assert "500 records sent" in capsys.readouterr().out
    assert len(read_all(servers, topic)) == 500
    read = ("--topic", topic, "--num-records", "500", "--hide-header")
    for more in ((), ("--columns",), ("--group", f"g-{topic}", "--show-detailed-stats")):
        assert kclient(servers, "perf consume", *read, *more) == 0
        assert capsys.readouterr().out.splitlines()[-1].split(", ")[4] == "500"


def test_perf_consume_counts_every_record_of_a_pattern(servers: str, topic: str, capsys: Captured) -> None:
    produce(servers, topic, 20)
    assert kclient(servers, "perf consume", "--include", f"{topic[:-1]}.", "--messages", "20") == 0
    assert capsys.readouterr().out.splitlines()[-1].split(", ")[4] == "20"


def test_perf_latency_makes_its_topic_and_reads_back_what_it_sends(servers: str, capsys: Captured) -> None:
    name = f"n-{uuid.uuid4().hex[:12]}"
    assert kclient(servers, "perf latency", "--topic", name, "--num-records", "5") == 0
    assert "Percentiles" in capsys.readouterr().out
    assert list(end_offsets(servers, name).values()) == [5]


def test_demo_verifies_every_record(servers: str, capsys: Captured) -> None:
    assert kclient(servers, "demo", "--records", "1000") == 0
    assert "verified: 1,000 records" in capsys.readouterr().out
