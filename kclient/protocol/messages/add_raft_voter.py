"""AddRaftVoter: add a controller to the quorum."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bool, Int16, Int32, String, UInt16


@structure
class Listener(Structure):
    name: str = wire(String, "0+")
    host: str = wire(String, "0+")
    port: int = wire(UInt16, "0+")


@message(api_key=ApiKeys.ADD_RAFT_VOTER, kind="request", versions="0-1", flexible="0+")
class AddRaftVoterRequest(Message):
    """Names the voter by id and directory (KIP-853)."""

    cluster_id: str | None = wire(String, "0+", nullable="0+")
    timeout_ms: int = wire(Int32, "0+")
    voter_id: int = wire(Int32, "0+")
    voter_directory_id: Uuid = wire(UUID, "0+")
    listeners: list[Listener] = wire(Array(Listener), "0+")
    ack_when_committed: bool = wire(Bool, "1+", default=True)


@message(api_key=ApiKeys.ADD_RAFT_VOTER, kind="response", versions="0-1", flexible="0+")
class AddRaftVoterResponse(Message):
    """An error code."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", ignorable=True)
