"""Fetch (1), versions 4 to 12: read record batches.

Versions: 7 brought sessions (KIP-227), 9 leader epochs, 11 racks, 12 is flexible and finds diverging logs.
Behaviour: waits for min.bytes up to max.wait; the first partition with data gives a whole batch even above
the limits; with a session only what is new is told. Followers (replica id 0 and up) are refused: there are
none. Access: READ on the topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from kclient.broker.apis.call import ApiCall
from kclient.broker.log.unified_log import FetchIsolation
from kclient.broker.replica.fetch_sessions import FetchAnswer
from kclient.broker.replica.fetching import FetchParams, PartitionFetch, PartitionFetched
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, TopicAuthorizationError
from kclient.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

_READ_COMMITTED = 1


def fetch(call: ApiCall, request: FetchRequest) -> FetchResponse | None:
    """Find out what is read, read it, and tell what is new."""
    if request.replica_id >= 0:
        return FetchResponse(error_code=int(Errors.CLUSTER_AUTHORIZATION_FAILED))
    context = call.broker.fetch_sessions.context(
        request.session_id,
        request.session_epoch,
        _fetches(request),
        [
            TopicPartition(topic.topic, partition)
            for topic in request.forgotten_topics_data
            for partition in topic.partitions
        ],
    )
    if context.error_code:
        return FetchResponse(error_code=context.error_code)
    committed = request.isolation_level == _READ_COMMITTED
    max_bytes = min(request.max_bytes, call.broker.config.fetch_max_bytes)
    params = FetchParams(
        FetchIsolation.TXN_COMMITTED if committed else FetchIsolation.HIGH_WATERMARK,
        request.max_wait_ms,
        min(request.min_bytes, max_bytes),
        max_bytes,
    )

    fetches, refused = context.fetches, list[PartitionFetched]()
    if call.broker.authorizer is not None:
        fetches, refused = _parted(call, fetches)

    def answer(results: Sequence[PartitionFetched]) -> None:
        call.respond(_response(context.answer([*results, *refused] if refused else results)))

    if refused and not fetches:
        answer(())
    else:
        call.broker.replicas.fetch(params, fetches, answer)
    return None


def _parted(
    call: ApiCall, fetches: Sequence[PartitionFetch]
) -> tuple[list[PartitionFetch], list[PartitionFetched]]:
    """Return what the client may read of all that its session reads, and the answers for the rest.

    What this request says is not enough: a rule may have come meanwhile, and another client with the same session.
    """
    readable = call.authorized_names(
        AclOperation.READ, ResourceType.TOPIC, (wanted.tp.topic for wanted in fetches)
    )
    allowed = [wanted for wanted in fetches if wanted.tp.topic in readable]
    refused = [
        PartitionFetched(wanted.tp, TopicAuthorizationError())
        for wanted in fetches
        if wanted.tp.topic not in readable
    ]
    return allowed, refused


def _fetches(request: FetchRequest) -> list[PartitionFetch]:
    return [
        PartitionFetch(
            TopicPartition(topic.topic, data.partition),
            data.fetch_offset,
            data.partition_max_bytes,
            data.current_leader_epoch,
            data.last_fetched_epoch,
        )
        for topic in request.topics
        for data in topic.partitions
    ]


def _response(answer: FetchAnswer) -> FetchResponse:
    topics: list[FetchableTopicResponse] = []
    for result in answer.results:
        # Partitions of a topic that do not stand together make two entries, as their order is what was asked
        # for.
        if not topics or topics[-1].topic != result.tp.topic:
            topics.append(FetchableTopicResponse(topic=result.tp.topic, partitions=[]))
        topics[-1].partitions.append(_partition(result))
    return FetchResponse(error_code=answer.error_code, session_id=answer.session_id, responses=topics)


def _partition(result: PartitionFetched) -> PartitionData:
    data = PartitionData(
        partition_index=result.tp.partition,
        error_code=0 if result.error is None else Errors.code_for(result.error),
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=None,
        # The encoder asks records that it does not copy for nothing but their size.
        records=cast("memoryview", result.records),
    )
    if result.aborted is not None:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=producer_id, first_offset=offset)
            for producer_id, offset in result.aborted
        ]
    if result.diverging_epoch is not None:
        epoch, end_offset = result.diverging_epoch
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return data
