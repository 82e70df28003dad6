"""DescribeLogDirs (35), versions 1 to 5: how much is where.

Versions: 2 is flexible, 3 brought a top-level error, 4 the size of the disk, 5 directories that
get no new partitions: there are none. Behaviour: no topics means all
of them. Access: DESCRIBE on the cluster.
"""

from __future__ import annotations

import shutil

from kclient.broker.apis.call import ApiCall
from kclient.broker.log.log_directory import LogDirectory
from kclient.broker.replica.partition import Partition
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors
from kclient.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def describe_log_dirs(call: ApiCall, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Describe each directory."""
    wanted = None
    if request.topics is not None:
        wanted = {
            TopicPartition(topic.topic, number) for topic in request.topics for number in topic.partitions
        }
    replicas = call.broker.replicas
    by_dir: dict[LogDirectory, list[Partition]] = {log_dir: [] for log_dir in replicas.log_manager.log_dirs}
    for partition in sorted(replicas.partitions(), key=lambda partition: partition.tp):
        if wanted is None or partition.tp in wanted:
            by_dir[partition.log.log_dir].append(partition)
    return DescribeLogDirsResponse(
        results=[_describe(log_dir, partitions) for log_dir, partitions in by_dir.items()]
    )


def _describe(log_dir: LogDirectory, partitions: list[Partition]) -> DescribeLogDirsResult:
    path = str(log_dir.path.resolve())
    if log_dir.offline_error is not None:
        return DescribeLogDirsResult(error_code=int(Errors.KAFKA_STORAGE_ERROR), log_dir=path)
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in partitions:
        topics.setdefault(partition.tp.topic, []).append(
            DescribeLogDirsPartition(
                partition_index=partition.tp.partition, partition_size=partition.log.size
            )
        )
    result = DescribeLogDirsResult(
        log_dir=path,
        topics=[DescribeLogDirsTopic(name=name, partitions=found) for name, found in topics.items()],
    )
    try:
        usage = shutil.disk_usage(path)
        result.total_bytes, result.usable_bytes = usage.total, usage.free
    except OSError:
        pass  # the protocol's -1 says that it is not known
    return result
