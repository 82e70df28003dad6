"""The assignors against what Java's give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from harness.golden import golden_lines
from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.assignor import ASSIGNORS, Assignment, Subscription
from kclient.consumer.assignor.internals.user_data import decode_cooperative, decode_sticky
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


def expected_of(line: dict[str, Any]) -> dict[str, list[TopicPartition]]:
    """Java's assignment."""
    return {
        member: [TopicPartition(*tp) for tp in partitions]
        for member, partitions in line["output"]["assignment"].items()
    }


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_assigns_as_java_does(name: str) -> None:
    for line in scenarios(name):
        if not line["order_independent"]:
            continue
        where = f"{line['scenario']} round {line['round']}"
        # An instance for each: what it decides depends on the subscriptions alone.
        made = ASSIGNORS[name]().assign(cluster_of(line["input"]), subscriptions_of(line["input"]))
        expected = expected_of(line)
        assert made.keys() == expected.keys(), where
        for member, partitions in expected.items():
            given = made[member]
            if name == "range" or not line["list_order_stable"]:
                # Java takes the topics of a list in the order of a hash map, which means nothing.
                assert sorted(given.partitions) == sorted(partitions), where
            else:
                assert list(given.partitions) == partitions, where
                encoded = group_protocol.encode_assignment(given)
                assert encoded.hex() == line["output"]["assignment_hex"][member], where


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_where_java_depends_on_the_order_of_members_the_assignment_is_as_even_as_its_own(name: str) -> None:
    for line in scenarios(name):
        if line["order_independent"]:
            continue
        made = ASSIGNORS[name]().assign(cluster_of(line["input"]), subscriptions_of(line["input"]))
        expected = expected_of(line)
        assert sorted(len(given.partitions) for given in made.values()) == sorted(map(len, expected.values()))
        assert sorted(tp for given in made.values() for tp in given.partitions) == sorted(
            tp for partitions in expected.values() for tp in partitions
        )


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_nobody_is_given_what_it_is_not_subscribed_to_even_where_java_does_that(name: str) -> None:
    for line in golden_lines("assignors"):
        if line["input"]["assignor"] == name and not line["respects_subscriptions"]:
            cluster, subscriptions = cluster_of(line["input"]), subscriptions_of(line["input"])
            for member, given in ASSIGNORS[name]().assign(cluster, subscriptions).items():
                assert {tp.topic for tp in given.partitions} <= set(subscriptions[member].topics)


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


def told(assignor: str, user_data: bytes) -> tuple[list[TopicPartition] | None, int]:
    """The partitions and the generation in a member's user data."""
    if assignor == "cooperative-sticky":
        return None, decode_cooperative(user_data)
    found = decode_sticky(user_data)
    return sorted(found.partitions), found.generation


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_user_data_tells_of_the_last_assignment_as_java_does(name: str) -> None:
    compared = 0
    last: dict[tuple[str, int], dict[str, list[TopicPartition]]] = {}
    for line in scenarios(name):
        last[line["scenario"], line["round"]] = expected_of(line)
        for member in line["input"]["members"]:
            given = last.get((line["scenario"], member["generation"]), {}).get(member["memberId"])
            if given is None:
                continue
            assignor = ASSIGNORS[name]()
            metadata = ConsumerGroupMetadata("g", member["generation"], member["memberId"])
            assignor.on_assignment(Assignment(tuple(given)), metadata)
            expected = bytes.fromhex(member["userData"])
            written = assignor.subscription_user_data(frozenset(member["topics"]))
            assert written is not None
            if told(name, expected) == told(name, written):  # else it is garbage, outdated or an old client's
                assert written == expected
                compared += 1
    assert compared > 700


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
