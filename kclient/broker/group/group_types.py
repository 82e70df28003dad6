"""Requests to the group coordinator, and descriptions of groups for tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kclient.broker.group.member import Protocols


@attrs.frozen
class GroupSettings:
    """The settings of the broker that the coordinator needs."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    max_size: int
    offset_metadata_max_bytes: int
    offsets_retention_ms: int


@attrs.frozen
class JoinRequest:
    """A member that wants to join. `requires_known_id` and `can_skip_assignment` come with newer versions."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str = ""
    requires_known_id: bool = False
    can_skip_assignment: bool = False


@attrs.frozen
class SyncRequest:
    """A member that wants its assignment; the leader brings everyone's."""

    group_id: str
    generation_id: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


@attrs.frozen
class DescribedMember:
    """A member as tools see it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@attrs.frozen
class DescribedGroup:
    """A group as tools see it."""

    group_id: str
    state: str
    protocol_type: str = ""
    protocol_name: str = ""
    members: Sequence[DescribedMember] = ()
