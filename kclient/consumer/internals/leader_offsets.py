"""LeaderOffsets: what only the leaders of partitions know of their logs' offsets, asked for and read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import attrs

from kclient.client.request_sender import Reply, RequestSender
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.fetch_position import FetchPosition
from kclient.consumer.internals.metadata import ConsumerMetadata
from kclient.errors import Errors, KafkaError, LeaderNotAvailableError, TopicAuthorizationError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import list_offsets, offset_for_leader_epoch

_CONSUMER_REPLICA: Final = -1
_NO_OFFSET: Final = -1

_ASK_AGAIN = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.REPLICA_NOT_AVAILABLE,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.OFFSET_NOT_AVAILABLE,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.FENCED_LEADER_EPOCH,
        Errors.UNKNOWN_LEADER_EPOCH,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


@attrs.frozen
class Answer:
    """A broker's answer for one partition. Immutable."""

    offset: int = _NO_OFFSET
    timestamp_ms: int = -1
    leader_epoch: int | None = None
    error: KafkaError | None = None


OnAnswers: TypeAlias = Callable[[Mapping[TopicPartition, Answer]], None]


@attrs.define(eq=False, repr=False)
class LeaderOffsets:
    """Sends ListOffsets and OffsetForLeaderEpoch to leaders; asks for new metadata where these have changed.

    Belongs to the I/O thread.
    """

    _sender: RequestSender
    _metadata: ConsumerMetadata
    _read_committed: bool
    _timeout_ms: int

    def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[Node, list[TopicPartition]], list[TopicPartition]]:
        """The partitions of each leader, and those without one."""
        by_leader: dict[Node, list[TopicPartition]] = {}
        leaderless = []
        for tp in partitions:
            leader = self._metadata.leader_and_epoch(tp).leader
            if leader is None:
                leaderless.append(tp)
            else:
                by_leader.setdefault(leader, []).append(tp)
        if leaderless:
            self._metadata.request_update()
        return by_leader, leaderless

    def connection_failure(self) -> KafkaError | None:
        """The reason why the broker cannot be reached that failed last, None if it can."""
        return self._sender.client.connection_failure()

    def can_validate(self, node: Node | None) -> bool:
        """Return True if a leader's epochs can be asked for: before version 3 it took cluster permissions."""
        if node is None:
            return False
        versions = self._sender.client.api_versions(node.id)
        if versions is None:
            return True  # found out when the request is sent
        known = versions.range_of(ApiKeys.OFFSET_FOR_LEADER_EPOCH)
        return known is not None and known[1] >= 3

    # Offsets by time, and the ends of logs.

    def find_offsets(self, wanted: Mapping[TopicPartition, int], on_answers: OnAnswers, now_ms: int) -> None:
        """Ask for offsets by time or by the codes of the ends.

        `on_answers` is called in parts, until every partition was in one.
        """
        leaders, leaderless = self.by_leader(wanted)
        if leaderless:
            error = LeaderNotAvailableError("the leader is not known")
            on_answers(dict.fromkeys(leaderless, Answer(error=error)))
        for node, partitions in leaders.items():
            self._send_list_offsets(node, {tp: wanted[tp] for tp in partitions}, on_answers, now_ms)

    def _send_list_offsets(
        self,
        node: Node,
        wanted: Mapping[TopicPartition, int],
        on_answers: OnAnswers,
        now_ms: int,
    ) -> None:
        topics: dict[str, list_offsets.ListOffsetsTopic] = {}
        for tp, timestamp in wanted.items():
            topic = topics.get(tp.topic)
            if topic is None:
                topic = topics[tp.topic] = list_offsets.ListOffsetsTopic(name=tp.topic)
            epoch = self._metadata.leader_and_epoch(tp).epoch
            topic.partitions.append(
                list_offsets.ListOffsetsPartition(
                    partition_index=tp.partition,
                    current_leader_epoch=-1 if epoch is None else epoch,
                    timestamp=timestamp,
                )
            )

        def build(version: int) -> list_offsets.ListOffsetsRequest:
            return list_offsets.ListOffsetsRequest(
                replica_id=_CONSUMER_REPLICA,
                isolation_level=int(self._read_committed and version >= 2),
                topics=list(topics.values()),
                timeout_ms=self._timeout_ms,
            )

        def on_reply(reply: Reply) -> None:
            answers: dict[TopicPartition, Answer] = {}
            if reply.error is not None:
                self._metadata.request_update()
            else:
                answers = self._read_answers(reply.message)
            error = reply.error or KafkaError(f"Broker {node} left partitions out of its ListOffsets answer")
            on_answers({tp: answers.get(tp) or Answer(error=error) for tp in wanted})

        self._sender.send(node, ApiKeys.LIST_OFFSETS, build, on_reply, now_ms)

    def _read_answers(self, response: list_offsets.ListOffsetsResponse) -> dict[TopicPartition, Answer]:
        answers = {}
        for topic in response.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                code = partition.error_code
                if code:
                    answers[tp] = Answer(error=self._partition_error(tp, code))
                    continue
                epoch = partition.leader_epoch
                answers[tp] = Answer(partition.offset, partition.timestamp, None if epoch < 0 else epoch)
        return answers

    # Ends of epochs (KIP-320).

    def find_epoch_ends(
        self,
        node: Node,
        positions: Mapping[TopicPartition, FetchPosition],
        on_answers: OnAnswers,
        now_ms: int,
    ) -> None:
        """Ask `node` where the epochs of positions end; what it leaves out is not in the answers."""
        topics: dict[str, offset_for_leader_epoch.OffsetForLeaderTopic] = {}
        for tp, position in positions.items():
            topic = topics.get(tp.topic)
            if topic is None:
                topic = topics[tp.topic] = offset_for_leader_epoch.OffsetForLeaderTopic(topic=tp.topic)
            current = position.leader.epoch
            topic.partitions.append(
                offset_for_leader_epoch.OffsetForLeaderPartition(
                    partition=tp.partition,
                    current_leader_epoch=-1 if current is None else current,
                    leader_epoch=-1 if position.offset_epoch is None else position.offset_epoch,
                )
            )
        request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER_REPLICA, topics=list(topics.values())
        )

        def on_reply(reply: Reply) -> None:
            if reply.error is not None:
                self._metadata.request_update()
                on_answers(dict.fromkeys(positions, Answer(error=reply.error)))
            else:
                on_answers(self._read_epochs(reply.message))

        self._sender.send(node, ApiKeys.OFFSET_FOR_LEADER_EPOCH, lambda _version: request, on_reply, now_ms)

    def _read_epochs(
        self, response: offset_for_leader_epoch.OffsetForLeaderEpochResponse
    ) -> dict[TopicPartition, Answer]:
        answers = {}
        for topic in response.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.topic, partition.partition)
                if partition.error_code:
                    answers[tp] = Answer(error=self._partition_error(tp, partition.error_code))
                else:
                    epoch = partition.leader_epoch
                    answers[tp] = Answer(partition.end_offset, -1, None if epoch < 0 else epoch)
        return answers

    # Common.

    def _partition_error(self, tp: TopicPartition, code: int) -> KafkaError:
        if code == Errors.TOPIC_AUTHORIZATION_FAILED:
            return TopicAuthorizationError(f"Not authorized to read topic {tp.topic!r}")
        if code in _ASK_AGAIN:
            self._metadata.request_update()
        error = Errors.for_code(code, f"{tp}: {Errors.name_of(code)}")
        assert error is not None
        return error
