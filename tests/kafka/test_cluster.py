"""Three real brokers behind proxies: another leads when one is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from harness.consumer.group import Group
from harness.network.produce_answers import refuse
from harness.real_kafka.cluster import RealCluster
from harness.topics import read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.common.topic_partition import TopicPartition
from kclient.errors import AdminError, ErrorCode
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys

_HEALING_S = 60


@pytest.fixture
def admin(kafka_cluster: RealCluster) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=kafka_cluster.direct_servers) as made:
        yield made


def leader(admin: KafkaAdminClient, topic: str) -> int:
    node = admin.describe_topics([topic])[topic].partitions[0].leader
    return -1 if node is None else node.id


def test_records_go_on_when_the_leader_is_killed_and_its_last_answer_was_a_demoted_leaders(
    kafka_cluster: RealCluster, admin: KafkaAdminClient
) -> None:
    topic = "killed-leader"
    kafka_cluster.create_topic(admin, topic, 1)
    settings = {"bootstrap.servers": kafka_cluster.bootstrap_servers, "request.timeout.ms": 3000}
    with KafkaProducer(settings) as producer:
        producer.send(topic, b"1").result(30)
        first = leader(admin, topic)
        broker = kafka_cluster.brokers[first - 1]
        rule = broker.proxy.answer(ApiKeys.PRODUCE, refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER), pass_on=True)
        futures = [producer.send(topic, b"2"), producer.send(topic, b"3")]
        wait_until(lambda: rule.hits == 1, 30, "a Produce that the proxy answers")
        broker.kill()
        for future in futures:
            future.result(60)
        assert leader(admin, topic) != first
        broker.start()
    wait_until(lambda: not kafka_cluster.out_of_sync(admin), _HEALING_S, "every replica in sync")
    values = [record.value for record in read_all(kafka_cluster.direct_servers, topic)]
    assert values == [b"1", b"2", b"3"]


def test_a_clean_rolling_restart_of_all_brokers_fails_no_record(
    kafka_cluster: RealCluster, admin: KafkaAdminClient
) -> None:
    topic = "rolling-restart"
    kafka_cluster.create_topic(admin, topic, 3)
    futures = []
    over = threading.Event()

    def load(producer: KafkaProducer[bytes, bytes]) -> None:
        while not over.wait(0.005):
            futures.append(producer.send(topic, b"%d" % len(futures), partition=len(futures) % 3))

    with KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap_servers, linger_ms=0) as producer:
        thread = threading.Thread(target=load, args=(producer,))
        thread.start()
        try:
            for broker in kafka_cluster.brokers:
                broker.stop()
                broker.start()
                wait_until(lambda: not kafka_cluster.out_of_sync(admin), _HEALING_S, "every replica in sync")
        finally:
            over.set()
            thread.join()
    assert [error for error in (future.exception(60) for future in futures) if error is not None] == []
    records = read_all(kafka_cluster.direct_servers, topic)
    written = {tp: [int(r.value) for r in records if r.partition == tp] for tp in range(3)}
    assert written == {tp: list(range(tp, len(futures), 3)) for tp in range(3)}


def test_groups_are_asked_for_at_coordinators_that_have_moved(
    kafka_cluster: RealCluster, admin: KafkaAdminClient
) -> None:
    with KafkaAdminClient(bootstrap_servers=kafka_cluster.direct_servers) as operator:
        topic = TopicPartition("grouped", 0)
        kafka_cluster.create_topic(operator, topic.topic, 1)
        groups = [f"moving-{number}" for number in range(12)]
        for group in groups:
            admin.alter_consumer_group_offsets(group, {topic: 0})
        found = admin.describe_consumer_groups(groups)
        before = {group: found[group].coordinator.id for group in groups}
        assert len(set(before.values())) == 3
        kafka_cluster.move_leaders(operator)

        def moved() -> bool:
            """True once the new coordinators have read the groups; until then they may not know one."""
            with KafkaAdminClient(bootstrap_servers=kafka_cluster.direct_servers) as fresh:
                try:
                    now = fresh.describe_consumer_groups(groups)
                except AdminError:
                    return False
            return all(now[group].coordinator.id != before[group] for group in groups)

        wait_until(moved, 60, "other coordinators")
        # `admin` still has the old ones, each for several groups.
        listed = admin.list_consumer_group_offsets(dict.fromkeys(groups))
        assert {group: list(one) for group, one in listed.items()} == {group: [topic] for group in groups}
        found = admin.describe_consumer_groups(groups)
        assert not [group for group in groups if found[group].coordinator.id == before[group]]
        assert admin.delete_groups(groups) == dict.fromkeys(groups)
        operator.delete_topics([topic.topic])
        wait_until(lambda: not kafka_cluster.out_of_sync(operator), 60, "all replicas in sync")


@pytest.mark.timeout(240)  # also the one that starts the brokers
def test_a_clean_rolling_restart_takes_no_partition_from_a_member(
    kafka_cluster: RealCluster, admin: KafkaAdminClient
) -> None:
    protocols = {"consumer": {}, "classic": {"group.protocol": "classic", "session.timeout.ms": 30_000}}
    with ExitStack() as stack:
        groups = []
        for protocol, settings in protocols.items():
            topic = f"rolling-{protocol}"
            kafka_cluster.create_topic(admin, topic, 4)
            group = Group(kafka_cluster.bootstrap_servers, topic, stack)
            for name in "ab":
                group.join(name, **settings)
            group.has_shared(2, 2)
            groups.append(group)
        heard = [list(group.owners.calls) for group in groups]
        for broker in kafka_cluster.brokers:
            broker.stop()
            broker.start()
            wait_until(lambda: not kafka_cluster.out_of_sync(admin), _HEALING_S, "every replica in sync")
        with KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap_servers) as producer:
            for group in groups:
                for number in range(4):
                    producer.send(group.topic, b"%d" % number, partition=number)
        for group in groups:
            members = group.members.values()
            wait_until(lambda: sum(len(each.records) for each in members) == 4, 30, "the records")  # noqa: B023
        assert [group.owners.calls for group in groups] == heard
