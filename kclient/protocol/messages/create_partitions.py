"""CreatePartitions: add partitions to topics."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int16, Int32, String


@structure
class CreatePartitionsAssignment(Structure):
    broker_ids: list[int] = wire(Array(Int32), "0+")


@structure
class CreatePartitionsTopic(Structure):
    name: str = wire(String, "0+")
    count: int = wire(Int32, "0+")
    assignments: list[CreatePartitionsAssignment] | None = wire(
        Array(CreatePartitionsAssignment), "0+", nullable="0+"
    )


@message(api_key=ApiKeys.CREATE_PARTITIONS, kind="request", versions="0-3", flexible="2+")
class CreatePartitionsRequest(Message):
    """`count` is the new total."""

    topics: list[CreatePartitionsTopic] = wire(Array(CreatePartitionsTopic), "0+")
    timeout_ms: int = wire(Int32, "0+")
    validate_only: bool = wire(Bool, "0+")


@structure
class CreatePartitionsTopicResult(Structure):
    name: str = wire(String, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)


@message(api_key=ApiKeys.CREATE_PARTITIONS, kind="response", versions="0-3", flexible="2+")
class CreatePartitionsResponse(Message):
    """An error code for each topic."""

    throttle_time_ms: int = wire(Int32, "0+")
    results: list[CreatePartitionsTopicResult] = wire(Array(CreatePartitionsTopicResult), "0+")
