"""GroupMembershipOperation: the fate of a member's place in its group when the consumer is closed (KIP-1092)."""

from __future__ import annotations

from enum import Enum


class GroupMembershipOperation(Enum):
    """The fate of the place in the group, for `KafkaConsumer.close`."""

    DEFAULT = "default"
    """A dynamic member leaves; a static one, with `group.instance.id`, keeps its place for the session timeout."""
    LEAVE_GROUP = "leave_group"
    """Leave, so that others take the partitions at once, also as a static member."""
    REMAIN_IN_GROUP = "remain_in_group"
    """Keep the place and the partitions until the session times out, also as a dynamic member."""
