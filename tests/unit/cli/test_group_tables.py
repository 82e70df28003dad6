"""Tables of `kclient groups --describe`, for groups that are hard to come by."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping
from typing import Any

import pytest

from kclient.admin import GroupDescription, ListedOffset, MemberDescription, TopicDescription
from kclient.cli.group_tables import print_described
from kclient.common.node import Node
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.errors import GroupAuthorizationError, UnknownTopicOrPartitionError

HOME = Node(7, "home", 9092)
Captured = pytest.CaptureFixture[str]


class Cluster:
    """Answers in the place of an admin client: `leaders` has a leader for each partition, or None."""

    def __init__(self, committed: Mapping[str, Any], leaders: Mapping[TopicPartition, Node | None]) -> None:
        self.committed, self.leaders = committed, leaders

    def list_consumer_group_offsets(self, groups: Mapping[str, None], **_: Any) -> Any:
        return {group: self.committed.get(group, {}) for group in groups}

    def describe_topics(self, names: Collection[str], **_: Any) -> dict[str, TopicDescription]:
        infos = {
            name: tuple(
                PartitionInfo(tp.topic, tp.partition, leader, (), (), ())
                for tp, leader in self.leaders.items()
                if tp.topic == name
            )
            for name in names
        }
        if not all(infos.values()):
            raise UnknownTopicOrPartitionError
        return {name: TopicDescription(name, found) for name, found in infos.items()}

    def list_offsets(
        self, specs: Mapping[TopicPartition, int], **_: Any
    ) -> dict[TopicPartition, ListedOffset]:
        assert all(self.leaders[tp] for tp in specs), "a partition without a leader is waited for"
        return dict.fromkeys(specs, ListedOffset(9))


def described(group_id: str, state: str = "Stable", *members: MemberDescription) -> GroupDescription:
    return GroupDescription(group_id, state, "consumer", "uniform", members, HOME, "consumer", 4, 3)


def member(name: str, *partitions: TopicPartition, **more: Any) -> MemberDescription:
    return MemberDescription(name, f"client-{name}", "/host", None, partitions, **more)


def shown(
    captured: Captured, cluster: Any, groups: Collection[GroupDescription], *, code: int = 0, **options: Any
) -> list[list[str]]:
    given = {"state": None, "members": False, "details": False, "timeout": None, "output": "text", **options}
    found = {group.group_id: group for group in groups}
    assert print_described(cluster, found, {}, argparse.Namespace(**given)) == code
    return [line.split("\t") for line in captured.readouterr().out.splitlines()]


T = [TopicPartition("t", number) for number in range(4)]


def test_partitions_without_a_leader_or_a_topic_have_no_end(capsys: Captured) -> None:
    committed = {"g": {T[0]: OffsetAndMetadata(4, "", 2), T[1]: OffsetAndMetadata(5)}}
    cluster = Cluster(committed, {T[0]: HOME, T[1]: None})
    _, first, second = shown(capsys, cluster, [described("g")], details=True)
    assert first == ["g", "t", "0", "2", "4", "9", "5", "-", "-", "-"]
    assert second == ["g", "t", "1", "-", "5", "-", "-", "-", "-", "-"]
    _, *gone = shown(capsys, Cluster(committed, {}), [described("g")])
    assert [row[3:6] for row in gone] == [["4", "-", "-"], ["5", "-", "-"]]


def test_who_has_the_most_partitions_comes_first_and_what_nobody_has_last(capsys: Captured) -> None:
    group = described("g", "Stable", member("a", T[3]), member("b", T[2], T[1]), member("idle"))
    cluster = Cluster({"g": {T[0]: OffsetAndMetadata(1), T[1]: None}}, dict.fromkeys(T, HOME))
    _, *rows = shown(capsys, cluster, [group])
    assert [(row[2], row[3], row[5], row[6]) for row in rows] == [
        ("1", "-", "-", "b"),
        ("2", "-", "-", "b"),
        ("3", "-", "-", "a"),
        ("0", "1", "8", "-"),
    ]


@pytest.mark.parametrize(
    ("upgraded", "expected"), [((True, False), ["true", "false"]), ((True, True), None), ((None, None), None)]
)
def test_members_of_both_protocols_are_told_apart(
    capsys: Captured, upgraded: tuple[bool | None, ...], expected: list[str] | None
) -> None:
    members = [
        member(f"m{number}", T[number], target_assignment=(T[0], T[1]), member_epoch=3, upgraded=each)
        for number, each in enumerate(upgraded)
    ]
    header, *rows = shown(capsys, None, [described("g", "Stable", *members)], members=True, details=True)
    assert ("UPGRADED" in header) == (expected is not None)
    assert rows[0][5:9] == ["3", "t:0", "3", "t:0,1"]
    assert expected is None or [row[9] for row in rows] == expected


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("Stable", ""),
        ("Empty", "Consumer group 'g' has no active members.\n"),
        ("PreparingRebalance", "Warning: Consumer group 'g' is rebalancing.\n"),
        ("Reconciling", "Warning: Consumer group 'g' is rebalancing.\n"),
    ],
)
def test_a_group_that_does_not_read_now_is_remarked_on(capsys: Captured, state: str, said: str) -> None:
    options = argparse.Namespace(state="", members=False, details=True, timeout=None, output="json")
    admin: Any = None
    assert print_described(admin, {"g": described("g", state)}, {}, options) == 0
    printed = capsys.readouterr()
    assert printed.err == said
    assert json.loads(printed.out) == {
        "group": "g",
        "coordinator": "home:9092 (7)",
        "assignment_strategy": "uniform",
        "state": state,
        "group_epoch": 4,
        "target_assignment_epoch": 3,
        "members": 0,
    }


def test_a_dead_group_is_none_and_others_that_fail_are_named(capsys: Captured) -> None:
    options = argparse.Namespace(state="", members=False, details=False, timeout=None, output="text")
    admin: Any = None
    groups = {"a": described("a"), "dead": described("dead", "Dead")}
    assert print_described(admin, groups, {"mine": GroupAuthorizationError("no")}, options) == 1
    printed = capsys.readouterr()
    assert [line.split("\t")[0] for line in printed.out.splitlines()] == ["GROUP", "a"]
    assert printed.err == "error: There is no group dead\nerror: mine: no\n"
