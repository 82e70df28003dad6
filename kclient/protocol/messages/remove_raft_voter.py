"""RemoveRaftVoter: remove a controller from the quorum."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import UUID, Int16, Int32, String


@message(api_key=ApiKeys.REMOVE_RAFT_VOTER, kind="request", versions="0", flexible="0+")
class RemoveRaftVoterRequest(Message):
    """Names the voter by id and directory (KIP-853)."""

    cluster_id: str | None = wire(String, "0+", nullable="0+")
    voter_id: int = wire(Int32, "0+")
    voter_directory_id: Uuid = wire(UUID, "0+")


@message(api_key=ApiKeys.REMOVE_RAFT_VOTER, kind="response", versions="0", flexible="0+")
class RemoveRaftVoterResponse(Message):
    """An error code."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", ignorable=True)
