"""APIs that are served, in which versions, and that every version of it is really answered."""

from __future__ import annotations

import pkgutil
import struct

import pytest

from harness.broker.wire import Wire, batch
from kclient.broker import apis
from kclient.broker.apis.registry import served_apis
from kclient.broker.embedded import EmbeddedKafka
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.codec import decode
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kclient.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kclient.protocol.messages.describe_acls import DescribeAclsRequest
from kclient.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kclient.protocol.messages.describe_groups import DescribeGroupsRequest
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kclient.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kclient.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.protocol.registry import request_class
from kclient.protocol.schema import Message

ERROR_35 = 35
INVALID_REQUEST = 42


def request_for(api: ApiKeys, version: int) -> Message:
    """A request with something in it, so that the answer has something in it."""
    name = f"versions-{api.name.lower()}-{version}"
    if api is ApiKeys.PRODUCE:
        data = [PartitionProduceData(index=0, records=batch(b"v"))]
        return ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="versions", partition_data=data)]
        )
    if api is ApiKeys.FETCH:
        wanted = [FetchPartition(partition=0, partition_max_bytes=1000), FetchPartition(partition=9)]
        return FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic="versions", partitions=wanted)])
    if api is ApiKeys.LIST_OFFSETS:
        looked_up = [ListOffsetsPartition(partition_index=0, timestamp=t) for t in (-1, -2, 1, 2**60)]
        return ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name="versions", partitions=looked_up)]
        )
    if api is ApiKeys.METADATA:
        return MetadataRequest(
            topics=[MetadataRequestTopic(name="versions"), MetadataRequestTopic(name="bad name")]
        )
    if api is ApiKeys.FIND_COORDINATOR:
        return (
            FindCoordinatorRequest(coordinator_keys=["g"])
            if version >= 4
            else FindCoordinatorRequest(key="g")
        )
    if api is ApiKeys.JOIN_GROUP:
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"m")]
        return JoinGroupRequest(
            group_id=name, session_timeout_ms=6000, rebalance_timeout_ms=6000 if version else -1,
            protocol_type="consumer", protocols=protocols,
        )  # fmt: skip
    if api is ApiKeys.LEAVE_GROUP:
        members = [MemberIdentity(member_id="m")] if version >= 3 else []
        return LeaveGroupRequest(group_id=name, members=members, member_id="m" if version < 3 else "")
    if api is ApiKeys.OFFSET_COMMIT:
        offsets = [OffsetCommitRequestPartition(partition_index=i, committed_offset=1) for i in (0, 9)]
        return OffsetCommitRequest(
            group_id=name, topics=[OffsetCommitRequestTopic(name="versions", partitions=offsets)]
        )
    if api is ApiKeys.OFFSET_FETCH:
        if version < 8:
            return OffsetFetchRequest(
                group_id="g", topics=[OffsetFetchRequestTopic(name="versions", partition_indexes=[0])]
            )
        topics = [OffsetFetchRequestTopics(name="versions", partition_indexes=[0])]
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    if api is ApiKeys.OFFSET_FOR_LEADER_EPOCH:
        epochs = [OffsetForLeaderPartition(partition=0, leader_epoch=0)]
        return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="versions", partitions=epochs)])
    if api is ApiKeys.CREATE_TOPICS:
        return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])
    if api is ApiKeys.DELETE_TOPICS:
        return (
            DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
            if version >= 6
            else DeleteTopicsRequest(topic_names=[name])
        )
    if api is ApiKeys.DESCRIBE_CONFIGS:
        resources = [
            DescribeConfigsResource(resource_type=2, resource_name="versions", configuration_keys=None),
            DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None),
        ]
        return DescribeConfigsRequest(resources=resources, include_synonyms=True)
    if api is ApiKeys.DESCRIBE_GROUPS:
        return DescribeGroupsRequest(groups=["versions-join_group-0", "none"])
    if api is ApiKeys.DESCRIBE_ACLS:
        return DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1)
    if api is ApiKeys.API_VERSIONS and version >= 3:
        return ApiVersionsRequest(client_software_name="kclient", client_software_version="1")
    return request_class(api)()


@pytest.mark.parametrize(
    ("api", "version"),
    [
        pytest.param(served.key, version, id=f"{served.key.title}-v{version}")
        for served in served_apis().values()
        for version in range(served.min_version, served.max_version + 1)
    ],
)
def test_every_served_version_is_answered(wire: Wire, api: ApiKeys, version: int) -> None:
    wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name="versions")]), 5)
    wire.ask(request_for(api, version), version)


def test_exactly_what_is_served_is_advertised_and_produce_from_0_on(wire: Wire) -> None:
    answer = wire.ask(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    advertised = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
    assert answer.error_code == 0
    served = {number: (api.min_version, api.max_version) for number, api in served_apis().items()}
    assert advertised == {**served, int(ApiKeys.PRODUCE): (0, served[ApiKeys.PRODUCE][1])}


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_a_version_of_api_versions_that_is_too_new_is_answered_in_version_0_with_the_list(
    kafka: EmbeddedKafka, wire: Wire, version: int
) -> None:
    # Whatever follows the first eight bytes belongs to a version that is not known.
    wire.sock.sendall(struct.pack(">ihhi", 13, 18, version, 77) + b"\xff\xfegar")
    frame = wire.read_frame()
    assert struct.unpack(">i", frame[:4])[0] == 77
    answer = decode(ApiVersionsResponse, 0, frame[4:])
    assert answer.error_code == ERROR_35
    assert {key.api_key for key in answer.api_keys} == set(served_apis())
    # The connection goes on.
    assert wire.ask(ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize("name", ["", "-x", "a b", "x" + "é"])
def test_a_client_software_name_that_is_not_one_is_refused(wire: Wire, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert wire.ask(request, 3).error_code == INVALID_REQUEST


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(struct.pack(">hhi", 999, 0, 1) + b"\xff\xff", id="an API that is not there"),
        pytest.param(struct.pack(">hhi", 3, 99, 1) + b"\xff\xff\0", id="a version that is not there"),
        pytest.param(
            struct.pack(">hhi", 0, 2, 1) + b"\xff\xff" + bytes(6), id="Produce below what it serves"
        ),
        pytest.param(b"\0\x03", id="less than a header"),
        pytest.param(
            struct.pack(">hhi", 3, 1, 1) + b"\x7f\xff", id="a client id that is longer than the frame"
        ),
        pytest.param(struct.pack(">hhi", 3, 1, 1) + b"\xff\xff\x7f\xff\xff\xff", id="two billion topics"),
    ],
)
def test_a_request_that_cannot_be_understood_closes_its_connection_and_no_other(
    wire: Wire, connect: object, frame: bytes
) -> None:
    other = connect()  # type: ignore[operator]
    wire.sock.sendall(struct.pack(">i", len(frame)) + frame)
    assert wire.closed_by_peer()
    assert other.ask(ApiVersionsRequest(), 0).error_code == 0


def test_bytes_after_a_request_are_let_pass_as_librdkafka_sends_some(wire: Wire) -> None:
    # Its request for all topics in Metadata version 12: a count of four bytes where one is asked for.
    frame = bytes.fromhex("0003000c00000003000772646b61666b610000000000010000")
    wire.sock.sendall(struct.pack(">i", len(frame)) + frame)
    assert wire.read_frame()[:4] == b"\0\0\0\x03"


def test_every_handler_that_is_written_is_served() -> None:
    modules = {each.name for each in pkgutil.iter_modules(apis.__path__)}
    written = modules & {api.name.lower() for api in ApiKeys}
    assert written == {api.key.name.lower() for api in served_apis().values()}
