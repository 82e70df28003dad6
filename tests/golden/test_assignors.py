"""The assignors against what Java's give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from helpers import golden_lines

from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.assignor import ASSIGNORS, Subscription

pytestmark = pytest.mark.golden


def scenarios(assignor: str) -> Iterator[dict[str, Any]]:
    for line in golden_lines("assignors"):
        if line["input"]["assignor"] == assignor and line["respects_subscriptions"]:
            yield line


def cluster_of(given: dict[str, Any]) -> Cluster:
    nodes = {
        broker["id"]: Node(broker["id"], f"broker-{broker['id']}", 9092, broker["rack"])
        for broker in given["brokers"]
    }
    partitions = []
    for topic in given["topics"]:
        for partition, replicas in enumerate(topic["replicas"][: topic["partitions"]]):
            on = tuple(nodes[replica] for replica in replicas)
            partitions.append(PartitionInfo(topic["name"], partition, on[0] if on else None, on, on))
    return Cluster("golden", nodes.values(), partitions)


def subscriptions_of(given: dict[str, Any]) -> dict[str, Subscription]:
    return {
        member["memberId"]: Subscription(
            topics=tuple(member["topics"]),
            user_data=None if member["userData"] is None else bytes.fromhex(member["userData"]),
            owned_partitions=tuple(TopicPartition(*owned) for owned in member["ownedPartitions"]),
            group_instance_id=member["groupInstanceId"],
            generation_id=member["generation"],
            rack_id=member["rackId"],
        )
        for member in given["members"]
    }


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_assigns_as_java_does(name: str) -> None:
    assignor = ASSIGNORS[name]()
    for line in scenarios(name):
        where = f"{line['scenario']} round {line['round']}"
        made = assignor.assign(cluster_of(line["input"]), subscriptions_of(line["input"]))
        expected = {
            member: [TopicPartition(*tp) for tp in partitions]
            for member, partitions in line["output"]["assignment"].items()
        }
        assert made.keys() == expected.keys(), where
        for member, partitions in expected.items():
            # Java takes the topics of a list in the order of a hash map, which means nothing.
            assert sorted(made[member].partitions) == sorted(partitions), where


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_the_order_of_the_members_does_not_matter(name: str) -> None:
    assignor = ASSIGNORS[name]()
    for line in scenarios(name):
        if not line["order_independent"]:
            continue
        subscriptions = subscriptions_of(line["input"])
        turned = dict(reversed(subscriptions.items()))
        cluster = cluster_of(line["input"])
        first, second = assignor.assign(cluster, subscriptions), assignor.assign(cluster, turned)
        for member in subscriptions:
            assert sorted(first[member].partitions) == sorted(second[member].partitions)
