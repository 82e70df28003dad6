"""DescribeLogDirs: sizes of a broker's directories and replicas."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int16, Int32, Int64, String


@structure
class DescribableLogDirTopic(Structure):
    topic: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@message(api_key=ApiKeys.DESCRIBE_LOG_DIRS, kind="request", versions="1-5", flexible="2+")
class DescribeLogDirsRequest(Message):
    """No topics (None) stands for all."""

    topics: list[DescribableLogDirTopic] | None = wire(Array(DescribableLogDirTopic), "0+", nullable="0+")


@structure
class DescribeLogDirsPartition(Structure):
    partition_index: int = wire(Int32, "0+")
    partition_size: int = wire(Int64, "0+")
    offset_lag: int = wire(Int64, "0+")
    is_future_key: bool = wire(Bool, "0+")


@structure
class DescribeLogDirsTopic(Structure):
    name: str = wire(String, "0+")
    partitions: list[DescribeLogDirsPartition] = wire(Array(DescribeLogDirsPartition), "0+")


@structure
class DescribeLogDirsResult(Structure):
    error_code: int = wire(Int16, "0+")
    log_dir: str = wire(String, "0+")
    topics: list[DescribeLogDirsTopic] = wire(Array(DescribeLogDirsTopic), "0+")
    total_bytes: int = wire(Int64, "4+", default=-1, ignorable=True)
    usable_bytes: int = wire(Int64, "4+", default=-1, ignorable=True)
    is_cordoned: bool = wire(Bool, "5+", ignorable=True)


@message(api_key=ApiKeys.DESCRIBE_LOG_DIRS, kind="response", versions="1-5", flexible="2+")
class DescribeLogDirsResponse(Message):
    """Version 4 tells the size of the volumes (KIP-827)."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "3+", ignorable=True)
    results: list[DescribeLogDirsResult] = wire(Array(DescribeLogDirsResult), "0+")
