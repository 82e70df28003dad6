"""ListOffsets (2), versions 1 to 11: offsets by time.

Versions: 2 brought isolation, 4 leader epochs, 6 is flexible, 7 finds the greatest timestamp (-3), 8 the earliest
offset that is here (-4), 9 and 11 those of remote storage (-5, -6; there is none), 10 brought a timeout. Behaviour:
-1 is the end as far as the isolation lets the client read, -2 the start; a time after the last record gives
offset -1. A partition that comes twice is answered once, with an error. Followers (replica id 0 and up) are refused:
there are none. Access: DESCRIBE on the topics.
"""

from __future__ import annotations

from collections import Counter

from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.log.log_types import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP, FetchIsolation
from kclient.broker.replica.partition import Partition
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, UnsupportedVersionError
from kclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

_READ_COMMITTED = 1
_EARLIEST_LOCAL_TIMESTAMP, _LATEST_TIERED_TIMESTAMP, _EARLIEST_PENDING_UPLOAD_TIMESTAMP = -4, -5, -6
_OF_REMOTE_STORAGE = frozenset({_LATEST_TIERED_TIMESTAMP, _EARLIEST_PENDING_UPLOAD_TIMESTAMP})
_SINCE = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL_TIMESTAMP: 8,
    _LATEST_TIERED_TIMESTAMP: 9,
    _EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
"""The first version that knows each timestamp of a special meaning."""
_NEVER = 1 << 15
_NOTHING = (-1, -1, -1)


def list_offsets(call: ApiCall, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look up each partition."""
    committed = request.isolation_level == _READ_COMMITTED
    isolation = FetchIsolation.TXN_COMMITTED if committed else FetchIsolation.HIGH_WATERMARK
    follower = request.replica_id >= 0
    visible = call.authorized_names(
        AclOperation.DESCRIBE, ResourceType.TOPIC, (topic.name for topic in request.topics)
    )
    times = Counter(
        TopicPartition(topic.name, wanted.partition_index)
        for topic in request.topics
        for wanted in topic.partitions
    )
    refused: list[ListOffsetsTopicResponse] = []
    found: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    for topic in request.topics:
        if topic.name not in visible:
            answers = [_refused(wanted, Errors.TOPIC_AUTHORIZATION_FAILED) for wanted in topic.partitions]
            refused.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
            continue
        of_topic = found.setdefault(topic.name, {})
        for wanted in topic.partitions:
            if times[TopicPartition(topic.name, wanted.partition_index)] > 1:
                answer = _refused(wanted, Errors.INVALID_REQUEST)
            elif follower:
                answer = _refused(wanted, Errors.CLUSTER_AUTHORIZATION_FAILED)
            else:
                answer = _look_up(call, topic.name, wanted, isolation)
            of_topic[wanted.partition_index] = answer
    return ListOffsetsResponse(
        topics=[
            *(
                ListOffsetsTopicResponse(name=name, partitions=[*answers.values()])
                for name, answers in found.items()
            ),
            *refused,
        ]
    )


def _refused(wanted: ListOffsetsPartition, error: Errors) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=int(error))


def _look_up(
    call: ApiCall, topic: str, wanted: ListOffsetsPartition, isolation: FetchIsolation
) -> ListOffsetsPartitionResponse:
    found = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    with error_in(found):
        partition = call.broker.replicas.partition(TopicPartition(topic, wanted.partition_index))
        partition.check_leader_epoch(wanted.current_leader_epoch)
        found.timestamp, found.offset, epoch = _offset(call.version, partition, wanted.timestamp, isolation)
        if call.version >= 4:
            found.leader_epoch = epoch
    return found


def _offset(
    version: int, partition: Partition, timestamp_ms: int, isolation: FetchIsolation
) -> tuple[int, int, int]:
    if timestamp_ms < 0 and version < _SINCE.get(timestamp_ms, _NEVER):
        raise UnsupportedVersionError(f"Version {version} does not know the timestamp {timestamp_ms}")
    if timestamp_ms == LATEST_TIMESTAMP:
        return -1, partition.log.readable_end(isolation), partition.leader_epoch
    if timestamp_ms in _OF_REMOTE_STORAGE:
        return _NOTHING
    if timestamp_ms == _EARLIEST_LOCAL_TIMESTAMP:
        timestamp_ms = EARLIEST_TIMESTAMP
    found = partition.log.offset_for_timestamp(timestamp_ms)
    if found is None:
        return _NOTHING
    found_ms, offset, epoch = found
    # A record that the client may not read yet is not there for it.
    if timestamp_ms != EARLIEST_TIMESTAMP and offset >= partition.log.readable_end(isolation):
        return _NOTHING
    return found_ms, offset, partition.leader_epoch if epoch is None else epoch
