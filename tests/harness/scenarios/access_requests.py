"""Requests of the scenario of rights, and what is looked at of their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from harness.broker.wire import batch
from kclient.admin import (
    AclOperation,
)
from kclient.common.uuid import Uuid
from kclient.protocol.messages import alter_user_scram_credentials as scram
from kclient.protocol.messages import (
    create_acls,
    delete_acls,
    describe_acls,
    join_group,
    leave_group,
    list_offsets,
    metadata,
)
from kclient.protocol.messages import create_partitions as partitions
from kclient.protocol.messages import create_topics as creating
from kclient.protocol.messages import delete_records as records
from kclient.protocol.messages import delete_topics as deleting
from kclient.protocol.messages import describe_configs as configs
from kclient.protocol.messages import describe_topic_partitions as pages
from kclient.protocol.messages import fetch as fetching
from kclient.protocol.messages import offset_commit as committing
from kclient.protocol.messages import offset_delete as forgetting
from kclient.protocol.messages import offset_fetch as committed
from kclient.protocol.messages import offset_for_leader_epoch as epochs
from kclient.protocol.messages import produce as producing
from kclient.protocol.schema import Message

CLUSTER = 31


@attrs.frozen
class Scene:
    """The names that a case uses; its user is called as its topic and its group."""

    name: str
    topic_id: Uuid
    node_id: int

    @property
    def none(self) -> str:
        """A topic that is not there."""
        return f"{self.name}-none"

    @property
    def topics(self) -> tuple[str, str]:
        """The topic that is there, and the one that is not."""
        return self.name, self.none


def by_topic(scene: Scene, topics: Any, name: str = "name") -> tuple[int, ...]:
    """The code of the first partition of both topics, wherever they stand in the answer."""
    codes = {getattr(topic, name): topic.partitions[0].error_code for topic in topics}
    return tuple(codes[each] for each in scene.topics)


def by_name(scene: Scene, topics: Any) -> tuple[int, ...]:
    codes = {topic.name: topic.error_code for topic in topics}
    return tuple(codes[each] for each in scene.topics)


def produce(scene: Scene) -> Message:
    data = [producing.PartitionProduceData(index=0, records=batch(b"v"))]
    topics = [producing.TopicProduceData(name=name, partition_data=data) for name in scene.topics]
    return producing.ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)


def produced(scene: Scene, answer: Any) -> object:
    codes = {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}
    return tuple(codes[each] for each in scene.topics)


def fetch(scene: Scene) -> Message:
    wanted = [fetching.FetchPartition(partition=0, partition_max_bytes=1000)]
    topics = [fetching.FetchTopic(topic=name, partitions=wanted) for name in scene.topics]
    return fetching.FetchRequest(max_wait_ms=0, max_bytes=1000, session_epoch=-1, topics=topics)


def list_ends(scene: Scene) -> Message:
    wanted = [list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    topics = [list_offsets.ListOffsetsTopic(name=name, partitions=wanted) for name in scene.topics]
    return list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics)


def list_ends_twice(scene: Scene) -> Message:
    """The first partition twice, and one that is not there."""
    wanted = [list_offsets.ListOffsetsPartition(partition_index=number, timestamp=-1) for number in (0, 0, 1)]
    topics = [list_offsets.ListOffsetsTopic(name=scene.name, partitions=wanted)]
    return list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics)


def listed_ends(scene: Scene, answer: Any) -> object:
    # A real broker answers in no certain order.
    return sorted(
        (part.partition_index, part.error_code, part.offset)
        for topic in answer.topics
        for part in topic.partitions
    )


def describe_topics(*, create: bool = False, operations: bool = False) -> Callable[[Scene], Message]:
    def request(scene: Scene) -> Message:
        return metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=name) for name in scene.topics],
            allow_auto_topic_creation=create,
            include_cluster_authorized_operations=operations,
            include_topic_authorized_operations=operations,
        )

    return request


def page(*, every: bool = False, limit: int = 100, first: int | None = None) -> Callable[[Scene], Message]:
    """Partitions of both topics, or of all; `first` is where they begin in the one that is there."""

    def request(scene: Scene) -> Message:
        topics = [] if every else [pages.TopicRequest(name=name) for name in scene.topics]
        cursor = pages.DescribeTopicPartitionsRequestCursor(topic_name=scene.name, partition_index=first or 0)
        return pages.DescribeTopicPartitionsRequest(
            topics=topics, response_partition_limit=limit, cursor=None if first is None else cursor
        )

    return request


def paged(scene: Scene, answer: Any) -> object:
    """Both topics, and where the next page begins."""
    called = {scene.name: "there", scene.none: "none"}
    following = answer.next_cursor
    return sorted(
        (called[topic.name], topic.error_code, len(topic.partitions), topic.topic_authorized_operations)
        for topic in answer.topics
    ), following and (called[following.topic_name], following.partition_index)


def created(scene: Scene, answer: Any) -> object:
    codes = by_name(scene, answer.topics)
    # A leader of what was just made may still be to come.
    return codes[0], 0 if codes[1] == 5 else codes[1]


def operations(scene: Scene, answer: Any) -> object:
    told = {topic.name: topic.topic_authorized_operations for topic in answer.topics}
    return answer.cluster_authorized_operations, told[scene.name]


def bits(*operations: AclOperation) -> int:
    return sum(1 << operation for operation in operations)


def commit(scene: Scene) -> Message:
    wanted = [committing.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
    topics = [committing.OffsetCommitRequestTopic(name=name, partitions=wanted) for name in scene.topics]
    return committing.OffsetCommitRequest(group_id=scene.name, topics=topics)


def fetch_offsets(every: bool) -> Callable[[Scene], Message]:
    def request(scene: Scene) -> Message:
        topics = [
            committed.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in scene.topics
        ]
        group = committed.OffsetFetchRequestGroup(group_id=scene.name, topics=None if every else topics)
        return committed.OffsetFetchRequest(groups=[group])

    return request


def group_offsets(scene: Scene, answer: Any) -> object:
    (group,) = answer.groups
    told = {topic.name: topic.partitions[0] for topic in group.topics}
    return group.error_code, {
        name: (told[name].error_code, told[name].committed_offset) for name in scene.topics if name in told
    }


def old_group_offsets(scene: Scene, answer: Any) -> object:
    return answer.error_code, [topic.partitions[0].error_code for topic in answer.topics]


def join(scene: Scene) -> Message:
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"")
    return join_group.JoinGroupRequest(
        group_id=scene.name,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )


def leave(scene: Scene) -> Message:
    return leave_group.LeaveGroupRequest(
        group_id=scene.name, members=[leave_group.MemberIdentity(member_id="m")]
    )


def listed(scene: Scene, answer: Any) -> object:
    return [group.group_id for group in answer.groups if group.group_id == scene.name]


def delete_offsets(scene: Scene) -> Message:
    wanted = [forgetting.OffsetDeleteRequestPartition(partition_index=0)]
    topics = [forgetting.OffsetDeleteRequestTopic(name=name, partitions=wanted) for name in scene.topics]
    return forgetting.OffsetDeleteRequest(group_id=scene.name, topics=topics)


def deleted_offsets(scene: Scene, answer: Any) -> object:
    return answer.error_code, by_topic(scene, answer.topics) if answer.topics else ()


def create(scene: Scene) -> Message:
    topic = creating.CreatableTopic(name=scene.none, num_partitions=1, replication_factor=1)
    return creating.CreateTopicsRequest(topics=[topic])


def created_topic(scene: Scene, answer: Any) -> object:
    (topic,) = answer.topics
    return topic.error_code, topic.topic_config_error_code, topic.num_partitions, bool(topic.configs)


def delete(scene: Scene) -> Message:
    return deleting.DeleteTopicsRequest(
        timeout_ms=10_000, topics=[deleting.DeleteTopicState(name=name) for name in scene.topics]
    )


def delete_by_id(scene: Scene) -> Message:
    return deleting.DeleteTopicsRequest(
        timeout_ms=10_000, topics=[deleting.DeleteTopicState(topic_id=scene.topic_id)]
    )


def deleted_by_id(scene: Scene, answer: Any) -> object:
    (result,) = answer.responses
    assert result.topic_id == scene.topic_id
    return result.error_code, result.name == scene.name, result.name is None


def grow(scene: Scene) -> Message:
    topics = [partitions.CreatePartitionsTopic(name=name, count=2, assignments=None) for name in scene.topics]
    return partitions.CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=True)


def delete_records(scene: Scene) -> Message:
    wanted = [records.DeleteRecordsPartition(partition_index=0, offset=0)]
    topics = [records.DeleteRecordsTopic(name=name, partitions=wanted) for name in scene.topics]
    return records.DeleteRecordsRequest(topics=topics, timeout_ms=10_000)


def find_epochs(scene: Scene) -> Message:
    wanted = [epochs.OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    topics = [epochs.OffsetForLeaderTopic(topic=name, partitions=wanted) for name in scene.topics]
    return epochs.OffsetForLeaderEpochRequest(topics=topics)


def describe_configs(scene: Scene) -> Message:
    named = [(2, scene.name), (2, scene.none), (4, str(scene.node_id))]
    resources = [
        configs.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in named
    ]
    return configs.DescribeConfigsRequest(resources=resources)


def described_configs(scene: Scene, answer: Any) -> object:
    told = {result.resource_name: (result.error_code, bool(result.configs)) for result in answer.results}
    return [told[name] for name in (*scene.topics, str(scene.node_id))]


def alter(module: Any, request: Any) -> Callable[[Scene], Message]:
    def made(scene: Scene) -> Message:
        config = module.AlterableConfig(name="retention.ms", value="1000")
        resources = [
            module.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
            for kind, name in ((2, scene.name), (4, str(scene.node_id)))
        ]
        message = request(resources=resources, validate_only=True)
        assert isinstance(message, Message)
        return message

    return made


def altered(scene: Scene, answer: Any) -> object:
    told = {result.resource_name: result.error_code for result in answer.responses}
    # The settings of brokers that may be altered differ.
    return told[scene.name], told[str(scene.node_id)] == CLUSTER


def unsalted(scene: Scene) -> Message:
    return scram.AlterUserScramCredentialsRequest(
        deletions=[scram.ScramCredentialDeletion(name=f"{scene.name}-other", mechanism=1)]
    )


def create_acl(scene: Scene) -> Message:
    acl = create_acls.AclCreation(
        resource_type=2, resource_name="x", principal="User:x", host="*", operation=3, permission_type=3
    )
    return create_acls.CreateAclsRequest(creations=[acl])


def delete_acl(scene: Scene) -> Message:
    wanted = delete_acls.DeleteAclsFilter(
        resource_type_filter=2,
        resource_name_filter=scene.none,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    return delete_acls.DeleteAclsRequest(filters=[wanted])


def find_acls(scene: Scene) -> Message:
    return describe_acls.DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter=scene.none,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def code(scene: Scene, answer: Any) -> object:
    return answer.error_code
