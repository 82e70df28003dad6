"""Fetch (1), versions 4 to 18: read record batches.

Versions: 7 brought sessions (KIP-227), 9 leader epochs, 11 racks, 12 is flexible and finds diverging logs, 13 names
topics by their ids (KIP-516), 15 and 17 changed how followers show themselves, 16 tells addresses of leaders (KIP-951).
Behaviour: waits for min.bytes up to max.wait; the first partition with data gives a whole batch even above
the limits; with a session only what is new is told. Followers (replica id 0 and up) are refused: there are
none. Access: READ on the topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import cast

import attrs

from kclient.broker.apis.call import ApiCall
from kclient.broker.log.unified_log import FetchIsolation
from kclient.broker.replica.fetch_sessions import FetchAnswer
from kclient.broker.replica.fetching import FetchParams, PartitionFetch, PartitionFetched
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import Errors, FencedLeaderEpochError, KafkaError
from kclient.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

_READ_COMMITTED = 1
_TOPIC_IDS_FROM = 13
_LEADERS_FROM = 16


def fetch(call: ApiCall, request: FetchRequest) -> FetchResponse | None:
    """Find out what is read, read it, and tell what is new."""
    if max(request.replica_id, request.replica_state.replica_id) >= 0:
        return FetchResponse(error_code=int(Errors.CLUSTER_AUTHORIZATION_FAILED))
    uses_topic_ids = call.version >= _TOPIC_IDS_FROM
    context = call.broker.fetch_sessions.context(
        request.session_id,
        request.session_epoch,
        _fetches(request),
        [
            TopicPartition(topic.topic, partition)
            if topic.topic_id == Uuid.ZERO
            else (topic.topic_id, partition)
            for topic in request.forgotten_topics_data
            for partition in topic.partitions
        ],
        uses_topic_ids=uses_topic_ids,
    )
    if context.error_code:
        return FetchResponse(error_code=context.error_code)
    if uses_topic_ids:
        context.fetches = _named(call, context.fetches)
    committed = request.isolation_level == _READ_COMMITTED
    max_bytes = min(request.max_bytes, call.broker.config.fetch_max_bytes)
    params = FetchParams(
        FetchIsolation.TXN_COMMITTED if committed else FetchIsolation.HIGH_WATERMARK,
        request.max_wait_ms,
        min(request.min_bytes, max_bytes),
        max_bytes,
    )

    def answer(results: Sequence[PartitionFetched]) -> None:
        call.respond(_response(call, context.answer(results)))

    call.broker.replicas.fetch(params, context.fetches, answer)
    return None


def _fetches(request: FetchRequest) -> list[PartitionFetch]:
    return [
        PartitionFetch(
            TopicPartition(topic.topic, data.partition),
            data.fetch_offset,
            data.partition_max_bytes,
            data.current_leader_epoch,
            data.last_fetched_epoch,
            topic.topic_id,
        )
        for topic in request.topics
        for data in topic.partitions
    ]


def _named(call: ApiCall, fetches: Sequence[PartitionFetch]) -> list[PartitionFetch]:
    """Return what is to be read with the names of the topics; those of a session may have come to be meanwhile."""
    cache = call.broker.controller.cache
    named = []
    for fetch in fetches:
        if not fetch.tp.topic:
            topic = cache.topic_by_id(fetch.topic_id)
            if topic is not None:
                fetch = attrs.evolve(fetch, tp=TopicPartition(topic.name, fetch.tp.partition))
        named.append(fetch)
    return named


def _response(call: ApiCall, answer: FetchAnswer) -> FetchResponse:
    topics: list[FetchableTopicResponse] = []
    response = FetchResponse(error_code=answer.error_code, session_id=answer.session_id, responses=topics)
    for fetch, result in answer.results:
        # Partitions of a topic that do not stand together make two entries, as their order is what was asked
        # for.
        if not topics or topics[-1].topic != fetch.tp.topic or topics[-1].topic_id != fetch.topic_id:
            topics.append(
                FetchableTopicResponse(topic=fetch.tp.topic, topic_id=fetch.topic_id, partitions=[])
            )
        data = _partition(result)
        if call.version >= _LEADERS_FROM and isinstance(result.error, FencedLeaderEpochError):
            _name_leader(call, fetch.tp, data, response)
        topics[-1].partitions.append(data)
    return response


def _name_leader(call: ApiCall, tp: TopicPartition, data: PartitionData, response: FetchResponse) -> None:
    """Tell a client whose metadata is old who leads a partition, so that it need not ask."""
    broker = call.broker
    with suppress(KafkaError):  # deleted meanwhile
        epoch = broker.replicas.partition(tp).leader_epoch
        data.current_leader = LeaderIdAndEpoch(leader_id=broker.node_id, leader_epoch=epoch)
        endpoint = call.endpoint
        response.node_endpoints = [
            NodeEndpoint(node_id=broker.node_id, host=endpoint.host, port=endpoint.port)
        ]


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
