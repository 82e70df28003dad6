"""Fetch (1), versions 4 to 12: read record batches.

Versions: 7 brought sessions (KIP-227), 9 leader epochs, 11 racks, 12 is flexible and finds diverging logs.
Behaviour: waits for min.bytes up to max.wait; the first partition with data gives a whole batch even above
the limits; with a session only what is new is told. Who has exceeded a quota gets no records, and is held back
(KIP-219). Followers (replica id 0 and up) are refused: there are none. Access: READ on the topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from kclient.broker.apis.call import ApiCall
from kclient.broker.log.unified_log import FetchIsolation
from kclient.broker.replica.fetch_sessions import FetchAnswer
from kclient.broker.replica.fetching import FetchParams, PartitionFetch, PartitionFetched
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors
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
    quotas = call.broker.quotas
    committed = request.isolation_level == _READ_COMMITTED
    max_bytes = min(request.max_bytes, call.broker.config.fetch_max_bytes)
    if quotas.fetch.enabled:
        # More in one answer would exceed the quota for certain, and get nobody anywhere.
        most = quotas.fetch.most(call.user, call.client_id)
        max_bytes = max_bytes if most is None else min(max_bytes, most)
    params = FetchParams(
        FetchIsolation.TXN_COMMITTED if committed else FetchIsolation.HIGH_WATERMARK,
        request.max_wait_ms,
        min(request.min_bytes, max_bytes),
        max_bytes,
    )

    def answer(results: Sequence[PartitionFetched]) -> None:
        given = not quotas.enabled or _is_given(call, results)
        call.respond(_response(context.answer(results) if given else context.throttled()))

    call.broker.replicas.fetch(params, context.fetches, answer)
    return None


def _is_given(call: ApiCall, results: Sequence[PartitionFetched]) -> bool:
    """Hold the records against the client's quotas; False if it gets none, and is held back."""
    quota = call.broker.quotas.fetch
    size = sum(len(result.records) for result in results)
    request_ms = call.charge_request_time()
    given = True
    if quota.enabled:
        held_ms, given = quota.record_unless_exceeded(call.user, call.client_id, size)
        call.hold_back(held_ms)
        if request_ms and given:
            quota.take_back(call.user, call.client_id, size)
    return given and not request_ms


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
