"""`kclient groups` and `kclient share-groups` on a real Apache Kafka, beside Kafka's own tools: the same rows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from harness.consumer.member import Member
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import SHORT_LIVED, classpath
from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.cli.group_csv import read_plans
from kclient.cli.main import main
from kclient.common.topic_partition import TopicPartition

Captured = pytest.CaptureFixture[str]
Row = list[str]

_TOOLS = {
    "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
}
_DETAILS = ("--verbose", "--members --verbose", "--state --verbose")


class Commands:
    """Our commands and Kafka's, with the words of their tables."""

    def __init__(self, kafka: RealKafka, captured: Captured) -> None:
        self._kafka, self._captured = kafka, captured
        self.servers = kafka.bootstrap_servers

    def code(self, command: str, words: str) -> int:
        return main([command, "--bootstrap-server", self.servers, *words.split()])

    def text(self, command: str, words: str) -> str:
        self._captured.readouterr()
        code = self.code(command, words)
        printed = self._captured.readouterr()
        assert code == 0, printed.err
        return printed.out

    def rows(self, command: str, words: str) -> list[Row]:
        """Lines without the header, as their words."""
        return [line.split() for line in self.text(command, words).splitlines()[1:]]

    def kafkas_text(self, command: str, words: str) -> str:
        return self._kafka.tool(_TOOLS[command], "--bootstrap-server", self.servers, *words.split())

    def assert_alike(self, command: str, words: str) -> None:
        """Both print the same header and rows, in any order of the rows."""
        theirs = [line.split() for line in self.kafkas_text(command, words).splitlines() if line.strip()]
        ours = [line.split() for line in self.text(command, words).splitlines()]
        assert ours[0] == theirs[0]
        assert sorted(ours[1:]) == sorted(theirs[1:])
        assert len(ours) > 1


@pytest.fixture
def commands(kafka: RealKafka, capsys: Captured) -> Commands:
    return Commands(kafka, capsys)


