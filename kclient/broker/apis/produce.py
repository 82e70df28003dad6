"""Produce (0), versions 3 to 13: append record batches.

Versions: below 3 come the old record formats, which are refused, though 0 is what ApiVersions names; 8 brought
errors for single records; 9 is flexible, 13 names topics by their ids (KIP-516). Behaviour: each partition succeeds
or fails by itself; acks 0 has no response, and closes the connection if anything failed, the only way to say so.
Transactions are not served: records of one are refused, without a transactional id with the error that Kafka has
for that. Access: WRITE on the topics.
"""

from __future__ import annotations

from collections.abc import Mapping

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.topic_ids import name_topics
from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.metadata.topic_names import INTERNAL_TOPICS
from kclient.broker.replica.delayed_produce import ProduceOutcome
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    Errors,
    InvalidRecordError,
    InvalidRequiredAcksError,
    InvalidTimestampError,
    InvalidTopicError,
    KafkaError,
    TransactionalIdAuthorizationError,
    UnknownTopicIdError,
    UnsupportedVersionError,
)
from kclient.network.transport import Buffer
from kclient.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.record import constants as c

_TOPIC_IDS_FROM = 13
_LOW_ATTRIBUTES_AT = c.ATTRIBUTES_AT + 1


def produce(call: ApiCall, request: ProduceRequest) -> None:
    """Append what is to be appended, and answer when it is acknowledged."""
    refused: dict[TopicPartition, ProduceOutcome] = {}
    entries: dict[TopicPartition, Buffer] = {}
    whole_request_error = _check(request)
    unknown = name_topics(call, request.topic_data) if call.version >= _TOPIC_IDS_FROM else ()
    for topic in request.topic_data:
        internal = topic.name in INTERNAL_TOPICS
        for data in topic.partition_data:
            tp = TopicPartition(topic.name, data.index)
            if whole_request_error is not None:
                refused[tp] = ProduceOutcome(whole_request_error)
            elif topic.name in unknown:
                refused[tp] = ProduceOutcome(
                    UnknownTopicIdError(f"There is no topic with the id {topic.topic_id}")
                )
            elif internal:
                refused[tp] = ProduceOutcome(
                    InvalidTopicError(f"{topic.name} is written to by the broker only")
                )
            elif data.records is None or tp in entries or tp in refused:
                entries.pop(tp, None)
                refused[tp] = ProduceOutcome(
                    InvalidRecordError(f"{tp} must come once, with one record batch")
                )
            else:
                entries[tp] = data.records

    def answer(outcomes: Mapping[TopicPartition, ProduceOutcome]) -> None:
        _answer(call, request, {**outcomes, **refused})

    if not entries:
        answer({})
        return
    call.broker.replicas.append(
        entries,
        required_acks=request.acks,
        timeout_ms=request.timeout_ms,
        origin=AppendOrigin.CLIENT,
        answer=answer,
    )


def _check(request: ProduceRequest) -> KafkaError | None:
    if request.transactional_id is None and any(
        _is_transactional(data.records) for topic in request.topic_data for data in topic.partition_data
    ):
        # Nobody could ever end such a transaction, and readers of committed records would wait for that.
        return TransactionalIdAuthorizationError("Transactional records need a transactional id")
    if request.acks not in {-1, 0, 1}:
        return InvalidRequiredAcksError(f"acks can be -1, 0 or 1, not {request.acks}")
    if request.transactional_id is not None:
        return UnsupportedVersionError("This broker does not serve transactions")
    return None


def _is_transactional(records: Buffer | None) -> bool:
    return (
        records is not None
        and len(records) > _LOW_ATTRIBUTES_AT
        and records[c.MAGIC_AT] == c.MAGIC_2
        and bool(records[_LOW_ATTRIBUTES_AT] & c.TRANSACTIONAL_BIT)
    )


def _answer(
    call: ApiCall, request: ProduceRequest, outcomes: Mapping[TopicPartition, ProduceOutcome]
) -> None:
    if request.acks == 0:
        if any(outcome.error is not None for outcome in outcomes.values()):
            call.close()
        else:
            call.no_response()
        return
    call.respond(
        ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        _partition_response(data.index, outcomes[TopicPartition(topic.name, data.index)])
                        for data in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )
    )


def _partition_response(index: int, outcome: ProduceOutcome) -> PartitionProduceResponse:
    error = outcome.error
    if error is None:
        return PartitionProduceResponse(
            index=index,
            base_offset=outcome.base_offset,
            log_append_time_ms=outcome.log_append_time_ms,
            log_start_offset=outcome.log_start_offset,
        )
    rejected = error.record_errors if isinstance(error, InvalidRecordError | InvalidTimestampError) else ()
    return PartitionProduceResponse(
        index=index,
        error_code=Errors.code_for(error),
        base_offset=-1,
        error_message=str(error),
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=number, batch_index_error_message=message)
            for number, message in rejected
        ],
    )
