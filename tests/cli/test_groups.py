"""`kclient groups` on the embedded broker: offsets reset in every way, exported, deleted; groups and members shown."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.consumer.member import Member
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.cli.main import main
from kclient.common.topic_partition import TopicPartition
from kclient.producer import KafkaProducer

Captured = pytest.CaptureFixture[str]
DAY_MS = 86_400_000


class Shell:
    """Runs `kclient groups`, and has what it printed."""

    def __init__(self, servers: str, captured: Captured) -> None:
        self._servers, self._captured = servers, captured
        self.error = ""
        self.text = ""

    def run(self, words: str) -> int:
        self._captured.readouterr()
        code = main(["groups", "--bootstrap-server", self._servers, *words.split()])
        self.text, self.error = self._captured.readouterr()
        return code

    def rows(self, words: str, code: int = 0) -> list[list[str]]:
        """Lines without the header."""
        assert self.run(words) == code, self.error
        return [line.split("\t") for line in self.text.splitlines()[1:]]

    def objects(self, words: str) -> list[dict[str, object]]:
        assert self.run(f"{words} --output json") == 0, self.error
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def shell(servers: str, capsys: Captured) -> Shell:
    return Shell(servers, capsys)


@pytest.fixture(scope="module")
def admin(servers: str) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=servers) as made:
        yield made


@pytest.fixture
def full(servers: str) -> str:
    """A topic with 10 records in partition 0, a day apart and the last one now, and none in partition 1."""
    name = new_topic(servers, 2, retention_ms="-1")
    now_ms = time.time_ns() // 1_000_000
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(10):
            stamp = now_ms - (9 - number) * DAY_MS
            producer.send(name, b"v", partition=0, timestamp_ms=stamp).result(30)
    return name


@pytest.fixture
def group(admin: KafkaAdminClient, full: str) -> str:
    """A group without members that has read 4 of them."""
    admin.alter_consumer_group_offsets(f"g-{full}", {TopicPartition(full, 0): 4})
    return f"g-{full}"


def new_offsets(rows: Sequence[Sequence[str]]) -> dict[str, int]:
    return {f"{topic}:{partition}": int(offset) for _, topic, partition, offset in rows}


@pytest.mark.parametrize(
    ("where", "first", "second"),
    [
        ("--to-earliest", 0, 0),
        ("--to-latest", 10, 0),
        ("--to-current", 4, 0),
        ("--to-offset 3", 3, 0),
        ("--to-offset 50", 10, 0),
        ("--by-duration P2DT12H", 7, 0),
        ("--by-duration=-P1D", 10, 0),
        ("--to-datetime 2000-01-01T00:00:00.000", 0, 0),
        ("--to-datetime 2999-01-01T00:00:00.000Z", 10, 0),
    ],
)
def test_offsets_are_reset_to_a_place(
    shell: Shell, admin: KafkaAdminClient, full: str, group: str, where: str, first: int, second: int
) -> None:
    expected = {f"{full}:0": first, f"{full}:1": second}
    reset = f"--reset-offsets --group {group} --topic {full} {where}"
    before = admin.list_consumer_group_offsets(group)
    assert new_offsets(shell.rows(reset)) == expected
    assert "--execute" in shell.error
    assert shell.text.startswith("GROUP\tTOPIC\tPARTITION\tNEW-OFFSET\n")
    assert new_offsets(shell.rows(f"{reset} --dry-run")) == expected
    assert "--execute" not in shell.error
    assert admin.list_consumer_group_offsets(group) == before
    assert new_offsets(shell.rows(f"{reset} --execute")) == expected
    after = admin.list_consumer_group_offsets(group)
    assert {f"{tp.topic}:{tp.partition}": one and one.offset for tp, one in after.items()} == expected


@pytest.mark.parametrize(("by", "expected"), [("2", 6), ("-3", 1), ("-9", 0), ("100", 10)])
def test_offsets_are_shifted_within_the_log(
    shell: Shell, full: str, group: str, by: str, expected: int
) -> None:
    rows = shell.rows(f"--reset-offsets --group {group} --all-topics --shift-by {by} --execute")
    assert new_offsets(rows) == {f"{full}:0": expected}
    assert ("taken in its place" in shell.error) == (expected in (0, 10))


def test_an_offset_that_is_not_there_cannot_be_shifted(shell: Shell, full: str, group: str) -> None:
    assert shell.run(f"--reset-offsets --group {group} --topic {full}:1 --shift-by 1") == 1
    assert f"{full}-1 cannot be shifted" in shell.error
    assert not shell.text


def test_some_partitions_are_reset_and_all_topics_are_those_with_offsets(
    shell: Shell, servers: str, full: str, group: str
) -> None:
    other = new_topic(servers, 3)
    rows = shell.rows(f"--reset-offsets --group {group} --topic {full}:0 --topic {other}:1,2 --to-latest")
    assert new_offsets(rows) == {f"{full}:0": 10, f"{other}:1": 0, f"{other}:2": 0}
    assert new_offsets(shell.rows(f"--reset-offsets --group {group} --all-topics --to-earliest")) == {
        f"{full}:0": 0
    }


@pytest.mark.parametrize("wrong", ["{full}:7", "{full}-none", "{full}-none:0"])
def test_partitions_that_do_not_exist_are_named(shell: Shell, full: str, group: str, wrong: str) -> None:
    wrong = wrong.format(full=full)
    assert shell.run(f"--reset-offsets --group {group} --topic {wrong} --to-latest --execute") == 1
    assert wrong.replace(":", "-") in shell.error
    assert not shell.text


def test_a_group_that_is_not_there_begins_where_it_is_told(
    shell: Shell, admin: KafkaAdminClient, full: str
) -> None:
    shell.rows(f"--reset-offsets --group new-{full} --topic {full}:0 --to-offset 5 --execute")
    (committed,) = admin.list_consumer_group_offsets(f"new-{full}").values()
    assert committed is not None
    assert committed.offset == 5


def test_what_is_exported_can_be_reset_to(
    shell: Shell, admin: KafkaAdminClient, full: str, group: str, tmp_path: Path
) -> None:
    admin.alter_consumer_group_offsets(f"{group}-2", {TopicPartition(full, 1): 0})
    one, several = tmp_path / "one.csv", tmp_path / "several.csv"
    assert shell.run(f"--reset-offsets --group {group} --all-topics --to-current --export") == 0
    assert shell.text == f"{full},0,4\n"
    one.write_text(shell.text)
    both = f"--reset-offsets --group {group} --group {group}-2"
    assert shell.run(f"{both} --all-topics --to-current --export") == 0
    assert shell.text == f"{group},{full},0,4\n{group}-2,{full},1,0\n"
    several.write_text(shell.text)
    for plan, reset, printed in (
        (one, f"--reset-offsets --group {group}", [[group, full, "0", "4"]]),
        (several, f"--reset-offsets --group {group}", [[group, full, "0", "4"]]),
        (several, both, [[group, full, "0", "4"], [f"{group}-2", full, "1", "0"]]),
    ):
        admin.alter_consumer_group_offsets(group, {TopicPartition(full, 0): 9})
        assert shell.rows(f"{reset} --from-file {plan} --execute") == printed
        committed = admin.list_consumer_group_offsets(group)[TopicPartition(full, 0)]
        assert committed is not None
        assert committed.offset == 4
    assert shell.run(f"--reset-offsets --group nobody --from-file {several}") == 1
    assert f"{several} has no plan for group nobody" in shell.error


def test_a_group_with_members_is_left_alone_and_others_are_reset(
    shell: Shell, servers: str, full: str, group: str
) -> None:
    member = Member(servers, full, f"{group}-live")
    try:
        wait_until(lambda: len(member.assignment) == 2, 30, "the assignment")
        reset = f"--reset-offsets --group {group} --group {group}-live --topic {full}:0 --to-latest --execute"
        assert shell.rows(reset, code=1) == [[group, full, "0", "10"]]
        assert f"inactive; '{group}-live' is Stable" in shell.error
    finally:
        member.stop()


def test_groups_are_shown_with_members_states_and_what_nobody_reads(
    shell: Shell, servers: str, admin: KafkaAdminClient, full: str, group: str
) -> None:
    other = new_topic(servers, 1)
    admin.alter_consumer_group_offsets(f"{group}-live", {TopicPartition(other, 0): 0})
    settings = {"client.id": "reader", "group.instance.id": "one"}
    member = Member(servers, full, f"{group}-live", **settings)
    try:
        wait_until(lambda: len(member.records) == 10, 30, "the records")
        live = f"--describe --group {group}-live"
        wait_until(lambda: shell.rows(live)[0][3] == "10", 30, "the commit")
        assert shell.text.splitlines()[0].split("\t") == [
            *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
            *("CONSUMER-ID", "HOST", "CLIENT-ID"),
        ]
        first, second, unread = shell.rows(f"{live} --offsets")
        assert first[:6] == [f"{group}-live", full, "0", "10", "10", "0"]
        assert first[6].startswith("one")
        assert first[8] == "reader"
        assert second[:3] == [f"{group}-live", full, "1"]
        assert unread == [f"{group}-live", other, "0", "0", "0", "0", "-", "-", "-"]
        assert shell.rows(f"{live} --verbose")[0][3] in ("-", "0")
        assert "LEADER-EPOCH" in shell.text
        ((_, consumer, instance, _, client, count),) = shell.rows(f"{live} --members")
        assert (consumer.startswith("one"), instance, client, count) == (True, "one", "reader", "2")
        assert "GROUP-INSTANCE-ID" in shell.text
        assert shell.rows(f"{live} --members --verbose")[0][6:] == ["-", f"{full}:0,1", "-", "-"]
        ((_, coordinator, strategy, state, members),) = shell.rows(f"{live} --state")
        assert (strategy, state, members) == ("range", "Stable", "1")
        assert coordinator.startswith(f"{servers} (")
        assert shell.rows(f"{live} --state --verbose")[0][4:] == ["-", "-", "1"]
        (shown,) = shell.objects(f"{live} --members")
        assert shown["current_assignment"] == {full: [0, 1]}
        assert (shown["partitions"], shown["upgraded"]) == (2, None)
        assert shell.objects(live)[0]["lag"] == 0
    finally:
        member.stop()
    admin.remove_members_from_consumer_group(f"{group}-live", ["one"])  # which stays for its session
    both = shell.rows(f"--describe --group {group} --group {group}-live --state")
    assert [row[0] for row in both] == [group, f"{group}-live"]
    assert shell.error.count("has no active members") == 2
    assert [row[0] for row in shell.rows("--describe --all-groups --members")] == []


def test_the_groups_that_there_are_are_shown_beside_one_that_there_is_not(
    shell: Shell, full: str, group: str
) -> None:
    rows = shell.rows(f"--describe --group {group} --group nosuch", code=1)
    assert [row[:6] for row in rows] == [[group, full, "0", "4", "10", "6"]]
    assert "error: There is no group nosuch\n" in shell.error


def test_a_topic_that_is_gone_has_no_end(
    shell: Shell, admin: KafkaAdminClient, full: str, group: str
) -> None:
    # The embedded broker forgets the offsets of what is deleted; another Kafka keeps them for a while.
    admin.alter_consumer_group_offsets(group, {TopicPartition(full, 1): 0})
    admin.delete_topics([full])
    wait_until(lambda: full not in admin.list_topics(), 30, "the topic's end")
    for row in shell.rows(f"--describe --group {group}"):
        assert row[4:6] == ["-", "-"]


def test_groups_are_listed_by_state_and_type(shell: Shell, full: str, group: str) -> None:
    assert [group, "Empty"] in shell.rows("--list --state")
    assert [group, "Classic", "Empty"] in shell.rows("--list --state empty,stable --type classic")
    assert [group, "Classic"] in shell.rows("--list --type")
    assert shell.rows("--list --state stable") == []
    assert shell.rows("--list --type consumer,share") == []
    assert shell.run("--list") == 0
    assert group in shell.text.split()
    found = next(each for each in shell.objects("--list") if each["group"] == group)
    assert found == {"group": group, "type": "classic", "state": "Empty", "protocol_type": ""}
    assert shell.run("--list --state drowsy") == 2
    assert "--state drowsy is not known; there are: PreparingRebalance" in " ".join(shell.error.split())


def test_offsets_of_topics_and_partitions_are_deleted(
    shell: Shell, admin: KafkaAdminClient, full: str, group: str
) -> None:
    first, second = TopicPartition(full, 0), TopicPartition(full, 1)
    admin.alter_consumer_group_offsets(group, {second: 0})
    assert shell.rows(f"--delete-offsets --group {group} --topic {full}:1") == [[full, "1", "Successful"]]
    assert shell.text.startswith("TOPIC\tPARTITION\tSTATUS\n")
    assert list(admin.list_consumer_group_offsets(group)) == [first]
    rows = shell.rows(f"--delete-offsets --group {group} --topic {full} --topic {full}-none", code=1)
    assert rows[:2] == [[full, "0", "Successful"], [full, "1", "Successful"]]
    assert rows[2][:2] == [f"{full}-none", "-"]
    assert rows[2][2].startswith("Error: ")
    assert admin.list_consumer_group_offsets(group) == {}
    assert shell.run(f"--delete-offsets --group nosuch-{full} --topic {full}:0") == 1
    assert f"nosuch-{full}" in shell.error
    assert not shell.text


def test_offsets_that_members_read_are_not_deleted(shell: Shell, servers: str, full: str, group: str) -> None:
    member = Member(servers, full, group)
    try:
        wait_until(lambda: len(member.assignment) == 2, 30, "the assignment")
        ((_, _, status),) = shell.rows(f"--delete-offsets --group {group} --topic {full}:0", code=1)
        assert "still subscribes" in status or "subscribed" in status
    finally:
        member.stop()


def test_groups_are_deleted_and_those_that_are_not_are_named(
    shell: Shell, admin: KafkaAdminClient, full: str, group: str
) -> None:
    admin.alter_consumer_group_offsets(f"{group}-2", {TopicPartition(full, 0): 1})
    assert shell.run(f"--delete --group {group}-2 --timeout 20000") == 0
    assert shell.text == f"Deletion of requested consumer groups ('{group}-2') was successful.\n"
    assert shell.run(f"--delete --group {group} --group nosuch") == 1
    assert shell.text == f"These consumer groups were deleted successfully: '{group}'\n"
    assert shell.error == "error: There is no group nosuch\n"
    assert group not in admin.list_groups()
    admin.alter_consumer_group_offsets(group, {TopicPartition(full, 0): 1})
    assert shell.objects(f"--delete --group {group}") == [{"group": group, "deleted": True, "error": None}]


def test_what_takes_too_long_is_given_up(shell: Shell, capsys: Captured) -> None:
    words = "groups --list --timeout 200 --bootstrap-server 127.0.0.1:1"
    assert main(words.split()) == 1
    assert "200 ms" in " ".join(capsys.readouterr().err.split())


def test_a_broker_without_share_groups_lists_none_and_says_so(servers: str, capsys: Captured) -> None:
    share = ["share-groups", "--bootstrap-server", servers]
    assert main([*share, "--list", "--state"]) == 0
    assert capsys.readouterr().out == "GROUP\tSTATE\n"
    assert main([*share, "--describe", "--group", "s"]) == 1
    assert "does not support SHARE_GROUP_DESCRIBE" in " ".join(capsys.readouterr().err.split())
    assert main([*share, "--reset-offsets", "--all-groups", "--to-latest", "--topic", "t"]) == 2
    assert main([*share, "--delete-offsets", "--group", "s", "--topic", "t:0"]) == 2
    assert "no partitions" in " ".join(capsys.readouterr().err.split())