@pytest.fixture(scope="module")
def admin(kafka: RealKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as client:
        yield client


@pytest.fixture
def topic(kafka: RealKafka) -> str:
    return new_topic(kafka.bootstrap_servers, 2)


@contextmanager
def java(main_class: str, servers: str, *words: str) -> Iterator[None]:
    """One of Java's consumers, for as long as the block."""
    command = [
        "java",
        *SHORT_LIVED,
        "-Xmx128m",
        "-cp",
        classpath(),
        main_class,
        "--bootstrap-server",
        servers,
    ]
    process = subprocess.Popen([*command, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(10)


def java_consumer(servers: str, topic: str, group: str, **settings: str) -> AbstractContextManager[None]:
    properties = [f"{key.replace('_', '.')}={value}" for key, value in settings.items()]
    return java(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        servers,
        *("--topic", topic, "--group", group, "--from-beginning"),
        *(
            word
            for each in (*properties, "auto.commit.interval.ms=200")
            for word in ("--command-property", each)
        ),
    )


def all_read(commands: Commands, group: str) -> Callable[[], bool]:
    def check() -> bool:
        rows = commands.rows("groups", f"--describe --group {group}")
        return len(rows) == 2 and all(row[3] == row[4] != "-" and row[6] != "-" for row in rows)

    return check


def test_groups_of_classic_members_look_as_in_kafkas_tool(commands: Commands, topic: str) -> None:
    group = f"g-{topic}"
    produce(commands.servers, topic, 20)
    member = Member(commands.servers, topic, group, **{"client.id": "reader", "group.instance.id": "one"})
    try:
        wait_until(lambda: len(member.assignment) == 2, 30, "the assignment")
        wait_until(all_read(commands, group), 60, "the commits")
        for view in ("", "--members", "--state", *_DETAILS):
            commands.assert_alike("groups", f"--describe --group {group} {view}")
        assert [group, "Classic", "Stable"] in commands.rows("groups", "--list --state --type")
        commands.assert_alike("groups", "--list --state Stable --type classic")
    finally:
        member.stop()


def test_groups_of_the_new_protocol_look_as_in_kafkas_tool_while_they_are_migrated(
    commands: Commands, admin: KafkaAdminClient, topic: str
) -> None:
    group = f"g-{topic}"
    produce(commands.servers, topic, 20)
    member = Member(commands.servers, topic, group, **{"client.id": "classic"})
    try:
        wait_until(lambda: len(member.assignment) == 2, 30, "the assignment")
        with java_consumer(commands.servers, topic, group, group_protocol="consumer", client_id="new"):

            def settled() -> bool:
                found = admin.describe_consumer_groups([group])[group]
                return [len(one.assignment) for one in found.members] == [1, 1] and found.state == "Stable"

            wait_until(settled, 60, "both members' partitions")
            wait_until(all_read(commands, group), 60, "the commits")
            for view in _DETAILS:
                commands.assert_alike("groups", f"--describe --group {group} {view}")
            rows = commands.rows("groups", f"--describe --group {group} --members --verbose")
            assert {(row[3], row[-1]) for row in rows} == {("classic", "false"), ("new", "true")}
            assert [group, "Consumer"] in commands.rows("groups", "--list --type consumer")
            found = admin.describe_consumer_groups([group])[group]
            assert {each.upgraded for each in found.members} == {True, False}
            assert {each.member_epoch for each in found.members} == {found.group_epoch}
            assert all(each.target_assignment == each.assignment for each in found.members)
    finally:
        member.stop()


def test_groups_are_reset_to_plans_that_kafkas_tool_writes_and_it_reads_ours(
    commands: Commands, admin: KafkaAdminClient, topic: str, tmp_path: Path
) -> None:
    produce(commands.servers, topic, 20)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    groups = [f"g-{topic}-a", f"g-{topic}-b"]
    for number, group in enumerate(groups):
        admin.alter_consumer_group_offsets(group, {first: number, second: 2})
    named = " ".join(f"--group {group}" for group in groups)
    for words in (f"--group {groups[0]} --all-topics --shift-by 1", f"{named} --topic {topic} --to-current"):
        reset = f"--reset-offsets --dry-run {words}"
        mine, theirs = tmp_path / "mine.csv", tmp_path / "theirs.csv"
        mine.write_text(commands.text("groups", f"{reset} --export"))
        theirs.write_text(commands.kafkas_text("groups", f"{reset} --export"))
        chosen = [group for group in groups if group in words]
        assert read_plans(str(mine), chosen) == read_plans(str(theirs), chosen) != {}
    commands.kafkas_text("groups", f"--reset-offsets --execute {named} --from-file {mine}")
    commands.assert_alike("groups", f"--describe --group {groups[1]}")
    commands.assert_alike(
        "groups", f"--reset-offsets --dry-run --group {groups[1]} --topic {topic}:1 --to-latest"
    )
    assert commands.code("groups", f"--reset-offsets --execute {named} --from-file {theirs}") == 0
    assert admin.list_consumer_group_offsets(groups[1])[first] is not None


def test_groups_that_are_read_or_of_others_are_not_reset(
    commands: Commands, topic: str, capsys: Captured
) -> None:
    group = f"g-{topic}"
    reset = f"--reset-offsets --execute --topic {topic} --to-earliest"
    member = Member(commands.servers, topic, group)
    try:
        wait_until(lambda: len(member.assignment) == 2, 30, "the assignment")
        assert commands.code("groups", f"{reset} --group {group}") == 1
        assert f"inactive; '{group}' is Stable" in " ".join(capsys.readouterr().err.split())
    finally:
        member.stop()
    assert commands.code("share-groups", f"{reset} --group {group}-share") == 0
    assert commands.code("groups", f"{reset} --group {group}-share") == 1
    assert "its type is share" in " ".join(capsys.readouterr().err.split())
    assert f"{group}-share" not in commands.text("groups", "--list").split()
    assert f"{group}-share" in commands.text("share-groups", "--list").split()


def test_groups_lose_offsets_and_are_deleted(commands: Commands, admin: KafkaAdminClient, topic: str) -> None:
    group = f"g-{topic}"
    admin.alter_consumer_group_offsets(group, {TopicPartition(topic, number): 0 for number in range(2)})
    deleted = commands.rows("groups", f"--delete-offsets --group {group} --topic {topic}:1")
    assert deleted == [[topic, "1", "Successful"]]
    assert list(admin.list_consumer_group_offsets(group)) == [TopicPartition(topic, 0)]
    assert commands.text("groups", f"--delete --group {group}") == (
        f"Deletion of requested consumer groups ('{group}') was successful.\n"
    )
    assert group not in admin.list_groups()


def test_a_regular_expression_is_judged_by_the_broker_and_leaves_no_group(
    commands: Commands, admin: KafkaAdminClient, capsys: Captured
) -> None:
    # Kafka's tool has RE2 itself.
    for regex, code in (("orders-[a-z]+", 0), ("(?=look)ahead", 1)):
        assert commands.code("groups", f"--validate-regex {regex} --timeout 30000") == code
        printed = capsys.readouterr()
        assert ("is valid" in printed.out) == (code == 0)
        assert (regex in printed.err) == (code == 1)
        assert commands.code("groups", f"--validate-regex {regex} --output json") == code
        shown = json.loads(capsys.readouterr().out)
        assert (shown["regex"], shown["valid"], shown["error"] is None) == (regex, not code, not code)
    assert not [group for group in admin.list_groups() if "validate-regex" in group]


def test_share_groups_look_as_in_kafkas_tool_and_are_reset_and_deleted(
    commands: Commands, topic: str, capsys: Captured
) -> None:
    group = f"s-{topic}"
    share = ("org.apache.kafka.tools.consumer.ConsoleShareConsumer", commands.servers)
    with java(*share, "--topic", topic, "--group", group):

        def described(words: str = "") -> list[Row]:
            code = commands.code("share-groups", f"--describe --group {group} {words}")
            printed = capsys.readouterr().out
            return [line.split() for line in printed.splitlines()[1:]] if code == 0 else []

        wait_until(lambda: [row[4] for row in described("--members")] == ["2"], 60, "the assignment")
        wait_until(lambda: len(described()) == 2, 60, "the offsets")
        commands.assert_alike("share-groups", f"--describe --group {group}")

        def finished() -> bool:
            # It begins at the end of what there is when it first fetches, which nobody can see.
            produce(commands.servers, topic, 20)
            return [row[4] for row in described()] == ["0", "0"]

        wait_until(finished, 60, "the records")
        for view in ("--members", "--state", *_DETAILS):
            commands.assert_alike("share-groups", f"--describe --group {group} {view}")
        commands.assert_alike("share-groups", "--list --state stable")
        (shown,) = commands.text("share-groups", f"--describe --group {group} --members --output json").split(
            "\n"
        )[:1]
        assert json.loads(shown)["assignment"] == {topic: [0, 1]}
        for view, keys in {
            "": {"topic", "partition", "leader_epoch", "start_offset", "lag"},
            "--members": {"consumer_id", "host", "client_id", "partitions", "member_epoch", "assignment"},
            "--state": {"coordinator", "state", "group_epoch", "assignment_epoch", "members"},
        }.items():
            found = commands.text("share-groups", f"--describe --group {group} {view} --output json")
            for line in found.splitlines():
                assert json.loads(line).keys() == {"group", *keys}
        listed = [
            json.loads(line) for line in commands.text("share-groups", "--list --output json").splitlines()
        ]
        assert {"group": group, "state": "Stable"} in listed
        assert (
            commands.code("share-groups", f"--reset-offsets --group {group} --topic {topic} --to-latest") == 1
        )
        assert f"Share group '{group}' is not empty" in " ".join(capsys.readouterr().err.split())
        assert commands.code("share-groups", f"--delete --group {group}") == 1
    reset = f"--reset-offsets --group {group} --all-topics"

    def inactive() -> bool:
        return [row[3] for row in described("--state")] == ["Empty"]

    wait_until(inactive, 60, "the member's end")
    commands.assert_alike("share-groups", f"{reset} --to-earliest --dry-run")
    commands.assert_alike(
        "share-groups", f"--reset-offsets --group {group} --topic {topic}:1 --to-latest --dry-run"
    )
    assert [row[3] for row in commands.rows("share-groups", f"{reset} --to-offset 1 --execute")] == ["1", "1"]
    commands.assert_alike("share-groups", f"--describe --group {group}")
    assert commands.rows("share-groups", f"--describe --group {group}")[0][3] == "1"
    assert commands.text("share-groups", f"{reset} --to-current --export") == f"{topic},0,1\n{topic},1,1\n"
    deleted = commands.rows("share-groups", f"--delete-offsets --group {group} --topic {topic}")
    assert deleted == [[topic, "Successful"]]
    assert commands.code("share-groups", f"--delete --group {group} --group {group}-none") == 1
    printed = capsys.readouterr()
    assert f"'{group}'" in printed.out
    assert f"'{group}-none' is not a share group" in " ".join(printed.err.split())
    assert group not in commands.text("share-groups", "--list").split()
