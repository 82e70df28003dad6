"""The requests that a member sends to the coordinator of its classic group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.base import ConsumerPartitionAssignor, Subscription
from kclient.consumer.internals.coordinator import group_protocol
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_MAX_REASON = 255
_FIRST_LEAVE_VERSION_WITH_MEMBERS = 3


@attrs.frozen
class MembershipSettings:
    """The settings that the member tells the coordinator. Immutable."""

    group_id: str
    group_instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    rack: str | None

    def join(
        self,
        generation: Generation,
        topics: Iterable[str],
        held: Iterable[TopicPartition],
        assignors: Iterable[ConsumerPartitionAssignor],
        reason: str,
    ) -> JoinGroupRequest:
        """Take part in a rebalance, subscribed to `topics`; `reason` is told from version 8 on (KIP-800)."""
        subscription = Subscription(
            tuple(topics), None, tuple(held), generation_id=generation.id, rack_id=self.rack
        )
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=generation.member_id,
            group_instance_id=self.group_instance_id,
            protocol_type=group_protocol.PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(
                    name=each.name, metadata=group_protocol.encode_subscription_for(each, subscription)
                )
                for each in assignors
            ],
            reason=reason[:_MAX_REASON],
        )

    def sync(self, generation: Generation, shares: Mapping[str, bytes]) -> SyncGroupRequest:
        """Ask for the own share; a leader brings the shares of all."""
        return SyncGroupRequest(
            group_id=self.group_id,
            generation_id=generation.id,
            member_id=generation.member_id,
            group_instance_id=self.group_instance_id,
            protocol_type=group_protocol.PROTOCOL_TYPE,
            protocol_name=generation.assignor,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=share)
                for member_id, share in shares.items()
            ],
        )

    def heartbeat(self, generation: Generation) -> HeartbeatRequest:
        """Be alive."""
        return HeartbeatRequest(
            group_id=self.group_id,
            generation_id=generation.id,
            member_id=generation.member_id,
            group_instance_id=self.group_instance_id,
        )

    def leave(self, generation: Generation, reason: str, version: int) -> LeaveGroupRequest:
        """Be gone."""
        if version < _FIRST_LEAVE_VERSION_WITH_MEMBERS:
            return LeaveGroupRequest(group_id=self.group_id, member_id=generation.member_id)
        member = MemberIdentity(
            member_id=generation.member_id,
            group_instance_id=self.group_instance_id,
            reason=reason[:_MAX_REASON],
        )
        return LeaveGroupRequest(group_id=self.group_id, members=[member])
