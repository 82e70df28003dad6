"""The assignors against what Java's give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from harness.golden import golden_lines
from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.assignor import ASSIGNORS, Subscription
from kclient.consumer.internals.coordinator import group_protocol

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


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_subscriptions_are_written_as_java_writes_them(name: str) -> None:
    for line in scenarios(name):
        subscriptions = subscriptions_of(line["input"])
        for member in line["input"]["members"]:
            expected = bytes.fromhex(member["subscription_hex"])
            subscription = subscriptions[member["memberId"]]
            assert group_protocol.encode_subscription(subscription) == expected
            assert group_protocol.decode_subscription(expected, member["groupInstanceId"]) == attrs.evolve(
                subscription,
                topics=tuple(sorted(subscription.topics)),
                owned_partitions=tuple(sorted(subscription.owned_partitions)),
            )


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_assignments_of_a_java_leader_are_understood(name: str) -> None:
    for line in scenarios(name):
        for member, encoded in line["output"]["assignment_hex"].items():
            assignment = group_protocol.decode_assignment(bytes.fromhex(encoded))
            expected = [TopicPartition(*tp) for tp in line["output"]["assignment"][member]]
            assert sorted(assignment.partitions) == sorted(expected)
            assert group_protocol.encode_assignment(assignment) == bytes.fromhex(encoded)
