"""DeleteRecords: move the start of partitions forward."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, Int64, String


@structure
class DeleteRecordsPartition(Structure):
    partition_index: int = wire(Int32, "0+")
    offset: int = wire(Int64, "0+")


@structure
class DeleteRecordsTopic(Structure):
    name: str = wire(String, "0+")
    partitions: list[DeleteRecordsPartition] = wire(Array(DeleteRecordsPartition), "0+")


@message(api_key=ApiKeys.DELETE_RECORDS, kind="request", versions="0-2", flexible="2+")
class DeleteRecordsRequest(Message):
    """An offset of -1 stands for the high watermark."""

    topics: list[DeleteRecordsTopic] = wire(Array(DeleteRecordsTopic), "0+")
    timeout_ms: int = wire(Int32, "0+")


@structure
class DeleteRecordsPartitionResult(Structure):
    partition_index: int = wire(Int32, "0+")
    low_watermark: int = wire(Int64, "0+")
    error_code: int = wire(Int16, "0+")


@structure
class DeleteRecordsTopicResult(Structure):
    name: str = wire(String, "0+")
    partitions: list[DeleteRecordsPartitionResult] = wire(Array(DeleteRecordsPartitionResult), "0+")


@message(api_key=ApiKeys.DELETE_RECORDS, kind="response", versions="0-2", flexible="2+")
class DeleteRecordsResponse(Message):
    """The new start of each partition."""

    throttle_time_ms: int = wire(Int32, "0+")
    topics: list[DeleteRecordsTopicResult] = wire(Array(DeleteRecordsTopicResult), "0+")
