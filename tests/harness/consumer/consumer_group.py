"""A coordinator of the consumer protocol (KIP-848) for one member, with Kafka's rules for epochs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.consumer.model import ConsumerModel
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.coordinator.consumer_member_state import ConsumerMemberState
from kclient.consumer.internals.coordinator.consumer_membership import ConsumerMembership
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import consumer_group_heartbeat as protocol

Partitions = frozenset[tuple[Uuid, int]]


class Told(ConsumerRebalanceListener):
    """Writes down what it hears, and does what a test wants of it."""

    def __init__(
        self, revoked: Callable[[], Any] = lambda: None, assigned: Callable[[], Any] = lambda: None
    ) -> None:
        self.calls: list[tuple[str, list[TopicPartition]]] = []
        self.revoked = revoked
        self.assigned = assigned

    def on_partitions_assigned(self, partitions: Any) -> None:
        self.calls.append(("assigned", sorted(partitions)))
        self.assigned()

    def on_partitions_revoked(self, partitions: Any) -> None:
        self.calls.append(("revoked", sorted(partitions)))
        self.revoked()

    def on_partitions_lost(self, partitions: Any) -> None:
        self.calls.append(("lost", sorted(partitions)))


class ConsumerGroupModel:
    """Answers the heartbeats of a `ConsumerModel`'s consumer.

    `wanted` is what the member shall have; None is all partitions of the topics that it is subscribed to. A member
    that has something else first gives up what it must, and has the new epoch and the rest once it acknowledged that.
    """

    def __init__(self, rig: ConsumerModel) -> None:
        self.rig = rig
        self.wanted: frozenset[TopicPartition] | None = None
        self.matched: tuple[str, ...] = ()
        """The topics that match any regular expression."""
        self.interval_ms = 1000
        self.epoch = 0
        """The epoch of the group."""
        self.member_id: str | None = None
        self.member_epoch = 0
        self.acknowledged: Partitions = frozenset()
        """The partitions that the member says it has."""
        self.left: list[int] = []
        """The epochs with which the member has left."""
        self._previous_epoch = 0
        self._assigned: Partitions = frozenset()
        self._to_be_given_up: Partitions = frozenset()
        self._target: Partitions = frozenset()
        self._topics: tuple[str, ...] = ()
        rig.handlers[ApiKeys.CONSUMER_GROUP_HEARTBEAT] = self.heartbeat

    @property
    def requests(self) -> list[protocol.ConsumerGroupHeartbeatRequest]:
        """All heartbeats, oldest first."""
        return self.rig.sent(ApiKeys.CONSUMER_GROUP_HEARTBEAT)

    # The application's side.

    @property
    def state(self) -> ConsumerMemberState:
        """The state of the member as it sees it."""
        membership = self.rig.core.membership
        assert isinstance(membership, ConsumerMembership)
        return membership.state

    def join(self, topics: Any = ("t",), listener: Any = None) -> list[Any]:
        """Subscribe, and poll until the assignment is acknowledged; returns the records that came with it."""
        self.rig.consumer.subscribe(topics, listener)
        records = self.poll_for(100)
        assert self.state is ConsumerMemberState.STABLE
        return records

    def poll_for(self, ms: int) -> list[Any]:
        """Poll for so long, on the consumer's clock."""
        deadline_ms = self.rig.time.monotonic_ms() + ms
        records: list[Any] = []
        while self.rig.time.monotonic_ms() < deadline_ms:
            records += self.rig.consumer.poll(10)
        return records

    # The coordinator's.

    def want(self, *partitions: TopicPartition) -> None:
        """Have the member get exactly these."""
        self.wanted = frozenset(partitions)

    def remove_member(self) -> None:
        """Forget the member, as if its session had ended."""
        self.member_id = None
        self.epoch += 1

    def refuse(
        self, code: int, message: str | None = None
    ) -> Callable[[Any, int], protocol.ConsumerGroupHeartbeatResponse]:
        """Return an answer for `ConsumerModel.on`."""
        return lambda _request, _version: self._error(code, message)

    def _error(self, code: int, message: str | None = None) -> protocol.ConsumerGroupHeartbeatResponse:
        return protocol.ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)

    def heartbeat(
        self, request: protocol.ConsumerGroupHeartbeatRequest, _version: int
    ) -> protocol.ConsumerGroupHeartbeatResponse:
        if request.member_epoch < 0:
            return self._leave(request)
        joining = request.member_epoch == 0
        owned = self._owned(request)
        if joining:
            subscribed = request.subscribed_topic_names is not None or request.subscribed_topic_regex
            if request.rebalance_timeout_ms < 0 or owned != frozenset() or not subscribed:
                return self._error(Errors.INVALID_REQUEST, "a member that joins has to say everything")
            self.member_id = request.member_id
            self.member_epoch = self._previous_epoch = 0
            self._assigned = self._to_be_given_up = self.acknowledged = frozenset()
        elif request.member_id != self.member_id:
            return self._error(Errors.UNKNOWN_MEMBER_ID)
        elif request.member_epoch != self.member_epoch and not (
            request.member_epoch == self._previous_epoch and (owned is None or owned <= self._assigned)
        ):
            return self._error(Errors.FENCED_MEMBER_EPOCH)
        if owned is not None:
            self.acknowledged = owned
        if request.subscribed_topic_regex:
            self._topics = self.matched
        elif request.subscribed_topic_names is not None:
            self._topics = tuple(request.subscribed_topic_names)
        full = joining or (owned is not None and request.rebalance_timeout_ms >= 0)
        changed = self._reconcile(owned)
        return protocol.ConsumerGroupHeartbeatResponse(
            member_id=self.member_id,
            member_epoch=self.member_epoch,
            heartbeat_interval_ms=self.interval_ms,
            assignment=self._message(self._assigned) if full or changed else None,
        )

    def _leave(
        self, request: protocol.ConsumerGroupHeartbeatRequest
    ) -> protocol.ConsumerGroupHeartbeatResponse:
        if request.member_id != self.member_id:
            return self._error(Errors.UNKNOWN_MEMBER_ID)
        self.left.append(request.member_epoch)
        self.member_id = None
        return protocol.ConsumerGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch
        )

    def _owned(self, request: protocol.ConsumerGroupHeartbeatRequest) -> Partitions | None:
        if request.topic_partitions is None:
            return None
        return frozenset(
            (topic.topic_id, number) for topic in request.topic_partitions for number in topic.partitions
        )

    def _reconcile(self, owned: Partitions | None) -> bool:
        """Move the member towards the target; returns whether its assignment has changed."""
        target = self._ids(self._topics)
        if target != self._target or self.epoch == 0:
            self._target = target
            self.epoch += 1
        if self.member_epoch == self.epoch:
            return False
        if self._to_be_given_up and (owned is None or owned & self._to_be_given_up):
            return False
        before = self._assigned
        self._to_be_given_up = before - target
        if self._to_be_given_up:
            self._assigned &= target
        else:
            self._previous_epoch, self.member_epoch = self.member_epoch, self.epoch
            self._assigned = target
        return self._assigned != before

    def _ids(self, topics: tuple[str, ...]) -> Partitions:
        ids: Mapping[str, Uuid] = self.rig.topic_ids
        if self.wanted is not None:
            return frozenset((ids[tp.topic], tp.partition) for tp in self.wanted if tp.topic in topics)
        return frozenset(
            (ids[topic], number)
            for topic in topics
            if topic in self.rig.topics
            for number in range(self.rig.topics[topic])
        )

    @staticmethod
    def _message(partitions: Partitions) -> protocol.Assignment:
        by_topic: dict[Uuid, list[int]] = {}
        for topic_id, number in sorted(partitions):
            by_topic.setdefault(topic_id, []).append(number)
        return protocol.Assignment(
            topic_partitions=[
                protocol.ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=numbers)
                for topic_id, numbers in by_topic.items()
            ]
        )
