"""Requests of groups to brokers that have no topic for their offsets yet, answered alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.broker import requests
from harness.broker.wire import Wire
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from kclient.broker import EmbeddedKafka
from kclient.protocol.messages.delete_groups import DeleteGroupsRequest
from kclient.protocol.messages.describe_groups import DescribeGroupsRequest
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kclient.protocol.messages.list_groups import ListGroupsRequest
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kclient.protocol.messages.sync_group import SyncGroupRequest
from kclient.protocol.schema import Message

JOIN: dict[str, Any] = {
    "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer",
    "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")],
}  # fmt: skip
MEMBER: dict[str, Any] = {"group_id": "g", "generation_id": 1, "member_id": "m"}


def commit(**fields: Any) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(
        group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[part])], **fields
    )


def fetch(topics: list[OffsetFetchRequestTopics] | None = None) -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])


REQUESTS: list[tuple[Message, int]] = [
    (JoinGroupRequest(group_id="g", **JOIN), 9),
    (JoinGroupRequest(group_id="g", **JOIN), 3),
    (JoinGroupRequest(group_id="g", member_id="m", **JOIN), 9),
    (JoinGroupRequest(group_id="", **JOIN), 9),
    (JoinGroupRequest(group_id="g", **{**JOIN, "session_timeout_ms": 1}), 9),
    (SyncGroupRequest(**MEMBER), 5),
    (HeartbeatRequest(**MEMBER), 4),
    (LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]), 5),
    (LeaveGroupRequest(group_id="g", member_id="m"), 1),
    (commit(), 9),
    (commit(generation_id_or_member_epoch=1, member_id="m"), 9),
    (commit(generation_id_or_member_epoch=1, member_id="m"), 7),
    (fetch(), 8),
    (fetch(topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])]), 8),
    (DescribeGroupsRequest(groups=["g"]), 6),
    (DescribeGroupsRequest(groups=["g"]), 5),
    (DeleteGroupsRequest(groups_names=["g"]), 2),
    (
        OffsetDeleteRequest(
            group_id="g",
            topics=[
                OffsetDeleteRequestTopic(
                    name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
            ],
        ),
        0,
    ),
    (ListGroupsRequest(), 4),
]


def codes(told: Any) -> list[int]:
    """All error codes of an answer, in their order."""
    found = [told.error_code] if hasattr(told, "error_code") else []
    for field in type(told).FIELDS:
        value = getattr(told, field.name)
        for entry in value if isinstance(value, list) else ():
            if hasattr(entry, "FIELDS"):
                found += codes(entry)
    return found


@pytest.fixture(scope="module")
def brokers() -> Iterator[list[Wire]]:
    """Connections to a new Kafka and a new embedded broker, where nobody has looked for a coordinator."""
    skip_if(missing())
    with ExitStack() as stack:
        servers = [
            stack.enter_context(RealKafka()).bootstrap_servers,
            stack.enter_context(EmbeddedKafka()).bootstrap_servers,
        ]
        wires = [stack.enter_context(Wire(address)) for address in servers]
        for wire in wires:
            requests.create(wire, "t")
        yield wires


def test_groups_have_no_coordinator_until_somebody_looks_for_it(brokers: list[Wire]) -> None:
    differing = []
    for request, version in REQUESTS:
        real, ours = (codes(wire.ask(request, version)) for wire in brokers)
        if real != ours:
            differing.append(f"{request!r} in version {version}: {ours}, Kafka's {real}")
    assert differing == []
    for wire in brokers:
        assert set(requests.topics(wire)) == {"t"}, "a request made the topic"
