"""Answers to the requests of a transaction that a proxy gives in a coordinator's place, or in place of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.network.produce_answers import refuse as refuse_produce
from kclient.client.coordinators import CoordinatorType
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kclient.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kclient.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kclient.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

Answering = Callable[[Any], Any]


def refuse(api: ApiKeys, code: int) -> Answering:
    """Answer requests of `api`, and every partition of them, with `code`."""
    return _REFUSALS[api](code)


def refuse_to_find(kind: CoordinatorType, code: int) -> Answering:
    """Answer requests for coordinators of this kind with `code`, and leave the others to the broker."""

    def answer(message: FindCoordinatorRequest) -> FindCoordinatorResponse | None:
        if message.key_type != kind:
            return None
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code)
                for key in message.coordinator_keys
            ]
        )

    return answer


def _refuse_init(code: int) -> Answering:
    def answer(message: InitProducerIdRequest) -> InitProducerIdResponse:
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)

    return answer


def _refuse_partitions(code: int) -> Answering:
    def answer(message: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(partition_index=number, partition_error_code=code)
                        for number in topic.partitions
                    ],
                )
                for topic in message.v3_and_below_topics
            ]
        )

    return answer


def _refuse_group(code: int) -> Answering:
    def answer(message: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=code)

    return answer


def _refuse_offsets(code: int) -> Answering:
    def answer(message: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=[
                        TxnOffsetCommitResponsePartition(
                            partition_index=partition.partition_index, error_code=code
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )

    return answer


def _refuse_end(code: int) -> Answering:
    def answer(message: EndTxnRequest) -> EndTxnResponse:
        return EndTxnResponse(error_code=code)

    return answer


_REFUSALS: dict[ApiKeys, Callable[[int], Answering]] = {
    ApiKeys.PRODUCE: refuse_produce,
    ApiKeys.INIT_PRODUCER_ID: _refuse_init,
    ApiKeys.ADD_PARTITIONS_TO_TXN: _refuse_partitions,
    ApiKeys.ADD_OFFSETS_TO_TXN: _refuse_group,
    ApiKeys.TXN_OFFSET_COMMIT: _refuse_offsets,
    ApiKeys.END_TXN: _refuse_end,
}
