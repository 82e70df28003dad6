"""The requests that a member sends to a coordinator that assigns: only what has changed since the last (KIP-848)."""

from __future__ import annotations

from typing import Final

import attrs

from kclient.consumer.internals.coordinator.target_assignment import NO_ASSIGNMENT, LocalAssignment
from kclient.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_FOR_A_WHILE_EPOCH: Final = -2
"""The epoch of a static member that goes and will find its place again."""


@attrs.frozen(kw_only=True)
class ConsumerMemberSettings:
    """The settings that the member tells the coordinator. Immutable."""

    group_id: str
    group_instance_id: str | None
    rebalance_timeout_ms: int
    rack: str | None
    assignor: str | None


@attrs.define(eq=False, repr=False)
class ConsumerHeartbeats:
    """Builds the requests, and remembers what the coordinator has been told. For the I/O thread."""

    _settings: ConsumerMemberSettings
    _member_id: str
    _settings_told: bool = attrs.field(default=False, init=False)
    _topics: frozenset[str] | None = attrs.field(default=None, init=False)
    _regex: str | None = attrs.field(default=None, init=False)
    _assignment: LocalAssignment | None = attrs.field(default=None, init=False)

    def forget(self) -> None:
        """Tell everything anew: the coordinator may not have heard what was sent."""
        self._settings_told = False
        self._topics = None
        self._regex = None
        self._assignment = None

    def is_news(self, topics: frozenset[str], regex: str | None) -> bool:
        """Return True if the coordinator has not been told of this subscription."""
        return topics != self._topics or regex != self._regex

    def build(
        self,
        epoch: int,
        topics: frozenset[str],
        regex: str | None,
        assignment: LocalAssignment,
        *,
        joining: bool,
    ) -> ConsumerGroupHeartbeatRequest:
        """Return the request of a member that is alive as of `epoch`, with all fields if it is `joining`."""
        settings = self._settings
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=self._member_id,
            member_epoch=epoch,
            instance_id=settings.group_instance_id,
            rack_id=settings.rack if joining else None,
        )
        if joining or not self._settings_told:
            request.rebalance_timeout_ms = settings.rebalance_timeout_ms
            request.server_assignor = settings.assignor
            self._settings_told = True
        if joining or topics != self._topics:
            request.subscribed_topic_names = sorted(topics)
            self._topics = topics
        if (joining and regex is not None) or regex != self._regex:
            request.subscribed_topic_regex = regex or ""  # the empty one takes one of before away
            self._regex = regex
        if joining or assignment != self._assignment:
            held = NO_ASSIGNMENT if joining else assignment
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in held.partitions.items()
            ]
            self._assignment = assignment
        return request

    def leave(self, epoch: int) -> ConsumerGroupHeartbeatRequest:
        """Return the request of a member that goes, as `epoch` says."""
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self._member_id,
            member_epoch=epoch,
            instance_id=self._settings.group_instance_id,
        )
