"""Tokens, transactions, share groups: the embedded broker has none and says so by the name of the API.

Access rules it does not have without an authorizer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kclient.admin import (
    AbortTransactionSpec,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    KafkaAdminClient,
    NewTopic,
    ResourcePattern,
    ResourceType,
)
from kclient.broker import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    SecurityDisabledError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kclient.producer import KafkaProducer

ACL = AclBinding(ResourcePattern(ResourceType.TOPIC, "t"), AccessControlEntry("User:a", AclOperation.READ))
TP = TopicPartition("t", 0)
CALLS: dict[str, Callable[[KafkaAdminClient], object]] = {
    "CREATE_DELEGATION_TOKEN": lambda admin: admin.create_delegation_token(),
    "RENEW_DELEGATION_TOKEN": lambda admin: admin.renew_delegation_token(b"h"),
    "EXPIRE_DELEGATION_TOKEN": lambda admin: admin.expire_delegation_token(b"h"),
    "DESCRIBE_DELEGATION_TOKEN": lambda admin: admin.describe_delegation_token(),
    "LIST_CONFIG_RESOURCES": lambda admin: admin.list_config_resources(),
    "LIST_TRANSACTIONS": lambda admin: admin.list_transactions(),
    "SHARE_GROUP_DESCRIBE": lambda admin: admin.describe_share_groups(["g"]),
    "DESCRIBE_SHARE_GROUP_OFFSETS": lambda admin: admin.list_share_group_offsets({"g": None}),
    "ALTER_SHARE_GROUP_OFFSETS": lambda admin: admin.alter_share_group_offsets("g", {TP: 0}),
    "DELETE_SHARE_GROUP_OFFSETS": lambda admin: admin.delete_share_group_offsets("g", ["t"]),
}


@pytest.fixture(scope="module")
def admin() -> Iterator[KafkaAdminClient]:
    with EmbeddedKafka() as kafka, KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as made:
        yield made


@pytest.mark.parametrize("api", CALLS)
def test_what_the_broker_does_not_have_is_said_at_once(admin: KafkaAdminClient, api: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"The broker does not support {api} at all"):
        CALLS[api](admin)


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.create_acls([ACL]),
        lambda admin: admin.describe_acls(AclBindingFilter()),
        lambda admin: admin.delete_acls([ACL.to_filter()]),
    ],
)
def test_without_an_authorizer_there_are_no_rules(
    admin: KafkaAdminClient, call: Callable[[KafkaAdminClient], object]
) -> None:
    with pytest.raises(SecurityDisabledError):
        call(admin)


def test_settings_of_topics_are_set_described_and_deleted(admin: KafkaAdminClient) -> None:
    admin.create_topics(["configured"])
    topic = ConfigResource(ConfigResourceType.TOPIC, "configured")
    assert admin.incremental_alter_configs({topic: [AlterConfigOp("retention.ms", "60000")]}) == {topic: None}
    setting = admin.describe_configs([topic], include_synonyms=True)[topic]["retention.ms"]
    assert (setting.value, setting.source) == ("60000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    broker = ConfigResource(ConfigResourceType.BROKER, str(admin.describe_cluster().nodes[0].id))
    assert "log.retention.ms" in admin.describe_configs([broker])[broker]


def test_of_several_resources_those_that_are_there_are_described(admin: KafkaAdminClient) -> None:
    admin.create_topics(["there"])
    there, missing = (ConfigResource(ConfigResourceType.TOPIC, name) for name in ("there", "missing"))
    with pytest.raises(AdminError, match="topic missing") as raised:
        admin.describe_configs([there, missing])
    assert list(raised.value.results) == [there]
    assert isinstance(raised.value.errors[missing], UnknownTopicOrPartitionError)


def test_producers_are_described_but_have_no_transactions(admin: KafkaAdminClient) -> None:
    tp = TopicPartition("written", 0)
    admin.create_topics([NewTopic(tp.topic, 1, 1)])
    node = admin.describe_cluster().nodes[0]
    with KafkaProducer(bootstrap_servers=f"{node.host}:{node.port}") as producer:
        producer.send(tp.topic, b"v").result(30)
    (state,) = admin.describe_producers([tp])[tp].active_producers
    assert (state.last_sequence, state.current_transaction_start_offset) == (0, None)
    with pytest.raises(UnsupportedVersionError, match="does not support WRITE_TXN_MARKERS at all"):
        admin.abort_transaction(AbortTransactionSpec(tp, state.producer_id, state.producer_epoch))
    for call in (admin.describe_transactions, admin.fence_producers):
        with pytest.raises(UnsupportedVersionError, match=r"failed for x: .* does not serve transactions"):
            call(["x"])
