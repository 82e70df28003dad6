"""OffsetCommit (8), versions 2 to 10: remember how far a group has read.

Versions: up to 4 a client may say how long to keep the offset; 6 brought leader epochs, 7 static members, 8 is
flexible, 9 tells of a group that is not there, 10 names topics by their ids. Behaviour: partitions that do not
exist fail by themselves. Access: READ on the group and the topics.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.resources import coded
from kclient.broker.apis.topic_ids import name_topics
from kclient.broker.group.offsets import Committer, OffsetToCommit
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, GroupIdNotFoundError, KafkaError
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_GROUP_ERRORS_FROM = 9
_TOPIC_IDS_FROM = 10


def offset_commit(call: ApiCall, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Commit what can be committed."""
    codes: dict[TopicPartition, int] = {}
    offsets: dict[TopicPartition, OffsetToCommit] = {}
    retention_ms = request.retention_time_ms if call.version <= 4 else -1
    cache = call.broker.controller.cache
    unknown = name_topics(call, request.topics) if call.version >= _TOPIC_IDS_FROM else ()
    for topic in request.topics:
        for given in topic.partitions:
            tp = TopicPartition(topic.name, given.partition_index)
            if cache.contains(tp):
                offsets[tp] = OffsetToCommit(
                    given.committed_offset,
                    given.committed_leader_epoch,
                    given.committed_metadata or "",
                    retention_ms,
                )
            elif topic.name in unknown:
                codes[tp] = int(Errors.UNKNOWN_TOPIC_ID)
            else:
                codes[tp] = int(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    committer = Committer(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)
    try:
        codes.update(call.broker.groups.offsets.commit(request.group_id, committer, offsets))
    except GroupIdNotFoundError as error:
        # Earlier versions tell it as a generation that is over.
        known = (
            Errors.code_for(error) if call.version >= _GROUP_ERRORS_FROM else int(Errors.ILLEGAL_GENERATION)
        )
        codes.update(dict.fromkeys(offsets, known))
    except KafkaError as error:
        codes.update(dict.fromkeys(offsets, Errors.code_for(error)))
    topics = coded(request.topics, codes, OffsetCommitResponseTopic, OffsetCommitResponsePartition)
    for answered, topic in zip(topics, request.topics, strict=True):
        answered.topic_id = topic.topic_id
    return OffsetCommitResponse(topics=topics)
