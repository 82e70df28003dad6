"""OffsetFetch (9), versions 1 to 8: how far a group has read.

Versions: from 2 on no topics means all; 5 brought leader epochs, 6 is flexible, 7 may ask for stable offsets
only (all are: there are no transactions), 8 takes many groups. Behaviour: what is not committed, of a group
that is not there as well, has offset -1 and no error; an error where the offsets cannot be read. Access:
DESCRIBE on the group and the topics.
"""

from __future__ import annotations

from collections.abc import Iterable

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.registry import handles
from kclient.broker.group.group import CommittedOffset
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_NOT_COMMITTED = CommittedOffset(-1, -1, "", -1)


@handles(ApiKeys.OFFSET_FETCH, 1, 8)
def offset_fetch(call: ApiCall, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Look the offsets up."""
    if call.version >= 8:
        return OffsetFetchResponse(groups=[_group(call, group) for group in request.groups])
    if not request.group_id:
        return OffsetFetchResponse(error_code=int(Errors.INVALID_GROUP_ID))
    wanted = None
    if request.topics is not None:
        wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
    error_code = 0
    try:
        found = _look_up(call, request.group_id, wanted)
    except KafkaError as error:
        # Version 1 has a code for each partition only.
        error_code = Errors.code_for(error)
        found = {
            name: [(partition, _NOT_COMMITTED) for partition in partitions]
            for name, partitions in wanted or ()
        }
    return OffsetFetchResponse(
        error_code=error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition,
                        committed_offset=offset.offset,
                        committed_leader_epoch=offset.leader_epoch,
                        metadata=offset.metadata,
                        error_code=error_code,
                    )
                    for partition, offset in offsets
                ],
            )
            for name, offsets in found.items()
        ],
    )


def _group(call: ApiCall, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    if not group.group_id:
        return OffsetFetchResponseGroup(error_code=int(Errors.INVALID_GROUP_ID))
    wanted = None
    if group.topics is not None:
        wanted = [(topic.name, topic.partition_indexes) for topic in group.topics]
    try:
        found = _look_up(call, group.group_id, wanted)
    except KafkaError as error:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=Errors.code_for(error))
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=name,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=partition,
                        committed_offset=offset.offset,
                        committed_leader_epoch=offset.leader_epoch,
                        metadata=offset.metadata,
                    )
                    for partition, offset in offsets
                ],
            )
            for name, offsets in found.items()
        ],
    )


def _look_up(
    call: ApiCall, group_id: str, wanted: Iterable[tuple[str, list[int]]] | None
) -> dict[str, list[tuple[int, CommittedOffset]]]:
    tps = None
    if wanted is not None:
        tps = [TopicPartition(topic, partition) for topic, partitions in wanted for partition in partitions]
    found: dict[str, list[tuple[int, CommittedOffset]]] = {}
    for tp, offset in call.broker.groups.offsets.fetch(group_id, tps).items():
        found.setdefault(tp.topic, []).append((tp.partition, offset or _NOT_COMMITTED))
    return found
