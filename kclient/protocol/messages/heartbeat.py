"""Heartbeat: stay in a consumer group of the classic protocol."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import Int16, Int32, String


@message(api_key=ApiKeys.HEARTBEAT, kind="request", versions="0-4", flexible="4+")
class HeartbeatRequest(Message):
    """Version 3 brought static members (KIP-345)."""

    group_id: str = wire(String, "0+")
    generation_id: int = wire(Int32, "0+")
    member_id: str = wire(String, "0+")
    group_instance_id: str | None = wire(String, "3+", nullable="3+", default=None)


@message(api_key=ApiKeys.HEARTBEAT, kind="response", versions="0-4", flexible="4+")
class HeartbeatResponse(Message):
    """Tells of a rebalance by its error code."""

    throttle_time_ms: int = wire(Int32, "1+", ignorable=True)
    error_code: int = wire(Int16, "0+")
