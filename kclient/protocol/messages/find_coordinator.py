"""FindCoordinator: which broker serves a group or a transactional id."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int8, Int16, Int32, String


@message(api_key=ApiKeys.FIND_COORDINATOR, kind="request", versions="0-6", flexible="3+")
class FindCoordinatorRequest(Message):
    """Up to version 3 it asks for one key, from 4 on for several (KIP-699)."""

    key: str = wire(String, "0-3")
    # 0: group, 1: transactional id, 2: share group.
    key_type: int = wire(Int8, "1+")
    coordinator_keys: list[str] = wire(Array(String), "4+")


@structure
class Coordinator(Structure):
    key: str = wire(String, "4+")
    node_id: int = wire(Int32, "4+")
    host: str = wire(String, "4+")
    port: int = wire(Int32, "4+")
    error_code: int = wire(Int16, "4+")
    error_message: str | None = wire(String, "4+", nullable="4+", ignorable=True)


@message(api_key=ApiKeys.FIND_COORDINATOR, kind="response", versions="0-6", flexible="3+")
class FindCoordinatorResponse(Message):
    """Up to version 3 it answers for one key, from 4 on for several."""

    throttle_time_ms: int = wire(Int32, "1+", ignorable=True)
    error_code: int = wire(Int16, "0-3")
    error_message: str | None = wire(String, "1-3", nullable="1-3", ignorable=True)
    node_id: int = wire(Int32, "0-3")
    host: str = wire(String, "0-3")
    port: int = wire(Int32, "0-3")
    coordinators: list[Coordinator] = wire(Array(Coordinator), "4+")
