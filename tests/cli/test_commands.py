"""The kclient command, as a person or a script uses it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
import uuid
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harness.network.ports import closed_port
from harness.topics import read_all
from kclient import KafkaAdminClient, KafkaProducer
from kclient.broker import EmbeddedKafka
from kclient.cli.common import table
from kclient.cli.main import main


def lines_file(tmp_path: Path, *lines: str) -> str:
    file = tmp_path / "lines"
    file.write_text("".join(line + "\n" for line in lines))
    return str(file)


def consume(servers: str, topic: str, *more: str, count: int) -> int:
    return main(
        [
            *("consume", "--bootstrap-server", servers, "--topic", topic, "--from-beginning"),
            *("--max-messages", str(count), "--timeout-ms", "20000", *more),
        ]
    )


def test_lines_of_a_file_arrive_with_keys_and_headers(
    servers: str, topic: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = lines_file(tmp_path, "h:1,g:\tk1\tone", "\tk2\ttwo")
    arguments = [
        "produce",
        "--bootstrap-server",
        servers,
        "--topic",
        topic,
        "--file",
        file,
        "--partition",
        "1",
    ]
    for name in ("parse.key", "parse.headers"):
        arguments += ["--reader-property", f"{name}=true"]
    assert main(arguments) == 0
    assert capsysbinary.readouterr().err.endswith(b"2 delivered, 0 failed\n")
    assert consume(servers, topic, "--output", "json", count=2) == 0
    shown = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [(r["partition"], r["offset"], r["key"], r["value"]) for r in shown] == [
        (1, 0, "k1", "one"),
        (1, 1, "k2", "two"),
    ]
    assert shown[0]["headers"] == [{"name": "h", "value": "1"}, {"name": "g", "value": ""}]


def test_a_line_without_the_key_it_should_have_is_a_failure(
    servers: str, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines_file(tmp_path, "k:good", "bad")
    code = main(
        [
            *("produce", "--bootstrap-server", servers, "--topic", topic, "--file", file),
            *("--property", "parse.key=true", "--property", "key.separator=:"),
        ]
    )
    said = capsys.readouterr().err
    assert code == 1
    assert "line 2" in said
    assert "1 delivered, 1 failed" in said


def test_what_is_in_brackets_is_said_and_shown_as_it_is(
    servers: str, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines_file(tmp_path, "bad")
    code = main(
        [
            *("produce", "--bootstrap-server", servers, "--topic", topic, "--file", file),
            *("--property", "parse.key=true", "--property", "key.separator=[/red]"),
        ]
    )
    assert code == 1
    assert "[/red]" in capsys.readouterr().err
    console = Console(file=StringIO(), width=80)
    console.print(table(["GROUP"], [["[red]g[/]"]]))
    assert "[red]g[/]" in console.file.getvalue()  # type: ignore[attr-defined]


def test_text_formats_fill_in_their_marks(
    servers: str, topic: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = lines_file(tmp_path, "k=v")
    arguments = ["--property", "parse.key=true", "--property", "key.separator=="]
    main(
        [
            "produce",
            "--bootstrap-server",
            servers,
            "--topic",
            topic,
            "--file",
            file,
            "--partition",
            "0",
            *arguments,
        ]
    )
    capsysbinary.readouterr()
    assert consume(servers, topic, "--format", r"%t/%p@%o %k:%s (%S)\n", count=1) == 0
    assert capsysbinary.readouterr().out == f"{topic}/0@0 k:v (1)\n".encode()
    assert (
        consume(servers, topic, "--property", "print.key=true", "--property", "key.separator=|", count=1) == 0
    )
    assert capsysbinary.readouterr().out == b"k|v\n"


def test_bytes_that_are_no_text_come_as_base64(
    servers: str, topic: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send(topic, b"\xff\x00")
    assert consume(servers, topic, "--output", "json", count=1) == 0
    assert json.loads(capsysbinary.readouterr().out)["value_base64"] == "/wA="


def test_an_unknown_mark_or_property_is_refused_with_those_that_exist(
    servers: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert consume(servers, topic, "--format", "%z", count=1) == 2
    assert "%t" in capsys.readouterr().err
    assert consume(servers, topic, "--property", "print.keys=true", count=1) == 2
    assert "print.key" in capsys.readouterr().err


def test_consuming_in_a_group_commits_only_what_was_printed(
    servers: str, topic: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = lines_file(tmp_path, *(f"v{i}" for i in range(10)))
    main(["produce", "--bootstrap-server", servers, "--topic", topic, "--file", file, "--partition", "0"])
    capsysbinary.readouterr()
    group = f"g-{topic}"
    assert consume(servers, topic, "--group", group, count=4) == 0
    assert consume(servers, topic, "--group", group, count=6) == 0
    assert capsysbinary.readouterr().out.split() == [b"v%d" % i for i in range(10)]
    assert main(["groups", "--bootstrap-server", servers, "--describe", "--group", group]) == 0
    header, *rows = capsysbinary.readouterr().out.decode().splitlines()
    assert header.split("\t")[:5] == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET"]
    assert f"{group}\t{topic}\t0\t10\t10\t0" in "\n".join(rows)
    assert main(["groups", "--bootstrap-server", servers, "--list"]) == 0
    assert group in capsysbinary.readouterr().out.decode().split()
    assert main(["groups", "--bootstrap-server", servers, "--delete", "--group", group]) == 0


def test_of_a_poll_that_is_cut_short_each_partition_is_committed_as_far_as_it_was_printed(
    servers: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    group = f"g-{topic}"
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(8):
            producer.send(topic, b"v%d" % number, partition=number % 2)
    printed: list[str] = []
    for count in (2, 3, 3):
        assert consume(servers, topic, "--group", group, count=count) == 0
        printed += capsys.readouterr().out.split()
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            committed = admin.list_consumer_group_offsets(group)
        assert sum(one.offset for one in committed.values() if one is not None) == len(printed)
    assert sorted(printed) == [f"v{number}" for number in range(8)]


def test_fewer_records_than_asked_for_is_a_failure(
    servers: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(
        [
            "consume",
            "--bootstrap-server",
            servers,
            "--topic",
            topic,
            "--max-messages",
            "1",
            "--timeout-ms",
            "300",
        ]
    )
    assert code == 1
    assert "0 records" in capsys.readouterr().err


def test_topics_are_created_listed_described_and_deleted(
    servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["topics", "--bootstrap-server", servers]
    topic = f"t-{uuid.uuid4().hex[:8]}"
    assert main([*at, "--create", "--topic", topic, "--partitions", "2"]) == 0
    assert capsys.readouterr().out == f"Created topic {topic} with 2 partitions.\n"
    assert main([*at, "--list"]) == 0
    assert topic in capsys.readouterr().out.split()
    assert main([*at, "--describe", "--topic", topic]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main([*at, "--create", "--topic", topic]) == 1
    assert topic in capsys.readouterr().err
    assert main([*at, "--create", "--topic", topic, "--if-not-exists"]) == 0
    assert main([*at, "--delete", "--topic", topic]) == 0
    assert main([*at, "--describe", "--topic", topic]) == 1
    assert main([*at, "--delete", "--topic", topic, "--if-exists"]) == 0


def test_settings_of_topics_are_set_described_and_deleted(
    servers: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["configs", "--bootstrap-server", servers, "--topic", topic]
    assert main([*at, "--alter", "--add-config", "cleanup.policy=[compact,delete],retention.ms=60000"]) == 0
    assert capsys.readouterr().out == f"Changed topics {topic}: set cleanup.policy, retention.ms.\n"
    assert main([*at, "--describe"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"topics {topic}\tcleanup.policy\tcompact,delete\tDYNAMIC_TOPIC_CONFIG",
        f"topics {topic}\tretention.ms\t60000\tDYNAMIC_TOPIC_CONFIG",
    ]
    assert main([*at, "--alter", "--delete-config", "cleanup.policy,retention.ms"]) == 0
    capsys.readouterr()
    assert main([*at, "--describe"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_acls_are_added_listed_and_removed(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedKafka(super_users=["ANONYMOUS"]) as kafka:
        at = ["acls", "--bootstrap-server", kafka.bootstrap_servers]
        may = ["--topic", "orders", "--allow-principal", "User:alice"]
        assert main([*at, "--add", *may, "--operation", "Read"]) == 0
        capsys.readouterr()
        assert main([*at, "--list"]) == 0
        (line,) = capsys.readouterr().out.splitlines()[1:]
        assert line.split("\t") == ["TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW"]
        assert main([*at, "--remove", "--force", *may, "--operation", "Read"]) == 0
        assert "Removed: ALLOW READ to User:alice" in capsys.readouterr().out
        assert main([*at, "--list"]) == 0
        assert len(capsys.readouterr().out.splitlines()) <= 1


def test_acls_of_a_broker_without_an_authorizer_are_an_error(
    servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["acls", "--list", "--bootstrap-server", servers]) == 1
    assert "no authorizer" in capsys.readouterr().err


def test_what_the_broker_does_not_have_is_said_by_its_name(
    servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["delegation-tokens", "--describe", "--bootstrap-server", servers]) == 1
    assert capsys.readouterr().err == "error: The broker does not support DESCRIBE_DELEGATION_TOKEN at all\n"


def test_quotas_are_set_and_described_on_the_embedded_broker(
    servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    of_u = ["--user", "u", "--bootstrap-server", servers]
    assert main(["configs", "--alter", "--add-config", "producer_byte_rate=1048576", *of_u]) == 0
    capsys.readouterr()
    assert main(["configs", "--describe", *of_u]) == 0
    assert "producer_byte_rate" in capsys.readouterr().out


def test_a_wrong_setting_ends_with_code_2_and_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "--list", "-X", "request.timeout=5"]) == 2
    assert "request.timeout.ms" in capsys.readouterr().err


def test_a_broker_that_is_not_there_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    limits = ["-X", "default.api.timeout.ms=400", "-X", "request.timeout.ms=300"]
    assert main(["topics", "--list", "--bootstrap-server", "127.0.0.1:1", *limits]) == 1
    said = capsys.readouterr().err
    assert "127.0.0.1:1" in said
    assert "Traceback" not in said


def test_settings_come_from_a_java_properties_file(
    servers: str, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "client.properties"
    config.write_text(f"bootstrap.servers={servers}\nacks=all\nlinger.ms=1\n")
    file = lines_file(tmp_path, "x")
    assert main(["produce", "--topic", topic, "--file", file, "--command-config", str(config)]) == 0
    assert "1 delivered" in capsys.readouterr().err


@pytest.fixture
def java_client(servers: str, tmp_path: Path) -> str:
    """The file of a Java client, with how that one turns bytes into objects; one class is not even Kafka's."""
    file = tmp_path / "client.properties"
    types = "org.apache.kafka.common.serialization"
    file.write_text(
        f"bootstrap.servers={servers}\n"
        f"key.serializer={types}.StringSerializer\nvalue.serializer={types}.StringSerializer\n"
        f"key.deserializer={types}.StringDeserializer\n"
        "value.deserializer=io.confluent.kafka.serializers.KafkaAvroDeserializer\n"
    )
    return str(file)


