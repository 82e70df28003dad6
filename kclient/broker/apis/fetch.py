"""Fetch (1), versions 4 to 18: read record batches.

Versions: 7 brought sessions (KIP-227), 9 leader epochs, 11 racks, 12 is flexible and finds diverging logs, 13 names
topics by their ids (KIP-516), 15 and 17 changed how followers show themselves, 16 tells addresses of leaders (KIP-951).
Behaviour: waits for min.bytes up to max.wait; the first partition with data gives a whole batch even above
the limits; with a session only what is new is told. Who has exceeded a quota gets no records, and is held back
(KIP-219). Followers (replica id 0 and up) are refused: there are none. Access: READ on the topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import cast

import attrs

from kclient.broker.apis.call import ApiCall
from kclient.broker.log.unified_log import FetchIsolation
from kclient.broker.replica.fetch_sessions import FetchAnswer
from kclient.broker.replica.fetching import FetchKey, FetchParams, PartitionFetch, PartitionFetched
from kclient.common.acl import AclOperation, ResourceType
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import Errors, FencedLeaderEpochError, KafkaError, TopicAuthorizationError
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
        _fetches(call, request),
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

    refused: list[PartitionFetch] = []
    fetches = context.fetches
    if call.broker.authorizer is not None:
        fetches, refused = _parted(call, fetches)
        context.fetches = [*fetches, *refused]

    def answer(results: Sequence[PartitionFetched]) -> None:
        if refused:
            results = [*results, *(PartitionFetched(one.tp, TopicAuthorizationError()) for one in refused)]
        given = not quotas.enabled or _is_given(call, results)
        call.respond(_response(call, context.answer(results) if given else context.throttled()))

    if refused and not fetches:
        answer(())
    else:
        call.broker.replicas.fetch(params, fetches, answer)
    return None


def _parted(
    call: ApiCall, fetches: Sequence[PartitionFetch]
) -> tuple[list[PartitionFetch], list[PartitionFetch]]:
    """Return what the client may read of all that its session reads, and the rest.

    What this request says is not enough: a rule may have come meanwhile, and another client with the same session.
    """
    readable = call.authorized_names(
        AclOperation.READ, ResourceType.TOPIC, (wanted.tp.topic for wanted in fetches if wanted.tp.topic)
    )
    allowed: list[PartitionFetch] = []
    refused: list[PartitionFetch] = []
    for wanted in fetches:
        # Who names a topic that does not exist by an id is told so.
        may_read = not wanted.tp.topic or wanted.tp.topic in readable
        (allowed if may_read else refused).append(wanted)
    return allowed, refused


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


def _fetches(call: ApiCall, request: FetchRequest) -> list[PartitionFetch]:
    # One that comes twice is read once, as it was asked for last: as by Kafka, or a small request could ask for the
    # same batch a million times.
    fetches: dict[FetchKey, PartitionFetch] = {}
    for topic in request.topics:
        name = topic.topic if topic.topic_id == Uuid.ZERO else _name_of(call, topic.topic_id)
        for data in topic.partitions:
            fetch = PartitionFetch(
                TopicPartition(name, data.partition),
                data.fetch_offset,
                data.partition_max_bytes,
                data.current_leader_epoch,
                data.last_fetched_epoch,
                topic.topic_id,
            )
            fetches[fetch.key] = fetch
    return list(fetches.values())


def _named(call: ApiCall, fetches: Sequence[PartitionFetch]) -> Sequence[PartitionFetch]:
    """Return what is to be read, with the names of topics that have come to be since their session heard of them."""
    if all(fetch.tp.topic for fetch in fetches):
        return fetches
    return [
        attrs.evolve(fetch, tp=TopicPartition(_name_of(call, fetch.topic_id), fetch.tp.partition))
        if not fetch.tp.topic
        else fetch
        for fetch in fetches
    ]


def _name_of(call: ApiCall, topic_id: Uuid) -> str:
    """Return the name of the topic, nothing if there is none."""
    topic = call.broker.controller.cache.topic_by_id(topic_id)
    return "" if topic is None else topic.name


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
