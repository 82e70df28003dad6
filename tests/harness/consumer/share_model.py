"""A share consumer without threads, sockets or a real clock, against a broker that locks records for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import attrs

from harness.consumer.fetched_batches import batch
from harness.consumer.model import ConsumerModel
from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.share.assembly import build_share_consumer
from kclient.consumer.kafka_share_consumer import KafkaShareConsumer
from kclient.consumer.share_config import ShareConsumerConfig
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import share_acknowledge, share_fetch, share_group_heartbeat

LOCK_MS = 30_000


@attrs.define
class _Partition:
    """A share partition: how often each offset was delivered, which are locked, and which are through."""

    data: dict[int, bytes] = attrs.field(factory=dict)
    """Batches by their first offset."""
    end: int = 0
    counts: dict[int, int] = attrs.field(factory=dict)
    locked: set[int] = attrs.field(factory=set)
    archived: set[int] = attrs.field(factory=set)
    accepted: set[int] = attrs.field(factory=set)


class ShareModel(ConsumerModel):
    """One share consumer, one broker with topics `t` and `u` of two partitions, and a group of this member alone.

    `said` has every acknowledgement as (partition, offset, type). Fetches are answered at once, also without records.
    """

    consumer: KafkaShareConsumer[bytes, bytes]

    def __init__(self, **settings: object) -> None:
        super().__init__(group_id="g", **settings)
        self.shares: defaultdict[TopicPartition, _Partition] = defaultdict(_Partition)
        self.sessions: dict[int, int] = {}  # node id -> epoch of the next request
        self.said: list[tuple[TopicPartition, int, int]] = []
        self.member_epoch = 0
        self.acknowledge_error: dict[TopicPartition, int] = {}
        self.fetch_error: dict[TopicPartition, int] = {}
        self.assigned: list[TopicPartition] | None = None
        self._node_id = 0
        self.handlers |= {
            ApiKeys.SHARE_GROUP_HEARTBEAT: self.share_heartbeat,
            ApiKeys.SHARE_FETCH: self.share_fetch,
            ApiKeys.SHARE_ACKNOWLEDGE: self.share_acknowledge,
        }

    def build(self, settings: dict[str, object]) -> tuple[Any, Any]:
        config = ShareConsumerConfig.parse(None, settings)
        core = build_share_consumer(config, time=self.time, client=self.client, start=False)
        consumer: KafkaShareConsumer[bytes, bytes] = KafkaShareConsumer.__new__(KafkaShareConsumer)
        consumer._begin(core)
        return core, consumer

    def answer_one(self, sent: Any) -> None:
        self._node_id = sent.request.node_id
        super().answer_one(sent)

    def fill(self, tp: TopicPartition, count: int, start: int = 0) -> None:
        """Write a batch of records whose values are their offsets."""
        share = self.shares[tp]
        self.write(tp, batch(share.end, count), count)

    def write(self, tp: TopicPartition, data: bytes, count: int) -> None:
        """Write a batch as it is."""
        share = self.shares[tp]
        share.data[share.end] = data
        share.end += count

    def subscribe(self, *topics: str) -> None:
        """Subscribe and be a member that knows its assignment."""
        self.consumer.subscribe(topics or ("t",))
        for _ in range(100):
            self.consumer.poll(10)
            if self.core.membership.assignment.partitions:
                return
        raise AssertionError("the share consumer got no partitions")

    def poll(self, timeout_ms: int = 1000) -> list[Any]:
        return list(self.consumer.poll(timeout_ms))

    def tip(self, tp: TopicPartition) -> TopicIdPartition:
        return TopicIdPartition(self.topic_ids[tp.topic], tp.topic, tp.partition)

    def tp_of(self, topic_id: Any, partition: int) -> TopicPartition:
        names = {each: name for name, each in self.topic_ids.items()}
        return TopicPartition(names[topic_id], partition)

    def unlock(self, tp: TopicPartition) -> None:
        """All locks of a partition have run out."""
        self.shares[tp].locked.clear()

    # The broker.

    def share_heartbeat(self, request: Any, version: int) -> Any:
        response = share_group_heartbeat.ShareGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=1000
        )
        if request.member_epoch == -1:
            return response
        if request.subscribed_topic_names is not None:
            self.member_epoch += 1
            wanted = self.assigned
            if wanted is None:
                wanted = [
                    TopicPartition(name, number)
                    for name in request.subscribed_topic_names
                    for number in range(self.topics.get(name, 0))
                ]
            response.assignment = self.assignment(wanted)
        response.member_epoch = self.member_epoch
        return response

    def assignment(self, partitions: Iterable[TopicPartition]) -> share_group_heartbeat.Assignment:
        by_topic: defaultdict[str, list[int]] = defaultdict(list)
        for tp in partitions:
            by_topic[tp.topic].append(tp.partition)
        return share_group_heartbeat.Assignment(
            topic_partitions=[
                share_group_heartbeat.TopicPartitions(topic_id=self.topic_ids[name], partitions=numbers)
                for name, numbers in by_topic.items()
            ]
        )

    def _session_error(self, epoch: int) -> int:
        expected = self.sessions.get(self._node_id, 0)
        if epoch == 0:
            self.sessions[self._node_id] = 1
        elif not expected:
            return Errors.SHARE_SESSION_NOT_FOUND
        elif epoch == -1:
            del self.sessions[self._node_id]
            for share in self.shares.values():
                share.locked.clear()
        elif epoch != expected:
            return Errors.INVALID_SHARE_SESSION_EPOCH
        else:
            self.sessions[self._node_id] += 1
        return Errors.NONE

    def _acknowledge(self, tp: TopicPartition, batches: Any) -> int:
        share = self.shares[tp]
        code = self.acknowledge_error.get(tp, 0)
        for each in batches:
            types = each.acknowledge_types
            for offset in range(each.first_offset, each.last_offset + 1):
                type_ = types[0] if len(types) == 1 else types[offset - each.first_offset]
                self.said.append((tp, offset, type_))
                if code:
                    continue
                if offset not in share.locked:
                    code = Errors.INVALID_RECORD_STATE
                    continue
                if type_ == 4:
                    continue
                share.locked.discard(offset)
                if type_ != 2:
                    share.archived.add(offset)
                if type_ == 1:
                    share.accepted.add(offset)
        return code

    def share_fetch(self, request: Any, version: int) -> Any:
        response = share_fetch.ShareFetchResponse(acquisition_lock_timeout_ms=LOCK_MS)
        response.error_code = self._session_error(request.share_session_epoch)
        if response.error_code:
            return response
        topics: dict[Any, Any] = {}
        said = {
            (topic.topic_id, p.partition_index): p.acknowledgement_batches
            for topic in request.topics
            for p in topic.partitions
            if p.acknowledgement_batches
        }
        room = request.max_records
        for topic_id, number in sorted({*said, *self._session_partitions(request)}):
            tp = self.tp_of(topic_id, number)
            data = share_fetch.PartitionData(partition_index=number, records=b"")
            if (topic_id, number) in said:
                data.acknowledge_error_code = self._acknowledge(tp, said[topic_id, number])
            data.error_code = self.fetch_error.get(tp, 0)
            if not data.error_code:
                room -= self._acquire(tp, data, room)
            if data.error_code or data.acquired_records or (topic_id, number) in said:
                topic = topics.setdefault(
                    topic_id, share_fetch.ShareFetchableTopicResponse(topic_id=topic_id)
                )
                topic.partitions.append(data)
        response.responses = list(topics.values())
        return response

    def _session_partitions(self, request: Any) -> set[tuple[Any, int]]:
        known: set[tuple[Any, int]] = self.__dict__.setdefault("_known", set())
        if request.share_session_epoch == 0:
            known.clear()
        known |= {(topic.topic_id, p.partition_index) for topic in request.topics for p in topic.partitions}
        known -= {
            (topic.topic_id, number) for topic in request.forgotten_topics_data for number in topic.partitions
        }
        return known

    def _acquire(self, tp: TopicPartition, data: Any, room: int) -> int:
        share = self.shares[tp]
        free = [
            offset
            for offset in range(share.end)
            if offset not in share.locked and offset not in share.archived
        ][: max(room, 0)]
        if not free:
            return 0
        share.locked |= set(free)
        for offset in free:
            share.counts[offset] = share.counts.get(offset, 0) + 1
            count = share.counts[offset]
            last = data.acquired_records[-1] if data.acquired_records else None
            if last is not None and last.last_offset == offset - 1 and last.delivery_count == count:
                last.last_offset = offset
            else:
                data.acquired_records.append(
                    share_fetch.AcquiredRecords(first_offset=offset, last_offset=offset, delivery_count=count)
                )
        starts = sorted(share.data)
        first = max(start for start in starts if start <= free[0])
        data.records = b"".join(share.data[start] for start in starts if first <= start <= free[-1])
        return len(free)

    def share_acknowledge(self, request: Any, version: int) -> Any:
        response = share_acknowledge.ShareAcknowledgeResponse(acquisition_lock_timeout_ms=LOCK_MS)
        final = request.share_session_epoch == -1
        if not final:
            response.error_code = self._session_error(request.share_session_epoch)
        if response.error_code:
            return response
        for topic in request.topics:
            answered = share_acknowledge.ShareAcknowledgeTopicResponse(topic_id=topic.topic_id)
            for p in topic.partitions:
                tp = self.tp_of(topic.topic_id, p.partition_index)
                answered.partitions.append(
                    share_acknowledge.PartitionData(
                        partition_index=p.partition_index,
                        error_code=self._acknowledge(tp, p.acknowledgement_batches),
                    )
                )
            response.responses.append(answered)
        if final:
            response.error_code = self._session_error(-1)
        return response
