"""Groups of every kind as coordinators know them, their members, and the offsets of share groups."""

from __future__ import annotations

import attrs

from kclient.common.acl import AclOperation
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition


@attrs.frozen
class GroupListing:
    """One group of the cluster; `state` and `group_type` are empty where the broker is too old to tell."""

    group_id: str
    protocol_type: str
    """"consumer", "share", "streams", "connect", or what other clients have; empty for a group of offsets alone."""
    state: str = ""
    group_type: str = ""
    """"classic", "consumer", "share" or "streams"."""

    @property
    def is_simple_consumer_group(self) -> bool:
        """True for a classic group that nobody has joined, and that only has committed offsets."""
        return self.group_type in ("", "classic") and not self.protocol_type


@attrs.frozen
class MemberDescription:
    """One member of a group and what it was given."""

    member_id: str
    client_id: str
    host: str
    group_instance_id: str | None
    """None for a member that is not static."""
    assignment: tuple[TopicPartition, ...]
    """The partitions that it has."""
    target_assignment: tuple[TopicPartition, ...] | None = None
    """Those that it is to have, in groups of the type consumer; None in others."""
    member_epoch: int | None = None
    """Its epoch, in groups of the types consumer and share; None in others."""
    upgraded: bool | None = None
    """True if it speaks the protocol of its group of type consumer, False if the classic one; None if not told."""
    rack_id: str | None = None


@attrs.frozen
class GroupDescription:
    """One group of any type. `state` is Kafka's word for it, such as Stable, Empty or Dead."""

    group_id: str
    state: str
    protocol_type: str
    """"consumer", "share", "connect", or what other clients have; empty for a group of offsets alone."""
    partition_assignor: str
    """The assignor that members have chosen or the broker has; empty where nobody has yet."""
    members: tuple[MemberDescription, ...]
    coordinator: Node
    group_type: str = "classic"
    """"classic", "consumer" or "share"."""
    group_epoch: int | None = None
    """None in classic groups."""
    target_assignment_epoch: int | None = None
    """The group epoch that the target assignments are of; None in classic groups."""
    authorized_operations: frozenset[AclOperation] | None = None
    """The operations that the caller may do, if it has asked for them (KIP-430)."""

    @property
    def is_simple_consumer_group(self) -> bool:
        """True for a classic group that nobody has joined, and that only has committed offsets."""
        return self.group_type == "classic" and not self.protocol_type


@attrs.frozen
class SharePartitionOffsetInfo:
    """The place from which a share group still has to finish a partition (KIP-932)."""

    start_offset: int
    """The first offset that is not acknowledged or archived."""
    leader_epoch: int | None = None
    lag: int | None = None
    """The records that are not finished; None where the broker does not know or is too old to tell (KIP-1226)."""
