"""Plans for partitions that cannot be asked for."""

from __future__ import annotations

import argparse
from typing import Any, cast

import pytest

from kclient.admin import KafkaAdminClient, TopicDescription
from kclient.cli.group_plans import Planner
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.errors import AdminError, LeaderNotAvailableError, UnknownTopicOrPartitionError

T0, T1, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)


class Cluster:
    """A topic of which partition 1 has no leader."""

    def describe_topics(self, names: list[str], **_: Any) -> dict[str, TopicDescription]:
        infos = (
            PartitionInfo("t", 0, Node(1, "h", 1), (), (), ()),
            PartitionInfo("t", 1, None, (), (), ()),
        )
        found = {"t": TopicDescription("t", infos)}
        if "gone" in names:
            raise AdminError("", results=found, errors={"gone": UnknownTopicOrPartitionError()})
        return found


PLANNER = Planner(cast(KafkaAdminClient, Cluster()), argparse.Namespace(timeout=None, to_latest=True))


def test_partitions_without_a_leader_are_named_and_not_waited_for() -> None:
    with pytest.raises(LeaderNotAvailableError, match="Nobody leads t-1"):
        PLANNER.plan([T0, T1], dict)


def test_partitions_that_do_not_exist_are_named() -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="There is no gone-0, t-2"):
        PLANNER.plan([GONE, T0, TopicPartition("t", 2)], dict)
