"""A consumer without threads, sockets or a real clock: waits are rounds of its I/O loop against scripted brokers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from harness.mock_client import MockClient, SentRequest
from harness.mock_time import MockTime
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.internals.assembly import build_consumer
from kclient.consumer.internals.requests import Request
from kclient.consumer.kafka_consumer import KafkaConsumer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import (
    fetch,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_offsets,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    sync_group,
)
from kclient.record import MemoryRecordsBuilder

NO_ANSWER = None
"""Returned by a handler to leave a request waiting."""


class PumpTime(MockTime):
    """A clock whose waits run the consumer's I/O loop, each round taking `round_ms`."""

    def __init__(self) -> None:
        super().__init__()
        self.round_ms = 10
        self.pump: Callable[[], None] = lambda: None

    def wait_for_lock(self, lock: threading.Lock, timeout_ms: int) -> bool:
        deadline_ms = self.monotonic_ms() + timeout_ms
        while not (acquired := lock.acquire(blocking=False)) and self.monotonic_ms() < deadline_ms:
            self.pump()
            if lock.locked():
                self.advance(min(self.round_ms, max(deadline_ms - self.monotonic_ms(), 0)))
        return acquired


class ConsumerModel:
    """One consumer, one broker with topics `t` and `u` of two partitions, and a group coordinator for it alone.

    `logs` holds the records (values) of each partition, `committed` the group's offsets. `on` replaces a handler by
    one that gets (request, version) and returns the response, NO_ANSWER or an exception for a broken connection.
    """

    def __init__(self, **settings: object) -> None:
        self.time = PumpTime()
        self.client = MockClient(self.time)
        self.core, self.consumer = self.build({"bootstrap_servers": "mock:9092", **settings})
        self.network = self.core.network
        self.topics = {"t": 2, "u": 2}
        self.topic_ids = {"t": Uuid(b"t" * 16), "u": Uuid(b"u" * 16)}
        self.nodes = {0: Node(0, "mock", 9092)}
        self.leaders: dict[TopicPartition, tuple[int, int]] = {}
        self.logs: dict[TopicPartition, list[bytes]] = {}
        self.log_starts: dict[TopicPartition, int] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.generation = 0
        self.metadata_held = False
        self.members: list[join_group.JoinGroupResponseMember] = []
        self.handlers: dict[ApiKeys, Callable[[Any, int], Any]] = {
            ApiKeys.FIND_COORDINATOR: self.find_coordinator,
            ApiKeys.JOIN_GROUP: self.join_group,
            ApiKeys.SYNC_GROUP: self.sync_group,
            ApiKeys.HEARTBEAT: lambda _request, _version: heartbeat.HeartbeatResponse(),
            ApiKeys.LEAVE_GROUP: lambda _request, _version: leave_group.LeaveGroupResponse(),
            ApiKeys.OFFSET_COMMIT: self.offset_commit,
            ApiKeys.OFFSET_FETCH: self.offset_fetch,
            ApiKeys.LIST_OFFSETS: self.list_offsets,
            ApiKeys.FETCH: self.fetch,
            ApiKeys.METADATA: lambda request, _version: self.metadata_response(request.topics),
            ApiKeys.OFFSET_FOR_LEADER_EPOCH: self.leader_epochs,
        }
        self.client._metadata = self.core.metadata
        self.core.metadata.bootstrap([("mock", 9092)])
        self.time.pump = self.pump
        self._submit = self.network.submit
        self.network.submit = self.submit  # type: ignore[method-assign]
        self.network.close = self.close_network  # type: ignore[method-assign]
        self.network.join = lambda timeout_ms: None  # type: ignore[method-assign]

    def build(self, settings: dict[str, object]) -> tuple[Any, Any]:
        """The core and the consumer of the model."""
        config = ConsumerConfig.parse(None, {"auto_offset_reset": "earliest", **settings})
        core = build_consumer(config, time=self.time, client=self.client, start=False)
        consumer: KafkaConsumer[bytes, bytes] = KafkaConsumer.__new__(KafkaConsumer)
        consumer._begin(core)
        return core, consumer

    # The loop.

    def submit(self, task: Callable[[int], object], request: Request[Any] | None = None) -> None:
        """Carry a request out to its end, as far as rounds of the loop can."""
        self._submit(task, request)
        for _ in range(2000):
            self.pump()
            if request is None or request.done():
                return
            if getattr(request, "retry", True) is False or self.time.monotonic_ms() > request.deadline_ms:
                return
            self.time.advance(self.time.round_ms)

    def close_network(self, timeout_ms: int = 0) -> None:
        self.pump()
        self.network._end()

    def pump(self) -> None:
        """One round of the I/O loop, answering what it sent before and after."""
        self.answer()
        self.network.run_once()
        self.answer()

    def rounds(self, count: int = 10) -> None:
        for _ in range(count):
            self.pump()
            self.time.advance(self.time.round_ms)

    def answer(self) -> None:
        wanted_now = self.core.metadata.update_requested and not self.metadata_held
        if wanted_now and not self.client._metadata_updates:
            topics = self.core.metadata.topics_to_request()
            wanted = None if topics is None else [metadata.MetadataRequestTopic(name=name) for name in topics]
            self.client.prepare_metadata_update(self.metadata_response(wanted))
        for sent in list(self.client.requests):
            if (
                sent in self.client.requests
            ):  # not if a connection that broke for another one has taken it along
                self.answer_one(sent)

    def answer_one(self, sent: SentRequest) -> None:
        handler = self.handlers.get(sent.request.api_key)
        if handler is None:
            return
        response = handler(sent.message, sent.version)
        if response is NO_ANSWER:
            return

        def is_it(message: Any) -> bool:
            return message is sent.message

        if isinstance(response, Exception):
            self.client.respond(None, matcher=is_it, disconnected=True)
        else:
            self.client.respond(response, matcher=is_it)

    def on(self, api: ApiKeys, *replies: Any) -> None:
        """Answer the next requests with `replies` (responses, functions of the request), then as before."""
        usual, waiting = self.handlers[api], list(replies)

        def handler(request: Any, version: int) -> Any:
            if not waiting:
                return usual(request, version)
            reply = waiting.pop(0)
            return reply(request, version) if callable(reply) else reply

        self.handlers[api] = handler

    def sent(self, api: ApiKeys) -> list[Any]:
        """All requests of one kind, oldest first."""
        return [each.message for each in self.client.sent if each.request.api_key is api]

    def join(self, topics: tuple[str, ...] = ("t",), listener: Any = None) -> list[Any]:
        """Subscribe and poll until the partitions are there; returns the records that came with them."""
        self.consumer.subscribe(topics, listener)
        for _ in range(100):
            records = self.consumer.poll(10)
            if self.consumer.assignment():
                return list(records)
        raise AssertionError("the consumer got no partitions")

    # The broker.

    def fill(self, tp: TopicPartition, count: int, start: int = 0) -> None:
        self.logs[tp] = [b"%d" % number for number in range(start + count)]
        self.log_starts[tp] = start

    def metadata_response(self, topics: Any) -> metadata.MetadataResponse:
        names = list(self.topics) if topics is None else [topic.name for topic in topics]
        return metadata.MetadataResponse(
            cluster_id="mock",
            controller_id=0,
            brokers=[
                metadata.MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port)
                for node in self.nodes.values()
            ],
            topics=[self.topic_metadata(name) for name in names],
        )

    def topic_metadata(self, name: str) -> metadata.MetadataResponseTopic:
        if name not in self.topics:
            return metadata.MetadataResponseTopic(name=name, error_code=3)
        partitions = []
        for number in range(self.topics[name]):
            leader, epoch = self.leaders.get(TopicPartition(name, number), (0, 5))
            partitions.append(
                metadata.MetadataResponsePartition(
                    partition_index=number,
                    leader_id=leader,
                    leader_epoch=epoch,
                    replica_nodes=list(self.nodes),
                    isr_nodes=list(self.nodes),
                )
            )
        return metadata.MetadataResponseTopic(name=name, topic_id=self.topic_ids[name], partitions=partitions)

    def find_coordinator(self, request: Any, version: int) -> Any:
        key = request.coordinator_keys[0]
        return find_coordinator.FindCoordinatorResponse(
            coordinators=[find_coordinator.Coordinator(key=key, node_id=0, host="mock", port=9092)]
        )

    def join_group(self, request: Any, version: int) -> Any:
        if not request.member_id:
            return join_group.JoinGroupResponse(error_code=79, member_id="m-1")
        self.generation += 1
        me = join_group.JoinGroupResponseMember(
            member_id=request.member_id, metadata=request.protocols[0].metadata
        )
        return join_group.JoinGroupResponse(
            generation_id=self.generation,
            protocol_name=request.protocols[0].name,
            leader=request.member_id,
            member_id=request.member_id,
            members=[me, *self.members],
        )

    def sync_group(self, request: Any, version: int) -> Any:
        mine = [each.assignment for each in request.assignments if each.member_id == request.member_id]
        return sync_group.SyncGroupResponse(assignment=mine[0])

    def offset_commit(self, request: Any, version: int) -> Any:
        topics = []
        for topic in request.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                self.committed[tp] = partition.committed_offset
            topics.append(self.commit_result(topic, 0))
        return offset_commit.OffsetCommitResponse(topics=topics)

    def commit_result(self, topic: Any, code: int) -> Any:
        return offset_commit.OffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                offset_commit.OffsetCommitResponsePartition(
                    partition_index=p.partition_index, error_code=code
                )
                for p in topic.partitions
            ],
        )

    def refuse_commit(self, code: int) -> Callable[[Any, int], Any]:
        def handler(request: Any, version: int) -> Any:
            topics = [self.commit_result(topic, code) for topic in request.topics]
            return offset_commit.OffsetCommitResponse(topics=topics)

        return handler

    def offset_fetch(self, request: Any, version: int) -> Any:
        topics = []
        for topic in request.groups[0].topics:
            partitions = [
                offset_fetch.OffsetFetchResponsePartitions(
                    partition_index=number,
                    committed_offset=self.committed.get(TopicPartition(topic.name, number), -1),
                )
                for number in topic.partition_indexes
            ]
            topics.append(offset_fetch.OffsetFetchResponseTopics(name=topic.name, partitions=partitions))
        group = offset_fetch.OffsetFetchResponseGroup(group_id=request.groups[0].group_id, topics=topics)
        return offset_fetch.OffsetFetchResponse(groups=[group])

    def list_offsets(self, request: Any, version: int) -> Any:
        topics = []
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                end = len(self.logs.get(tp, ()))
                offset = self.log_starts.get(tp, 0) if partition.timestamp == -2 else end
                partitions.append(
                    list_offsets.ListOffsetsPartitionResponse(
                        partition_index=tp.partition, offset=offset, leader_epoch=5
                    )
                )
            topics.append(list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return list_offsets.ListOffsetsResponse(topics=topics)

    def leader_epochs(self, request: Any, version: int) -> Any:
        topics = []
        for topic in request.topics:
            partitions = [
                offset_for_leader_epoch.EpochEndOffset(
                    partition=p.partition,
                    leader_epoch=p.leader_epoch,
                    end_offset=len(self.logs.get(TopicPartition(topic.topic, p.partition), ())),
                )
                for p in topic.partitions
            ]
            topics.append(
                offset_for_leader_epoch.OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions)
            )
        return offset_for_leader_epoch.OffsetForLeaderEpochResponse(topics=topics)

    def fetch(self, request: Any, version: int) -> Any:
        """A broker without sessions: at most 5 records of every partition that is asked for."""
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        topics, found = [], False
        for topic in request.topics:
            name = topic.topic or names.get(topic.topic_id, "")
            partitions = []
            for asked in topic.partitions:
                tp = TopicPartition(name, asked.partition)
                if name:
                    data = self.partition_data(tp, asked.fetch_offset)
                else:
                    data = fetch.PartitionData(partition_index=asked.partition, error_code=100)
                found = found or bool(data.records or data.error_code or data.preferred_read_replica >= 0)
                partitions.append(data)
            topics.append(
                fetch.FetchableTopicResponse(
                    topic="" if version >= 13 else name,
                    topic_id=topic.topic_id,
                    partitions=partitions,
                )
            )
        due = found or self.time.monotonic_ms() >= self.fetch_deadline_ms(request)
        return fetch.FetchResponse(responses=topics) if due else NO_ANSWER

    def fetch_deadline_ms(self, request: Any) -> int:
        sent = next(each for each in self.client.requests if each.message is request)
        return sent.sent_ms + int(request.max_wait_ms)

    def partition_data(self, tp: TopicPartition, offset: int) -> Any:
        log = self.logs.get(tp, [])
        start = self.log_starts.get(tp, 0)
        if not start <= offset <= len(log):
            return fetch.PartitionData(partition_index=tp.partition, error_code=1)
        return fetch.PartitionData(
            partition_index=tp.partition,
            high_watermark=len(log),
            last_stable_offset=len(log),
            log_start_offset=start,
            records=batch(offset, log[offset : offset + 5]),
        )


def batch(base_offset: int, values: list[bytes], **settings: Any) -> bytes:
    """A batch of `values`, b'' for none."""
    if not values:
        return b""
    builder = MemoryRecordsBuilder(base_offset=base_offset, **{"partition_leader_epoch": 5, **settings})
    for value in values:
        builder.append(1_700_000_000_000, None, value)
    return builder.close()
