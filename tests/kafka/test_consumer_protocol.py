"""The consumer protocol (KIP-848) on a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.consumer.group import Group, values
from harness.real_kafka.broker import RealKafka, missing
from harness.requirements import skip_if
from harness.topics import DEADLINE_S, new_topic, produce
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import (
    ConsumerRebalanceListener,
    GroupMembershipOperation,
    KafkaConsumer,
    SubscriptionPattern,
)
from kclient.errors import (
    InvalidRegularExpressionError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
    UnsupportedVersionError,
    WakeupError,
)
from kclient.producer import KafkaProducer

CONSUMER = {"group.protocol": "consumer"}


@pytest.fixture
def group(kafka: RealKafka) -> Iterator[Group]:
    """A group of a topic with six partitions, without members."""
    with ExitStack() as stack:
        yield Group(kafka.bootstrap_servers, new_topic(kafka.bootstrap_servers, 6), stack)


def consumer_of(group: Group, **settings: Any) -> KafkaConsumer[bytes, bytes]:
    return KafkaConsumer(
        {
            **CONSUMER,
            "bootstrap.servers": group.servers,
            "group.id": group.id,
            "auto.offset.reset": "earliest",
        },
        **settings,
    )


def poll_until(consumer: KafkaConsumer[bytes, bytes], condition: Callable[[], object], what: str) -> None:
    def polled() -> object:
        consumer.poll(50)
        return condition()

    wait_until(polled, 30, what)


def test_members_come_and_go_and_no_partition_is_lost_or_had_twice(group: Group) -> None:
    produce(group.servers, group.topic, 300)
    all_members = [group.join("a")]
    group.has_shared(6)
    all_members.append(group.join("b"))
    group.has_shared(3, 3)
    all_members.append(group.join("c"))
    group.has_shared(2, 2, 2)
    group.leave("a")
    group.has_shared(3, 3)
    produce(group.servers, group.topic, 300)
    wait_until(lambda: values(*all_members).total() >= 600, DEADLINE_S, "all records")
    group.leave("b")
    group.has_shared(6)
    group.leave("c")
    assert group.owners.doubles == []
    assert group.owners.now == {}
    assert not any(kind == "lost" for _, kind, _ in group.owners.calls)
    assert set(values(*all_members).values()) == {2}  # both times that each value was sent


def test_what_stays_with_a_member_is_not_revoked_when_another_one_comes(group: Group) -> None:
    group.join("a")
    group.has_shared(6)
    group.join("b")
    group.has_shared(3, 3)
    revoked = [tp for partitions in group.owners.calls_of("a", "revoked") for tp in partitions]
    assert len(revoked) == 3
    assert set(revoked) == {tp for tp, owner in group.owners.now.items() if owner == "b"}


def test_a_static_member_that_bounces_takes_nothing_from_the_others(group: Group) -> None:
    group.join("a", **{"group.instance.id": "i-a"})
    group.join("b", **{"group.instance.id": "i-b"})
    group.has_shared(3, 3)
    before = {tp for tp, owner in group.owners.now.items() if owner == "b"}
    others = len(group.owners.calls_of("a", "revoked")), len(group.owners.calls_of("a", "assigned"))
    group.leave("b")
    group.join("b", **{"group.instance.id": "i-b"})
    group.has_shared(3, 3)
    assert {tp for tp, owner in group.owners.now.items() if owner == "b"} == before
    assert (len(group.owners.calls_of("a", "revoked")), len(group.owners.calls_of("a", "assigned"))) == others


def test_a_static_member_that_leaves_for_good_gives_its_partitions_to_the_others(group: Group) -> None:
    group.join("a")
    group.has_shared(6)
    with consumer_of(group, group_instance_id="i-b") as consumer:
        consumer.subscribe([group.topic])
        poll_until(consumer, lambda: len(consumer.assignment()) == 3, "the share")
        consumer.close(group_membership_operation=GroupMembershipOperation.LEAVE_GROUP)
    group.has_shared(6)


def test_an_instance_id_that_is_in_use_is_refused(group: Group) -> None:
    group.join("a", **{"group.instance.id": "i"})
    group.has_shared(6)
    with consumer_of(group, group_instance_id="i") as consumer:
        consumer.subscribe([group.topic])
        with pytest.raises(UnreleasedInstanceIdError):
            poll_until(consumer, lambda: False, "an error")


def test_a_pattern_is_matched_by_the_broker_also_for_topics_that_come_later(group: Group) -> None:
    prefix = group.topic
    produce(group.servers, f"{prefix}-x", 3)
    produce(group.servers, f"{prefix}x-not", 3)
    with consumer_of(group, metadata_max_age_ms=3_600_000) as consumer:
        consumer.subscribe(SubscriptionPattern(f"{prefix}-.*"))
        poll_until(consumer, consumer.assignment, "the first topic")
        assert consumer.subscription() == {f"{prefix}-x"}
        produce(group.servers, f"{prefix}-y", 3)
        poll_until(consumer, lambda: len(consumer.assignment()) == 2, "the second topic")
        assert consumer.subscription() == {f"{prefix}-x", f"{prefix}-y"}


def test_a_pattern_that_is_none_is_refused(group: Group) -> None:
    with consumer_of(group) as consumer:
        consumer.subscribe(SubscriptionPattern("(unclosed"))
        with pytest.raises(InvalidRegularExpressionError, match="unclosed"):
            poll_until(consumer, lambda: False, "an error")


def test_the_coordinators_assignor_can_be_chosen(group: Group) -> None:
    other = new_topic(group.servers, 6)

    def shares(assignor: str) -> list[set[TopicPartition]]:
        settings = {"group.remote.assignor": assignor, "group.id": f"{group.id}-{assignor}"}
        with ExitStack() as stack:
            members = [
                stack.enter_context(
                    KafkaConsumer({**CONSUMER, "bootstrap.servers": group.servers, **settings})
                )
                for _ in range(2)
            ]
            for member in members:
                member.subscribe([group.topic, other])

            def shared() -> bool:
                for member in members:
                    member.poll(20)
                return [len(member.assignment()) for member in members] == [6, 6]

            wait_until(shared, 30, f"the share-out by {assignor}")
            return [set(member.assignment()) for member in members]

    for share in shares("range"):  # the same numbers of both topics
        assert len({tp.partition for tp in share}) == 3
    shares("uniform")
    with pytest.raises(UnsupportedAssignorError):
        shares("none-such")


def test_offsets_can_be_committed_while_partitions_are_revoked(group: Group) -> None:
    produce(group.servers, group.topic, 60)
    committed: dict[TopicPartition, int] = {}

    class Commits(ConsumerRebalanceListener):
        def on_partitions_revoked(self, partitions: Any) -> None:
            positions = {tp: first.position(tp) for tp in partitions}
            first.commit_sync(positions)
            committed.update(positions)

    with consumer_of(group, enable_auto_commit=False) as first:
        first.subscribe([group.topic], Commits())
        read: list[Any] = []

        def all_read() -> bool:
            read.extend(first.poll(50))
            return len(read) == 60

        wait_until(all_read, 30, "all records")
        group.join("b")
        poll_until(first, lambda: len(group.owners.now) == 3, "the share of the other member")
        assert len(committed) == 3
        assert group.members["b"].records == []


def test_a_wakeup_in_a_listener_ends_the_poll_and_nothing_else(group: Group) -> None:
    class Wakes(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Any) -> None:
            if partitions:
                consumer.wakeup()

    with consumer_of(group) as consumer:
        consumer.subscribe([group.topic], Wakes())
        with pytest.raises(WakeupError):
            poll_until(consumer, lambda: False, "the wakeup")
        poll_until(consumer, lambda: len(consumer.assignment()) == 6, "the assignment")
        assert consumer.health().member_state in ("stable", "acknowledging")


def test_topics_grow_go_and_come_again(kafka: RealKafka, group: Group) -> None:
    member = group.join("a", **{"metadata.max.age.ms": 1000, "allow.auto.create.topics": False})
    group.has_shared(6)
    produce(group.servers, group.topic, 30)
    wait_until(lambda: len(member.records) == 30, DEADLINE_S, "the records")
    kafka.tool(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", group.servers, "--alter", "--topic", group.topic, "--partitions", "8"),
    )
    group.has_shared(8)
    with KafkaAdminClient(bootstrap_servers=group.servers) as admin:
        admin.delete_topics([group.topic])
        group.has_shared(0)
    produce(group.servers, group.topic, 1)  # which creates it
    group.has_shared(1)
    wait_until(lambda: len(member.records) == 31, DEADLINE_S, "the record of the new topic")
    assert group.owners.doubles == []


def test_a_transaction_commits_offsets_as_the_member_at_its_epoch(group: Group) -> None:
    produce(group.servers, group.topic, 20)
    target = new_topic(group.servers, 1)
    with (
        consumer_of(group, enable_auto_commit=False) as consumer,
        KafkaProducer(bootstrap_servers=group.servers, transactional_id=f"tx-{target}") as producer,
    ):
        producer.init_transactions()
        consumer.subscribe([group.topic])
        done = 0

        def copy() -> bool:
            nonlocal done
            records = consumer.poll(50)
            if records:
                producer.begin_transaction()
                for record in records:
                    producer.send(target, record.value)
                producer.send_offsets_to_transaction(records.next_offsets(), consumer.group_metadata())
                producer.commit_transaction()
                done += len(records)
            return done >= 20

        wait_until(copy, 30, "all records")
        group.join("b")  # another epoch
        poll_until(consumer, lambda: len(consumer.assignment()) == 3, "the other member")
        assert consumer.group_metadata().generation_id > 0
        produce(group.servers, group.topic, 20)
        wait_until(lambda: copy() and done + len(group.members["b"].records) >= 40, 30, "all records again")
        assert group.members["b"].records
    assert values(group.members["b"]).total() + done == 40


def test_a_cluster_that_has_the_protocol_switched_off_is_said_to_be_one() -> None:
    skip_if(missing())
    with RealKafka(settings={"group.coordinator.rebalance.protocols": "classic"}) as old:
        topic = new_topic(old.bootstrap_servers, 1)
        with KafkaConsumer(
            {**CONSUMER, "bootstrap.servers": old.bootstrap_servers, "group.id": "g"}
        ) as consumer:
            consumer.subscribe([topic])
            with pytest.raises(UnsupportedVersionError, match=r"KIP-848.*set group\.protocol=classic"):
                poll_until(consumer, lambda: False, "an error")
