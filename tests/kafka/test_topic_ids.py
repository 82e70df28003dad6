"""Topics that requests name by their ids, and what else came with the newest versions: ours answers as Kafka does."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.broker.requests import create, delete, topics
from harness.broker.wire import Wire, batch
from harness.real_kafka.broker import RealKafka
from harness.waiting import wait_until
from kclient.broker.embedded import EmbeddedKafka
from kclient.common.uuid import Uuid
from kclient.protocol.messages.describe_cluster import DescribeClusterRequest
from kclient.protocol.messages.describe_groups import DescribeGroupsRequest
from kclient.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    TopicRequest,
)
from kclient.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

NOBODYS = Uuid.random()
NEWEST_FETCH, NEWEST_PRODUCE, NEWEST_OFFSETS = 18, 13, 10

Scenario = Callable[[Wire], object]


@pytest.fixture(scope="module")
def ours() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(num_partitions=1) as running:
        yield running


@pytest.fixture
def both(kafka: RealKafka, ours: EmbeddedKafka) -> Callable[[Scenario], None]:
    """Run a scenario against both brokers, and compare what it returns."""

    def run(scenario: Scenario) -> None:
        seen = []
        for servers in (kafka.bootstrap_servers, ours.bootstrap_servers):
            with Wire(servers, timeout_s=60) as wire:
                seen.append(scenario(wire))
        assert seen[1] == seen[0]

    return run


def new_name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


def made(wire: Wire, name: str, partitions: int = 1) -> Uuid:
    """A topic that the broker has heard of from its controller."""
    topic_id = create(wire, name, partitions)
    wait_until(lambda: name in topics(wire) and topics(wire)[name].topic_id == topic_id, 60, "the topic")
    return topic_id


def gone(wire: Wire, name: str) -> None:
    delete(wire, name)
    wait_until(lambda: name not in topics(wire), 60, "the end of the topic")


def produced(wire: Wire, topic_id: Uuid, value: bytes = b"v") -> list[tuple[int, int]]:
    """The code and the offset for a record sent by id."""
    data = [PartitionProduceData(index=0, records=batch(value))]
    request = ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=data)]
    )
    answer = wire.ask(request, NEWEST_PRODUCE)
    assert [topic.topic_id for topic in answer.responses] == [topic_id]
    return [(part.error_code, part.base_offset) for part in answer.responses[0].partition_responses]


class Reader:
    """A fetch session by topic ids; `tell` gives what its answers say of each topic, by the names given to them."""

    def __init__(self, wire: Wire, version: int = NEWEST_FETCH) -> None:
        self.wire = wire
        self.version = version
        self.session = self.epoch = 0

    def tell(self, names: dict[Uuid, str], *wanted: Uuid, forgotten: tuple[Uuid, ...] = ()) -> object:
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 20,
            session_id=self.session,
            session_epoch=self.epoch,
            topics=[
                FetchTopic(
                    topic_id=each, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)]
                )
                for each in wanted
            ],
            forgotten_topics_data=[ForgottenTopic(topic_id=each, partitions=[0]) for each in forgotten],
        )
        answer = self.wire.ask(request, self.version)
        if answer.error_code == 0:
            self.session, self.epoch = answer.session_id, self.epoch + 1
        return answer.error_code, [
            (names[topic.topic_id], part.error_code, part.high_watermark, bool(part.records))
            for topic in answer.responses
            for part in topic.partitions
        ]


def test_records_are_written_and_read_by_topic_id(both: Callable[[Scenario], None]) -> None:
    def scenario(wire: Wire) -> object:
        topic_id = made(wire, new_name())
        sent = produced(wire, topic_id), produced(wire, topic_id), produced(wire, NOBODYS)
        names = {topic_id: "ours", NOBODYS: "nobody's"}
        return sent, Reader(wire).tell(names, topic_id, NOBODYS), Reader(wire, 13).tell(names, topic_id)

    both(scenario)


def test_a_session_notices_that_its_topic_is_another_one(both: Callable[[Scenario], None]) -> None:
    def scenario(wire: Wire) -> object:
        name = new_name()
        old = made(wire, name)
        produced(wire, old)
        reader = Reader(wire)
        seen = [reader.tell({old: "old"}, old)]
        gone(wire, name)
        new = made(wire, name)
        produced(wire, new)
        names = {old: "old", new: "new"}
        seen.append(reader.tell(names))
        seen.append(reader.tell(names, new, forgotten=(old,)))
        seen.append(reader.tell(names))
        seen.append(produced(wire, old))
        return seen

    both(scenario)


def test_a_session_goes_on_as_it_began(both: Callable[[Scenario], None]) -> None:
    def scenario(wire: Wire) -> object:
        topic_id = made(wire, new_name())
        reader = Reader(wire)
        reader.tell({topic_id: "ours"}, topic_id)
        request = FetchRequest(
            max_wait_ms=0, max_bytes=1 << 20, session_id=reader.session, session_epoch=reader.epoch, topics=[]
        )
        return wire.ask(request, 12).error_code

    both(scenario)


def test_who_says_to_be_a_follower_is_refused(ours: EmbeddedKafka) -> None:
    with Wire(ours.bootstrap_servers) as wire:
        request = FetchRequest(
            max_wait_ms=0, session_epoch=-1, topics=[], replica_state=ReplicaState(replica_id=1)
        )
        assert wire.ask(request, NEWEST_FETCH).error_code == 31


def test_an_old_leader_epoch_is_answered_with_the_leaders_address(ours: EmbeddedKafka) -> None:
    ours.restart()  # a new epoch for what is there
    with Wire(ours.bootstrap_servers) as wire:
        topic_id = made(wire, new_name())
    ours.restart()
    with Wire(ours.bootstrap_servers) as wire:
        part = FetchPartition(partition=0, partition_max_bytes=1, current_leader_epoch=0)
        request = FetchRequest(
            max_wait_ms=0, session_epoch=-1, topics=[FetchTopic(topic_id=topic_id, partitions=[part])]
        )
        answer = wire.ask(request, NEWEST_FETCH)
        told = answer.responses[0].partitions[0]
        assert told.error_code == 74
        assert told.current_leader.leader_id == answer.node_endpoints[0].node_id
        assert told.current_leader.leader_epoch > 0
        host, port = answer.node_endpoints[0].host, answer.node_endpoints[0].port
        assert f"{host}:{port}" == ours.bootstrap_servers


def commit(wire: Wire, group: str, topic_id: Uuid, version: int = NEWEST_OFFSETS, **fields: Any) -> list[int]:
    parts = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="m")]
    topic = OffsetCommitRequestTopic(name=fields.pop("name", ""), topic_id=topic_id, partitions=parts)
    answer = wire.ask(OffsetCommitRequest(group_id=group, topics=[topic], **fields), version)
    return [part.error_code for topic in answer.topics for part in topic.partitions]


def committed(wire: Wire, group: str, names: dict[Uuid, str], *asked: Uuid) -> object:
    """The answer for some topics, or for all."""
    wanted = [OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in asked]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=wanted or None)])
    answer = wire.ask(request, NEWEST_OFFSETS).groups[0]
    return answer.error_code, [
        (names[topic.topic_id], part.error_code, part.committed_offset, part.metadata)
        for topic in answer.topics
        for part in topic.partitions
    ]


def test_offsets_are_committed_and_fetched_by_topic_id(both: Callable[[Scenario], None]) -> None:
    def scenario(wire: Wire) -> object:
        group = new_name()
        wait_until(
            lambda: (
                wire.ask(FindCoordinatorRequest(coordinator_keys=[group]), 6).coordinators[0].error_code == 0
            ),
            60,
            "the coordinator",
        )
        topic_id = made(wire, new_name())
        wait_until(lambda: commit(wire, group, topic_id) == [0], 60, "the first commit")
        names = {topic_id: "ours", NOBODYS: "nobody's"}
        return (
            commit(wire, group, NOBODYS),
            committed(wire, group, names, topic_id, NOBODYS),
            committed(wire, group, names),
            committed(wire, new_name(), names, topic_id),
        )

    both(scenario)


@pytest.mark.parametrize("version", [8, 9, 10])
def test_a_commit_by_a_group_that_is_not_there(both: Callable[[Scenario], None], version: int) -> None:
    def scenario(wire: Wire) -> object:
        name = new_name()
        topic_id = made(wire, name)
        fields = {"member_id": "m", "generation_id_or_member_epoch": 3, "name": name}
        codes: list[int] = []

        def answered() -> bool:
            codes[:] = commit(wire, new_name(), topic_id, version, **fields)
            return codes not in ([14], [15], [16])

        wait_until(answered, 60, "the coordinator")
        return codes

    both(scenario)


@pytest.mark.parametrize("version", [5, 6])
def test_a_group_that_is_not_there_is_described(both: Callable[[Scenario], None], version: int) -> None:
    def scenario(wire: Wire) -> object:
        group: list[Any] = []

        def answered() -> bool:
            group[:] = wire.ask(DescribeGroupsRequest(groups=["nobody"]), version).groups
            return group[0].error_code not in {14, 15, 16}

        wait_until(answered, 60, "the coordinator")
        return [(each.error_code, each.error_message, each.group_state) for each in group]

    both(scenario)


@pytest.mark.parametrize(
    ("version", "timestamp"),
    [(7, -3), (7, -4), (8, -4), (8, -5), (9, -5), (11, -5), (10, -6), (11, -6), (11, -7)],
)
def test_offsets_of_special_times(both: Callable[[Scenario], None], version: int, timestamp: int) -> None:
    def scenario(wire: Wire) -> object:
        name = new_name()
        produced(wire, made(wire, name))
        wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=wanted)])
        part = wire.ask(request, version).topics[0].partitions[0]
        return part.error_code, part.offset, part.leader_epoch

    both(scenario)


@pytest.mark.parametrize(("version", "kind"), [(1, 1), (1, 2), (2, 3), (2, 1)])
def test_the_cluster_is_described_to_who_asks_for_brokers(
    both: Callable[[Scenario], None], version: int, kind: int
) -> None:
    def scenario(wire: Wire) -> object:
        request = DescribeClusterRequest(endpoint_type=kind, include_fenced_brokers=version >= 2)
        answer = wire.ask(request, version)
        return answer.error_code, answer.endpoint_type, len(answer.brokers)

    both(scenario)


def pages(wire: Wire, limit: int, asked: list[str], cursor: tuple[str, int] | None) -> object:
    """The topics with their codes, operations and partitions, and where the next page begins."""
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in asked],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    answer = wire.ask(request, 0)
    following = answer.next_cursor
    return [
        (
            topic.name,
            topic.error_code,
            topic.is_internal,
            topic.topic_authorized_operations,
            [
                (
                    part.partition_index,
                    part.error_code,
                    len(part.replica_nodes),
                    part.eligible_leader_replicas,
                )
                for part in topic.partitions
            ],
        )
        for topic in answer.topics
    ], following and (following.topic_name, following.partition_index)


def test_partitions_are_described_page_by_page(both: Callable[[Scenario], None]) -> None:
    prefix = new_name()
    first, second, third, missing = (f"{prefix}-{letter}" for letter in "abcd")

    def scenario(wire: Wire) -> object:
        for name, partitions in ((first, 3), (second, 1), (third, 2)):
            made(wire, name, partitions)
        names = [third, first, second, missing, "not/legal"]
        return [
            pages(wire, 100, names, None),
            pages(wire, 2, [first, second, third], None),
            pages(wire, 3, [first, second, third], None),
            pages(wire, 2, [first, second, third], (first, 2)),
            pages(wire, 2, [first, second, third], (second, 0)),
            pages(wire, 2, [first, second], (third, 0)),
            pages(wire, 2, [first, missing, third], (missing, 1)),
        ]

    both(scenario)
