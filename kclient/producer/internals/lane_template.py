"""A lane for records to one partition, from what a request and its answer are as bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.producer.internals.produce_request import TOPIC_ID_VERSION
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import response_buffers
from kclient.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kclient.record import Lane

_FLEXIBLE_HEADER_VERSION = 2
_Frames: TypeAlias = Callable[[ProduceRequest], bytes]
_RECORDS = bytes(range(64))  # stand for a batch; their length takes one byte as a varint
_OFFSET, _TIME_MS, _LOG_START = 0x7A10_52C3_41D5_06E7, 0x7B20_63D4_52E6_17F8, 0x7C30_74E5_63F7_28A9


def lane_of(
    tp: TopicPartition, topic_id: Uuid | None, version: int, frame_of: _Frames, *, acks: int, timeout_ms: int
) -> Lane:
    """A lane for single batches to one partition; `frame_of` gives the bytes of a request in `version`."""
    name = tp.topic if topic_id is None or version < TOPIC_ID_VERSION else ""
    partition = PartitionProduceData(index=tp.partition, records=_RECORDS)
    topic = TopicProduceData(name=name, topic_id=topic_id or Uuid.ZERO, partition_data=[partition])
    request = frame_of(
        ProduceRequest(transactional_id=None, acks=acks, timeout_ms=timeout_ms, topic_data=[topic])
    )
    compact = ApiKeys.PRODUCE.request_header_version(version) >= _FLEXIBLE_HEADER_VERSION
    at = request.index(_RECORDS)
    answered = PartitionProduceResponse(
        index=tp.partition,
        error_code=0,
        base_offset=_OFFSET,
        log_append_time_ms=_TIME_MS,
        log_start_offset=_LOG_START,
        record_errors=[],
    )
    written = TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=[answered])
    response = ProduceResponse(responses=[written], throttle_time_ms=0)
    answer = b"".join(response_buffers(response, ApiKeys.PRODUCE, version, 0))
    offset_at, time_at, start_at = (
        answer.find(number.to_bytes(8, "big")) for number in (_OFFSET, _TIME_MS, _LOG_START)
    )
    if start_at < 0:
        start_at = offset_at  # old answers do not say where the log starts
    records_at = at - (1 if compact else 4)
    return Lane(
        request[:records_at], request[at + len(_RECORDS) :], compact, answer, (offset_at, time_at, start_at)
    )
