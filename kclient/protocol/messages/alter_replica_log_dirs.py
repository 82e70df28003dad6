"""AlterReplicaLogDirs: move replicas between a broker's directories."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, String


@structure
class AlterReplicaLogDirTopic(Structure):
    name: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@structure
class AlterReplicaLogDir(Structure):
    path: str = wire(String, "0+")
    topics: list[AlterReplicaLogDirTopic] = wire(Array(AlterReplicaLogDirTopic), "0+")


@message(api_key=ApiKeys.ALTER_REPLICA_LOG_DIRS, kind="request", versions="1-2", flexible="2+")
class AlterReplicaLogDirsRequest(Message):
    """Goes to the broker that holds the replicas (KIP-113)."""

    dirs: list[AlterReplicaLogDir] = wire(Array(AlterReplicaLogDir), "0+")


@structure
class AlterReplicaLogDirPartitionResult(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")


@structure
class AlterReplicaLogDirTopicResult(Structure):
    topic_name: str = wire(String, "0+")
    partitions: list[AlterReplicaLogDirPartitionResult] = wire(Array(AlterReplicaLogDirPartitionResult), "0+")


@message(api_key=ApiKeys.ALTER_REPLICA_LOG_DIRS, kind="response", versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse(Message):
    """An error code for each partition."""

    throttle_time_ms: int = wire(Int32, "0+")
    results: list[AlterReplicaLogDirTopicResult] = wire(Array(AlterReplicaLogDirTopicResult), "0+")