@pytest.mark.parametrize(("more", "shown"), [((), "v\n"), (("--output", "json"), '"value": "v"')])
def test_commands_write_and_read_bytes_whatever_serializers_a_file_names(
    topic: str,
    java_client: str,
    tmp_path: Path,
    more: tuple[str, ...],
    shown: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, of_java = lines_file(tmp_path, "v"), ("--topic", topic, "--command-config", java_client)
    assert main(["produce", *of_java, "--file", file]) == 0
    assert main(["consume", *of_java, "--from-beginning", "--max-messages", "1", *more]) == 0
    assert shown in capsys.readouterr().out


def test_a_deserializer_is_the_command_s_own_also_where_an_option_names_another(
    servers: str, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines_file(tmp_path, "v")
    assert main(["produce", "--bootstrap-server", servers, "--topic", topic, "--file", file]) == 0
    assert consume(servers, topic, "-X", "value.deserializer=long", count=1) == 0
    assert capsys.readouterr().out == "v\n"


@pytest.mark.parametrize("command", ["topics", "groups"])
def test_commands_of_the_admin_client_take_a_file_with_serializers(command: str, java_client: str) -> None:
    assert main([command, "--list", "--command-config", java_client]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("topcs --list", "did you mean topics?"),
        ("topics --list --topik x", "did you mean --topic?"),
        ("perf prduce", "did you mean produce?"),
        ("consume --topic t --output jsn", "did you mean json?"),
        ("topics --create --topic t --partitions 0", "--partitions: '0' should be a whole number, 1 or more"),
        ("topics --create --topic t --partitions x", "--partitions: 'x' should be a whole number, 1 or more"),
        ("topics --list all", "all is not known here"),
    ],
)
def test_a_command_line_that_is_wrong_is_told_with_what_it_may_have_meant(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_without_a_command_the_help_is_printed_and_the_code_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert "consume " in captured.err
    assert not captured.out


def test_an_offset_without_a_partition_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["consume", "--topic", "t", "--offset", "3"]) == 2
    assert capsys.readouterr().err == "error: --offset needs --partition\n"


@pytest.mark.parametrize("more", [(), ("--state",), ("--members",)])
def test_a_group_that_does_not_exist_is_said_not_to(
    servers: str, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["groups", "--bootstrap-server", servers, "--describe", "--group", "nosuch", *more]) == 1
    captured = capsys.readouterr()
    assert captured.err == "error: There is no group nosuch\n"
    assert not captured.out


def test_one_is_counted_in_the_singular(
    servers: str, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lines_file(tmp_path, "x")
    assert main(["produce", "--bootstrap-server", servers, "--topic", topic, "--file", file]) == 0
    assert consume(servers, topic, count=1) == 0
    assert "1 record\n" in capsys.readouterr().err
    one = ["--create", "--topic", f"{topic}-one", "--partitions", "1"]
    assert main(["topics", "--bootstrap-server", servers, *one]) == 0
    assert capsys.readouterr().out == f"Created topic {topic}-one with 1 partition.\n"


@pytest.mark.parametrize("more", [(), ("--group", "g"), ("--partition", "0")])
def test_the_timeout_of_consume_holds_while_no_broker_runs(more: tuple[str, ...]) -> None:
    started = time.monotonic()
    words = ["consume", "--bootstrap-server", f"127.0.0.1:{closed_port()}", "--topic", "t", *more]
    main([*words, "--timeout-ms", "300"])
    assert time.monotonic() - started < 20


def test_who_types_records_sees_a_prompt_and_no_bar(servers: str, topic: str) -> None:
    controller, terminal = pty.openpty()
    try:
        command = [sys.executable, "-m", "kclient", "produce", "--topic", topic]
        process = subprocess.Popen(
            [*command, "--bootstrap-server", servers], stdin=terminal, stderr=terminal, close_fds=True
        )
        seen = b""
        for line in (b"one\n", b"two\n", b"\x04"):
            while not seen.endswith(b">"):
                seen += os.read(controller, 1)
            os.write(controller, line)
            seen += os.read(controller, 1)
        while not seen.endswith(b"failed\r\n"):
            seen += os.read(controller, 1)
        assert process.wait(30) == 0
    finally:
        os.close(controller)
        os.close(terminal)
    assert seen.replace(b"^D\x08\x08", b"") == b">one\r\n>two\r\n>\r\n2 delivered, 0 failed\r\n"
    assert [record.value for record in read_all(servers, topic)] == [b"one", b"two"]


def test_standard_input_is_read_and_a_closed_output_ends_quietly(servers: str, topic: str) -> None:
    text = "".join(f"line {i}\n" for i in range(500)).encode()
    command = [sys.executable, "-m", "kclient", "produce", "--topic", topic, "--bootstrap-server", servers]
    done = subprocess.run(command, input=text, capture_output=True, timeout=60, check=True)
    assert done.stderr.endswith(b"500 delivered, 0 failed\n")
    pipe = (
        f"{sys.executable} -m kclient consume --topic {topic} --from-beginning --bootstrap-server {servers}"
    )
    head = subprocess.run(
        ["bash", "-c", f"{pipe} --max-messages 500 | head -n 1"], capture_output=True, timeout=60, check=True
    )
    assert head.stdout.startswith(b"line ")
    assert b"Traceback" not in head.stderr


def test_the_demo_verifies_every_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--records", "3000"]) == 0
    said = capsys.readouterr().out
    assert "verified: 3,000 records" in said
    assert "demo-consumer-1" in said
    assert "demo-consumer-2" in said


def test_the_demo_runs_on_the_cluster_of_a_settings_file(
    servers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={servers}\nsecurity.protocol=PLAINTEXT\n")
    assert main(["demo", "--records", "300", "--command-config", str(file)]) == 0
    said = capsys.readouterr().out
    assert "verified: 300 records" in said
    assert "embedded broker" not in said
    file.write_text("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n")
    assert main(["demo", "--records", "300", "--command-config", str(file)]) == 2
    assert "sasl.jaas.config" in " ".join(capsys.readouterr().err.split())


def test_the_demo_fails_when_a_record_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kclient.cli import demo

    take = demo.Verifier.take
    monkeypatch.setattr(demo.Verifier, "take", lambda self, batch: take(self, [*batch[:-1], batch[-2]]))
    assert main(["demo", "--records", "500"]) == 1
    assert "NOT verified" in capsys.readouterr().out
