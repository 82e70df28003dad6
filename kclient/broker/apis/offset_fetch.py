"""OffsetFetch (9), versions 1 to 10: how far a group has read.

Versions: from 2 on no topics means all; 5 brought leader epochs, 6 is flexible, 7 may ask for stable offsets only
(all are: there are no transactions), 8 takes many groups, 9 names the member, 10 names topics by their ids.
Behaviour: what is not committed, of a group that is not there as well, has offset -1 and no error; an error where
the offsets cannot be read. Access: DESCRIBE on the group and the topics; of all topics those are told that the
client may see.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.apis.topic_ids import name_topics
from kclient.broker.group.group import CommittedOffset
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, InvalidGroupIdError
from kclient.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
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
    if call.version < _TOPIC_IDS_FROM:
        _look_up(call, group, answer, OffsetFetchResponseTopics, OffsetFetchResponsePartitions)
        return answer
    unknown = name_topics(call, group.topics or ())
    missing = [topic for topic in group.topics or () if topic.name in unknown]
    if group.topics is not None:
        group.topics = [topic for topic in group.topics if topic.name not in unknown]
    _look_up(call, group, answer, OffsetFetchResponseTopics, OffsetFetchResponsePartitions)
    if not answer.error_code:
        answer.topics = [*_with_ids(call, group, answer.topics), *map(_missing, missing)]
    return answer


def _with_ids(
    call: ApiCall, group: OffsetFetchRequestGroup, topics: Iterable[OffsetFetchResponseTopics]
) -> Iterator[OffsetFetchResponseTopics]:
    """Yield the topics with their ids. Where all were asked for, those that are gone since are left out."""
    cache = call.broker.controller.cache
    asked = {topic.name: topic.topic_id for topic in group.topics or ()}
    for topic in topics:
        if topic.name in asked:
            topic.topic_id = asked[topic.name]
        elif (known := cache.topic(topic.name)) is not None:
            topic.topic_id = known.id
        else:
            continue
        yield topic


def _missing(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=number, committed_offset=-1, error_code=int(Errors.UNKNOWN_TOPIC_ID)
            )
            for number in topic.partition_indexes
        ],
    )


def _look_up(
    call: ApiCall,
    asked: OffsetFetchRequest | OffsetFetchRequestGroup,
    answer: OffsetFetchResponse | OffsetFetchResponseGroup,
    topic_class: type[Any],
    partition_class: type[Any],
) -> None:
    with error_in(answer):
        call.require(AclOperation.DESCRIBE, ResourceType.GROUP, asked.group_id)
        if not asked.group_id:
            raise InvalidGroupIdError
        tps, refused = None, []
        if asked.topics is not None:
            visible = _visible(call, (topic.name for topic in asked.topics))
            refused = [topic for topic in asked.topics if topic.name not in visible]
            tps = [
                TopicPartition(topic.name, number)
                for topic in asked.topics
                if topic.name in visible
                for number in topic.partition_indexes
            ]
        offsets = call.broker.groups.offsets.fetch(asked.group_id, tps)
        if asked.topics is None:
            visible = _visible(call, dict.fromkeys(tp.topic for tp in offsets))
        found: dict[str, list[Any]] = {}
        for tp, committed in offsets.items():
            if tp.topic not in visible:
                continue
            offset = committed or _NOT_COMMITTED
            found.setdefault(tp.topic, []).append(
                partition_class(
                    partition_index=tp.partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    metadata=offset.metadata,
                )
            )
        for topic in refused:
            found[topic.name] = [
                partition_class(
                    partition_index=number,
                    committed_offset=-1,
                    error_code=int(Errors.TOPIC_AUTHORIZATION_FAILED),
                )
                for number in topic.partition_indexes
            ]
        answer.topics = [topic_class(name=name, partitions=parts) for name, parts in found.items()]


def _visible(call: ApiCall, topics: Iterable[str]) -> Container[str]:
    return call.authorized_names(AclOperation.DESCRIBE, ResourceType.TOPIC, topics)
