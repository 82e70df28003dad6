"""Every method of the admin client on a real Apache Kafka, in the newest versions that both have.

What a method is tested by is named `test_METHOD_...`.
"""

from __future__ import annotations

import inspect
import sys
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from harness.consumer.member import Member
from harness.network.driven_client import DrivenClient
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.admin import (
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewTopic,
    OffsetSpec,
)
from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer import KafkaConsumer
from kclient.errors import (
    AdminError,
    ClientClosedError,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    IllegalStateError,
    InvalidConfigurationError,
    KafkaTimeoutError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kclient.producer import KafkaProducer
from kclient.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)


@pytest.fixture(scope="module")
def admin(kafka: RealKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as client:
        yield client


@pytest.fixture
def name() -> str:
    return f"n-{uuid.uuid4().hex[:12]}"


def commit(servers: str, group: str, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
    with KafkaConsumer(bootstrap_servers=servers, group_id=group) as consumer:
        consumer.assign(list(offsets))
        consumer.commit_sync(offsets)


class NewMember:
    """A member of a group of the new protocol, which kclient's consumer does not speak yet."""

    def __init__(self, client: DrivenClient, group: str, topic: str) -> None:
        self.id = str(uuid.uuid4())
        self._client = client
        self._group = group
        self._epoch = 0
        self._owned: list[ConsumerGroupHeartbeatRequestTopicPartitions] = []
        self._beat(rebalance_timeout_ms=60_000, subscribed_topic_names=[topic], topic_partitions=[])

    def is_stable(self) -> bool:
        """True if it has what it was assigned, and has told so."""
        before = len(self._owned)
        self._beat(topic_partitions=self._owned)
        return before > 0

    def leave(self) -> None:
        self._epoch = -1
        self._beat()

    def _beat(self, **more: Any) -> None:
        beat = ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self.id, member_epoch=self._epoch, **more
        )
        response = self._client.call(beat, node_id=1)
        response.raise_if_failed()
        answer = response.message
        assert answer.error_code == 0, answer
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self._owned = [
                ConsumerGroupHeartbeatRequestTopicPartitions(
                    topic_id=each.topic_id, partitions=each.partitions
                )
                for each in answer.assignment.topic_partitions
            ]


# Methods with tests on a real broker in another file: with an authorizer or a plugin, with a broker of their own, over
# commands too.
_ELSEWHERE = {
    "test_admin_security.py": {
        *("create_acls", "describe_acls", "delete_acls"),
        *("alter_user_scram_credentials", "describe_user_scram_credentials"),
        *("create_delegation_token", "renew_delegation_token", "expire_delegation_token"),
        *("describe_delegation_token", "alter_client_quotas", "describe_client_quotas"),
    },
    "test_admin_transactions.py": {
        *("list_transactions", "describe_transactions", "describe_producers"),
        *("abort_transaction", "fence_producers", "force_terminate_transaction"),
    },
    "test_admin_groups.py": {
        *("describe_consumer_groups", "describe_classic_groups", "describe_share_groups"),
        *("delete_consumer_groups", "delete_share_groups", "remove_members_from_consumer_group"),
        *("alter_consumer_group_offsets", "delete_consumer_group_offsets"),
        *("list_share_group_offsets", "alter_share_group_offsets", "delete_share_group_offsets"),
    },
    "test_telemetry.py": {
        *("client_instance_id", "measurements"),
        *("register_metric_for_subscription", "unregister_metric_from_subscription"),
    },
}


def test_every_public_method_has_a_test_here_or_in_a_file_for_it() -> None:
    methods = {
        method
        for method, _ in inspect.getmembers(KafkaAdminClient, inspect.isfunction)
        if not method.startswith("_")
    }
    tests = [test for test in dir(sys.modules[__name__]) if test.startswith("test_")]
    untested = {m for m in methods if not any(test.startswith(f"test_{m}_") for test in tests)}
    assert untested == set().union(*_ELSEWHERE.values())


def test_describe_configs_says_what_incremental_alter_configs_and_the_broker_have_set(
    admin: KafkaAdminClient, name: str
) -> None:
    admin.create_topics([NewTopic(name, 1, 1, configs={"retention.ms": "60000"})])
    topic = ConfigResource(ConfigResourceType.TOPIC, name)
    admin.incremental_alter_configs({topic: [AlterConfigOp("segment.ms", "70000")]})

    def described() -> bool:
        found = admin.describe_configs([topic])[topic]
        return (found["retention.ms"].value, found["segment.ms"].value) == ("60000", "70000")

    wait_until(described, 30, "both settings")
    assert admin.describe_configs([topic])[topic]["cleanup.policy"].is_default


def test_incremental_alter_configs_refuses_what_is_no_setting(admin: KafkaAdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    topic = ConfigResource(ConfigResourceType.TOPIC, name)
    with pytest.raises(InvalidConfigurationError, match=r"no\.such\.setting"):
        admin.incremental_alter_configs({topic: [AlterConfigOp("no.such.setting", "1")]})


def test_list_config_resources_names_the_topics(admin: KafkaAdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    wanted = ConfigResource(ConfigResourceType.TOPIC, name)
    wait_until(lambda: wanted in admin.list_config_resources([ConfigResourceType.TOPIC]), 30, "the topic")


def test_health_tells_of_the_connections(kafka: RealKafka) -> None:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.list_topics()
        assert admin.health().healthy
        assert any(each.state == "ready" for each in admin.health().connections)


def test_metrics_count_the_requests(kafka: RealKafka) -> None:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        before = admin.metrics()["request-total"]
        admin.list_topics()
        assert admin.metrics()["request-total"] > before


def test_create_topics_takes_counts_settings_assignments_and_defaults(
    admin: KafkaAdminClient, name: str
) -> None:
    wanted = [
        NewTopic(f"{name}-a", 3, 1, configs={"retention.ms": "60000", "cleanup.policy": "compact"}),
        NewTopic(f"{name}-b", replica_assignments={0: [1], 1: [1]}),
        f"{name}-c",
    ]
    assert set(admin.create_topics(wanted, validate_only=True)) == {f"{name}-{letter}" for letter in "abc"}
    assert not any(topic.startswith(name) for topic in admin.list_topics())
    created = admin.create_topics(wanted)
    assert {topic: made.num_partitions for topic, made in created.items()} == {
        f"{name}-a": 3,
        f"{name}-b": 2,
        f"{name}-c": 1,
    }
    assert {made.replication_factor for made in created.values()} == {1}
    assert Uuid.ZERO not in {made.topic_id for made in created.values()}


def test_create_topics_says_why_a_topic_cannot_be(admin: KafkaAdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    with pytest.raises(AdminError, match=name) as failed:
        admin.create_topics(
            [NewTopic(name, 1, 1), NewTopic(f"{name}-x", configs={"retention.ms": "soon"}), f"{name}-y"]
        )
    assert isinstance(failed.value.errors[name], TopicExistsError)
    assert isinstance(failed.value.errors[f"{name}-x"], InvalidConfigurationError)
    assert "retention.ms" in str(failed.value.errors[f"{name}-x"])
    assert set(failed.value.results) == {f"{name}-y"}


def test_list_topics_and_describe_topics_give_the_ids_that_creating_gave(
    admin: KafkaAdminClient, name: str
) -> None:
    made = admin.create_topics([NewTopic(name, 2, 1)])[name]
    wait_until(lambda: name in admin.list_topics(), what="the topic")
    listed = admin.list_topics()[name]
    assert (listed.name, listed.topic_id, listed.is_internal) == (name, made.topic_id, False)
    described = admin.describe_topics([name])[name]
    assert described.topic_id == made.topic_id
    for number, partition in enumerate(described.partitions):
        assert (partition.topic, partition.partition) == (name, number)
        assert partition.leader is not None
        assert [node.id for node in partition.replicas] == [node.id for node in partition.in_sync_replicas]
        assert [node.id for node in partition.replicas] == [1]
        assert not partition.offline_replicas


def test_list_topics_leaves_out_kafkas_own_unless_they_are_asked_for(
    kafka: RealKafka, admin: KafkaAdminClient, name: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    commit(kafka.bootstrap_servers, name, {TopicPartition(topic, 0): OffsetAndMetadata(0)})
    assert "__consumer_offsets" not in admin.list_topics()
    assert admin.list_topics(include_internal=True)["__consumer_offsets"].is_internal


def test_describe_topics_names_the_topic_that_does_not_exist(admin: KafkaAdminClient, name: str) -> None:
    with pytest.raises(AdminError, match=name) as failed:
        admin.describe_topics([name, f"{name}-2"])
    assert isinstance(failed.value.errors[name], UnknownTopicOrPartitionError)


def test_delete_topics_deletes_what_exists_and_names_the_others(admin: KafkaAdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    wait_until(lambda: name in admin.list_topics(), what="the topic")
    with pytest.raises(AdminError, match=f"{name}-2") as failed:
        admin.delete_topics([name, f"{name}-2"])
    assert set(failed.value.results) == {name}
    assert isinstance(failed.value.errors[f"{name}-2"], UnknownTopicOrPartitionError)
    wait_until(lambda: name not in admin.list_topics(), what="the topic's end")


def test_describe_cluster_names_brokers_and_controller(kafka: RealKafka, admin: KafkaAdminClient) -> None:
    cluster = admin.describe_cluster()
    assert cluster.cluster_id
    assert [(node.id, node.host, node.port) for node in cluster.nodes] == [(1, "127.0.0.1", kafka.port)]
    assert cluster.controller == cluster.nodes[0]


def test_list_offsets_knows_every_spec_and_times(kafka: RealKafka, admin: KafkaAdminClient) -> None:
    tp = TopicPartition(new_topic(kafka.bootstrap_servers, 1), 0)
    empty = TopicPartition(new_topic(kafka.bootstrap_servers, 1), 0)
    before_ms = time.time_ns() // 1_000_000
    times = [metadata.timestamp_ms for metadata in produce(kafka.bootstrap_servers, tp.topic, 50)]
    for spec, offset in (
        (OffsetSpec.LATEST, len(times)),
        (OffsetSpec.EARLIEST, 0),
        (OffsetSpec.EARLIEST_LOCAL, 0),
        (OffsetSpec.LATEST_TIERED, -1),
        (before_ms, 0),
        (max(times) + 60_000, -1),
    ):
        assert admin.list_offsets({tp: spec})[tp].offset == offset, spec
        assert admin.list_offsets({tp: spec}, isolation_level="read_committed")[tp].offset == offset, spec
    latest = admin.list_offsets({tp: OffsetSpec.MAX_TIMESTAMP, empty: OffsetSpec.MAX_TIMESTAMP})
    assert latest[tp].timestamp_ms == times[latest[tp].offset] == max(times)
    assert (latest[empty].offset, latest[empty].timestamp_ms) == (-1, -1)


def test_list_offsets_names_the_partitions_that_do_not_exist(
    kafka: RealKafka, admin: KafkaAdminClient, name: str
) -> None:
    tp = TopicPartition(new_topic(kafka.bootstrap_servers, 1), 0)
    with pytest.raises(AdminError) as failed:
        admin.list_offsets(
            dict.fromkeys([tp, TopicPartition(tp.topic, 9), TopicPartition(name, 0)], OffsetSpec.LATEST)
        )
    assert set(failed.value.errors) == {TopicPartition(tp.topic, 9), TopicPartition(name, 0)}
    assert failed.value.results[tp].offset == 0


def test_list_consumer_group_offsets_names_topics_and_keeps_what_was_committed(
    kafka: RealKafka, admin: KafkaAdminClient, name: str
) -> None:
    topics = [new_topic(kafka.bootstrap_servers, 2) for _ in range(2)]
    committed = {
        TopicPartition(topic, number): OffsetAndMetadata(10 * number + 1, f"note {number}", 0)
        for topic in topics
        for number in range(2)
    }
    commit(kafka.bootstrap_servers, name, committed)
    assert admin.list_consumer_group_offsets(name) == committed
    some = [TopicPartition(topics[0], 1), TopicPartition(topics[0], 5)]
    assert admin.list_consumer_group_offsets(name, some) == {some[0]: committed[some[0]], some[1]: None}
    assert admin.list_consumer_group_offsets(f"{name}-other") == {}
    assert admin.list_consumer_group_offsets(f"{name}-other", some) == dict.fromkeys(some)


def test_offsets_of_an_open_transaction_are_waited_for_on_demand(
    kafka: RealKafka, admin: KafkaAdminClient, name: str
) -> None:
    tp = TopicPartition(new_topic(kafka.bootstrap_servers, 1), 0)
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send_offsets_to_transaction({tp: 7}, ConsumerGroupMetadata(name))
            assert admin.list_consumer_group_offsets(name, [tp]) == {tp: None}
            with pytest.raises(KafkaTimeoutError, match=f"Listing the offsets of group {name}"):
                admin.list_consumer_group_offsets(name, [tp], require_stable=True, timeout_ms=500)
        committed = admin.list_consumer_group_offsets(name, [tp], require_stable=True)
    assert committed == {tp: OffsetAndMetadata(7)}


def test_list_groups_and_describe_groups_show_a_member_and_what_it_reads(
    kafka: RealKafka, admin: KafkaAdminClient, name: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 2)
    member = Member(
        kafka.bootstrap_servers, topic, name, **{"client.id": "reader", "group.instance.id": f"{name}-1"}
    )
    try:
        wait_until(lambda: len(member.assignment) == 2, 30, "the member's assignment")
        listed = admin.list_groups(states=["Stable"], types=["Classic"])[name]
        assert (listed.protocol_type, listed.state, listed.group_type) == ("consumer", "Stable", "classic")
        assert name not in admin.list_groups(states=["Empty"])
        assert name not in admin.list_groups(types=["Consumer"])
        described = admin.describe_groups([name])[name]
        assert (described.group_id, described.state, described.protocol_type) == (name, "Stable", "consumer")
        assert described.partition_assignor == "range"
        assert described.coordinator.port == kafka.port
        (found,) = described.members
        assert (found.client_id, found.group_instance_id) == ("reader", f"{name}-1")
        assert found.member_id.startswith(f"{name}-1")
        assert found.host == "/127.0.0.1"
        assert set(found.assignment) == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    finally:
        member.stop()


def test_describe_groups_shows_groups_of_the_new_protocol_as_well(
    kafka: RealKafka, admin: KafkaAdminClient, name: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    # The first request about a group makes Kafka create the groups' topic, and only then is there a coordinator.
    assert admin.list_consumer_group_offsets(name) == {}
    with DrivenClient(kafka.bootstrap_servers, client_id="raw") as client:
        member = NewMember(client, name, topic)
        wait_until(member.is_stable, 30, "the member's assignment")
        assert admin.list_groups(types=["Consumer"])[name].group_type == "consumer"
        described = admin.describe_groups([name])[name]
        assert (described.state, described.protocol_type) == ("Stable", "consumer")
        assert described.partition_assignor == "uniform"
        assert [(m.member_id, m.client_id, m.assignment) for m in described.members] == [
            (member.id, "raw", (TopicPartition(topic, 0),))
        ]
        member.leave()
    assert admin.describe_groups([name])[name].state == "Empty"


def test_describe_groups_names_the_group_that_does_not_exist(admin: KafkaAdminClient, name: str) -> None:
    with pytest.raises(AdminError, match=name) as failed:
        admin.describe_groups([name, f"{name}-2"])
    assert isinstance(failed.value.errors[name], GroupIdNotFoundError)


def test_delete_groups_deletes_those_without_members(
    kafka: RealKafka, admin: KafkaAdminClient, name: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    member = Member(kafka.bootstrap_servers, topic, name)
    empty = f"{name}-empty"
    try:
        wait_until(lambda: member.assignment, 30, "the member's assignment")
        commit(kafka.bootstrap_servers, empty, {TopicPartition(topic, 0): OffsetAndMetadata(0)})
        with pytest.raises(AdminError, match=name) as failed:
            admin.delete_groups([name, empty, f"{name}-none"])
        assert isinstance(failed.value.errors[name], GroupNotEmptyError)
        assert isinstance(failed.value.errors[f"{name}-none"], GroupIdNotFoundError)
        assert set(failed.value.results) == {empty}
        assert empty not in admin.list_groups()
    finally:
        member.stop()
    admin.delete_groups([name])
    assert name not in admin.list_groups()


def test_update_credentials_is_for_who_authenticates_with_a_password(admin: KafkaAdminClient) -> None:
    with pytest.raises(IllegalStateError, match=r"security\.protocol"):  # see test_sasl.py for the rest
        admin.update_credentials("alice", "secret")


def test_close_ends_the_client(kafka: RealKafka) -> None:
    client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    client.list_topics()
    client.close()
    with pytest.raises(ClientClosedError):
        client.list_topics()
