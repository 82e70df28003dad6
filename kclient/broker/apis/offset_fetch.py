"""OffsetFetch (9), versions 1 to 10: how far a group has read.

Versions: from 2 on no topics means all; 5 brought leader epochs, 6 is flexible, 7 may ask for stable offsets
only (all are: there are no transactions), 8 takes many groups, 9 names the member, 10 names topics by
their ids. Behaviour: what is not committed, of a group
that is not there as well, has offset -1 and no error; an error where the offsets cannot be read. Access:
DESCRIBE on the group and the topics.
"""

from __future__ import annotations

from typing import Any

from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.apis.topic_ids import name_topics
from kclient.broker.group.group import CommittedOffset
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, InvalidGroupIdError
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

_TOPIC_IDS_FROM = 10
_NOT_COMMITTED = CommittedOffset(-1, -1, "", -1)


def offset_fetch(call: ApiCall, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Look the offsets up."""
    if call.version >= 8:
        return OffsetFetchResponse(groups=[_group(call, group) for group in request.groups])
    response = OffsetFetchResponse()
    _look_up(call, request, response, OffsetFetchResponseTopic, OffsetFetchResponsePartition)
    if response.error_code:
        # Version 1 has a code for each partition only.
        response.topics = [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition, committed_offset=-1, error_code=response.error_code
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    return response


def _group(call: ApiCall, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    answer = OffsetFetchResponseGroup(group_id=group.group_id)
    unknown = set()
    if call.version >= _TOPIC_IDS_FROM and group.topics is not None:
        unknown = name_topics(call, group.topics)
    _look_up(call, group, answer, OffsetFetchResponseTopics, OffsetFetchResponsePartitions)
    if call.version >= _TOPIC_IDS_FROM:
        answer.topics = _with_ids(call, group, answer.topics, unknown)
    return answer


def _with_ids(
    call: ApiCall,
    group: OffsetFetchRequestGroup,
    topics: list[OffsetFetchResponseTopics],
    unknown: set[str],
) -> list[OffsetFetchResponseTopics]:
    """Return the topics with their ids. Where all were asked for, those that are gone since are left out."""
    cache = call.broker.controller.cache
    asked = {topic.name: topic.topic_id for topic in group.topics or ()}
    answered = []
    for topic in topics:
        if topic.name in unknown:
            for partition in topic.partitions:
                partition.error_code = int(Errors.UNKNOWN_TOPIC_ID)
        if topic.name in asked:
            topic.topic_id = asked[topic.name]
        elif (known := cache.topic(topic.name)) is not None:
            topic.topic_id = known.id
        else:
            continue
        answered.append(topic)
    return answered


def _look_up(
    call: ApiCall,
    asked: OffsetFetchRequest | OffsetFetchRequestGroup,
    answer: OffsetFetchResponse | OffsetFetchResponseGroup,
    topic_class: type[Any],
    partition_class: type[Any],
) -> None:
    tps = None
    if asked.topics is not None:
        tps = [
            TopicPartition(topic.name, number) for topic in asked.topics for number in topic.partition_indexes
        ]
    with error_in(answer):
        if not asked.group_id:
            raise InvalidGroupIdError
        found: dict[str, list[Any]] = {}
        for tp, committed in call.broker.groups.offsets.fetch(asked.group_id, tps).items():
            offset = committed or _NOT_COMMITTED
            found.setdefault(tp.topic, []).append(
                partition_class(
                    partition_index=tp.partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    metadata=offset.metadata,
                )
            )
        answer.topics = [topic_class(name=name, partitions=parts) for name, parts in found.items()]
