"""Topics, their settings, and what is said of them, through the wire."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.wire import Wire
from kclient.common.uuid import Uuid
from kclient.protocol.messages import alter_configs as replaced
from kclient.protocol.messages import incremental_alter_configs as incremental
from kclient.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kclient.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kclient.protocol.messages.describe_cluster import DescribeClusterRequest
from kclient.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kclient.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

UNKNOWN_TOPIC, INVALID_TOPIC, TOPIC_EXISTS, INVALID_PARTITIONS, INVALID_FACTOR, INVALID_ASSIGNMENT = (
    3,
    17,
    36,
    37,
    38,
    39,
)
INVALID_CONFIG, INVALID_REQUEST, POLICY_VIOLATION, UNKNOWN_TOPIC_ID = 40, 42, 44, 100
TOPIC, BROKER = 2, 4


def create(wire: Wire, name: str, partitions: int = 1, factor: int = 1, **fields: Any) -> Any:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, **fields)
    return wire.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0]


def describe(wire: Wire, *topics: MetadataRequestTopic, create: bool = False) -> Any:
    return wire.ask(MetadataRequest(topics=list(topics), allow_auto_topic_creation=create), 12).topics


def settings(wire: Wire, name: str, kind: int = TOPIC, keys: list[str] | None = None) -> dict[str, Any]:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    result = wire.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4).results[0]
    assert result.error_code == 0, result.error_message
    return {config.name: config for config in result.configs}


def test_a_new_topic_is_described_with_its_id_and_partitions(wire: Wire) -> None:
    made = create(wire, "new", 3)
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 3, 1)
    (found,) = describe(wire, MetadataRequestTopic(name="new"))
    assert (found.topic_id, len(found.partitions)) == (made.topic_id, 3)
    assert [(p.leader_id, p.replica_nodes, p.isr_nodes, p.leader_epoch) for p in found.partitions] == [
        (1, [1], [1], 0)
    ] * 3
    (by_id,) = describe(wire, MetadataRequestTopic(name=None, topic_id=made.topic_id))
    assert by_id.name == "new"


def test_defaults_are_taken_for_what_is_not_said(wire: Wire) -> None:
    assert create(wire, "defaults", -1, -1).num_partitions == 1


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        pytest.param(INVALID_TOPIC, {"name": "a/b"}, id="bad name"),
        pytest.param(INVALID_PARTITIONS, {"partitions": 0}, id="no partitions"),
        pytest.param(POLICY_VIOLATION, {"partitions": 2**31 - 1}, id="two billion partitions"),
        pytest.param(INVALID_FACTOR, {"factor": 3}, id="three replicas"),
        pytest.param(INVALID_CONFIG, {"configs": [CreatableTopicConfig(name="no.such", value="1")]}, id="setting"),
        pytest.param(INVALID_CONFIG, {"configs": [CreatableTopicConfig(name="retention.ms", value="x")]}, id="value"),
        pytest.param(
            INVALID_ASSIGNMENT,
            {
                "partitions": -1, "factor": -1,
                "assignments": [CreatableReplicaAssignment(partition_index=0, broker_ids=[2])],
            },
            id="another broker",
        ),
        pytest.param(
            INVALID_REQUEST,
            {"assignments": [CreatableReplicaAssignment(partition_index=0, broker_ids=[1])]},
            id="assignment and number",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_a_topic_is_refused(wire: Wire, error: int, fields: dict[str, Any]) -> None:
    name = fields.get("name", "refused")
    rest = {key: value for key, value in fields.items() if key != "name"}
    result = create(wire, name, **rest)
    assert result.error_code == error
    assert result.error_message
    assert describe(wire, MetadataRequestTopic(name="refused"))[0].error_code == UNKNOWN_TOPIC


def test_a_name_is_given_once_and_not_in_disguise(wire: Wire) -> None:
    create(wire, "once.only")
    assert create(wire, "once.only").error_code == TOPIC_EXISTS
    assert create(wire, "once_only").error_code == INVALID_TOPIC
    topics = [CreatableTopic(name="double", num_partitions=1, replication_factor=1)] * 2
    assert [t.error_code for t in wire.ask(CreateTopicsRequest(topics=topics), 7).topics] == [INVALID_REQUEST]


def test_validating_makes_nothing(wire: Wire) -> None:
    topic = CreatableTopic(name="only-validated", num_partitions=1, replication_factor=1)
    assert wire.ask(CreateTopicsRequest(topics=[topic], validate_only=True), 7).topics[0].error_code == 0
    assert describe(wire, MetadataRequestTopic(name="only-validated"))[0].error_code == UNKNOWN_TOPIC


def test_asking_for_a_topic_makes_it_if_the_client_allows(wire: Wire) -> None:
    wanted = MetadataRequestTopic(name="wished-for")
    assert describe(wire, wanted)[0].error_code == UNKNOWN_TOPIC
    assert describe(wire, wanted, create=True)[0].error_code == 0
    assert describe(wire, wanted)[0].error_code == 0
    assert describe(wire, MetadataRequestTopic(name="bad name"), create=True)[0].error_code == INVALID_TOPIC


def test_no_topics_means_all_in_version_0_and_none_later(wire: Wire) -> None:
    create(wire, "one-of-all")
    assert "one-of-all" in {topic.name for topic in wire.ask(MetadataRequest(topics=[]), 0).topics}
    assert "one-of-all" in {topic.name for topic in wire.ask(MetadataRequest(topics=None), 12).topics}
    assert wire.ask(MetadataRequest(topics=[]), 12).topics == []


def test_a_deleted_topic_is_gone_and_its_name_free_for_another_one(wire: Wire) -> None:
    old = create(wire, "phoenix")
    assert wire.ask(DeleteTopicsRequest(topic_names=["phoenix"]), 5).responses[0].error_code == 0
    assert describe(wire, MetadataRequestTopic(name="phoenix"))[0].error_code == UNKNOWN_TOPIC
    new = create(wire, "phoenix")
    assert new.topic_id != old.topic_id
    by_id = [
        DeleteTopicState(name=None, topic_id=old.topic_id),
        DeleteTopicState(name=None, topic_id=new.topic_id),
    ]
    answers = wire.ask(DeleteTopicsRequest(topics=by_id), 6).responses
    assert [answer.error_code for answer in answers] == [UNKNOWN_TOPIC_ID, 0]
    assert answers[1].name == "phoenix"


def test_what_is_no_topic_cannot_be_deleted_and_the_offsets_may_not(wire: Wire) -> None:
    describe(wire, MetadataRequestTopic(name="__consumer_offsets"), create=True)
    names = ["none", "__consumer_offsets"]
    answers = wire.ask(DeleteTopicsRequest(topic_names=names), 5).responses
    assert [answer.error_code for answer in answers] == [UNKNOWN_TOPIC, INVALID_REQUEST]
    both = DeleteTopicState(name="x", topic_id=Uuid.random())
    assert wire.ask(DeleteTopicsRequest(topics=[both]), 6).responses[0].error_code == INVALID_REQUEST


def test_partitions_are_added_and_never_taken_away(wire: Wire) -> None:
    create(wire, "growing", 2)

    def grow(count: int, name: str = "growing") -> int:
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)]
        )
        code: int = wire.ask(request, 3).results[0].error_code
        return code

    assert [grow(2), grow(1), grow(4), grow(4)] == [
        INVALID_PARTITIONS,
        INVALID_PARTITIONS,
        0,
        INVALID_PARTITIONS,
    ]
    assert grow(3, "none") == UNKNOWN_TOPIC
    assert grow(2**31 - 1) == POLICY_VIOLATION
    assert len(describe(wire, MetadataRequestTopic(name="growing"))[0].partitions) == 4


def test_settings_are_told_with_where_they_come_from(wire: Wire) -> None:
    create(wire, "described", configs=[CreatableTopicConfig(name="retention.ms", value="1000")])
    found = settings(wire, "described")
    assert (found["retention.ms"].value, found["retention.ms"].config_source) == ("1000", 1)
    assert [(s.name, s.source) for s in found["retention.ms"].synonyms] == [
        ("retention.ms", 1),
        ("log.retention.ms", 5),
    ]
    assert (found["segment.bytes"].value, found["segment.bytes"].config_source) == (str(1 << 30), 5)
    assert list(settings(wire, "described", keys=["segment.bytes"])) == ["segment.bytes"]
    broker = settings(wire, "1", BROKER)
    assert (
        broker["offsets.topic.num.partitions"].value,
        broker["offsets.topic.num.partitions"].config_source,
    ) == ("2", 4)
    assert broker["num.partitions"].read_only


def test_single_settings_are_changed_and_take_effect(wire: Wire) -> None:
    create(wire, "changing", configs=[CreatableTopicConfig(name="retention.ms", value="1000")])

    def alter(
        name: str, operation: int, value: str | None, topic: str = "changing", kind: int = TOPIC
    ) -> int:
        change = incremental.AlterableConfig(name=name, config_operation=operation, value=value)
        resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=topic, configs=[change])
        answer = wire.ask(incremental.IncrementalAlterConfigsRequest(resources=[resource]), 1)
        code: int = answer.responses[0].error_code
        return code

    assert alter("max.message.bytes", 0, "2000") == 0
    assert alter("cleanup.policy", 2, "compact") == 0
    found = settings(wire, "changing")
    assert {name: found[name].value for name in ("max.message.bytes", "retention.ms", "cleanup.policy")} == {
        "max.message.bytes": "2000", "retention.ms": "1000", "cleanup.policy": "delete,compact",
    }  # fmt: skip
    assert alter("retention.ms", 1, None) == 0
    assert alter("cleanup.policy", 3, "delete") == 0
    found = settings(wire, "changing")
    assert found["retention.ms"].config_source == 5
    assert found["cleanup.policy"].value == "compact"
    assert alter("no.such.setting", 0, "1") == INVALID_CONFIG
    assert alter("max.message.bytes", 0, "many") == INVALID_CONFIG
    assert alter("max.message.bytes", 2, "1") == INVALID_CONFIG
    assert alter("max.message.bytes", 0, None) == INVALID_REQUEST
    assert alter("max.message.bytes", 9, "1") == INVALID_REQUEST
    assert alter("max.message.bytes", 0, "1", topic="none") == UNKNOWN_TOPIC
    assert alter("num.io.threads", 0, "1", topic="1", kind=BROKER) == INVALID_REQUEST


def test_all_settings_are_replaced(wire: Wire) -> None:
    create(wire, "replaced", configs=[CreatableTopicConfig(name="retention.ms", value="1000")])
    change = replaced.AlterableConfig(name="flush.ms", value="9")
    resource = replaced.AlterConfigsResource(resource_type=TOPIC, resource_name="replaced", configs=[change])
    request = replaced.AlterConfigsRequest(resources=[resource], validate_only=True)
    assert wire.ask(request, 2).responses[0].error_code == 0
    assert settings(wire, "replaced")["retention.ms"].config_source == 1, "validating changes nothing"
    request.validate_only = False
    assert wire.ask(request, 2).responses[0].error_code == 0
    found = settings(wire, "replaced")
    assert (found["flush.ms"].value, found["retention.ms"].config_source) == ("9", 5)


def test_the_cluster_and_its_disks_are_described(wire: Wire) -> None:
    create(wire, "on-disk")
    cluster = wire.ask(DescribeClusterRequest(), 0)
    assert [(broker.broker_id, broker.host) for broker in cluster.brokers] == [(1, "127.0.0.1")]
    assert cluster.controller_id == 1
    (log_dir,) = wire.ask(DescribeLogDirsRequest(topics=None), 4).results
    assert "on-disk" in {topic.name for topic in log_dir.topics}
    assert log_dir.usable_bytes > 0
