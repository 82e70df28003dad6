"""Transactions: listing, describing and aborting them, and fencing their producers (KIP-664)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any

from kclient.admin.internals.context import (
    COORDINATOR_MOVED,
    OperationContext,
    retry_on_codes,
    said_of_each,
    settle_each,
)
from kclient.admin.internals.driver import Role, Target
from kclient.admin.internals.fan_out import (
    ask_every_broker,
    ask_leaders,
    by_topic,
    outcomes_of,
    settle_brokers,
)
from kclient.admin.internals.steps import Operation
from kclient.admin.transactions import (
    AbortTransactionSpec,
    FencedProducer,
    PartitionProducerState,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kclient.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.list_transactions import ListTransactionsRequest
from kclient.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kclient.utils.futures import KafkaFuture

# A broker that cannot filter would list every transaction.
_FIRST_WITH_DURATION = 1
_FIRST_WITH_PATTERN = 2

_LONGEST_TRANSACTION_MS = 30_000
"""Timeout that a fenced id has until its next producer says its own; less if the caller has less time."""


def list_transactions(
    context: OperationContext,
    states: Collection[str],
    producer_ids: Collection[int],
    duration_ms: int | None,
    transactional_id_pattern: str | None,
) -> Operation[dict[str, TransactionListing]]:
    """ListTransactions at every broker, as each knows only those that it coordinates."""
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=-1 if duration_ms is None else duration_ms,
        transactional_id_pattern=transactional_id_pattern,
    )
    first_version = None if duration_ms is None else _FIRST_WITH_DURATION
    if transactional_id_pattern is not None:
        first_version = _FIRST_WITH_PATTERN
    # A broker that says COORDINATOR_NOT_AVAILABLE shuts down, and is not asked again.
    retry = retry_on_codes(lambda message: [message], Errors.COORDINATOR_LOAD_IN_PROGRESS)
    answers = yield from ask_every_broker(context, request, retry, min_version=first_version)

    def listed(node_id: int, answer: Any) -> dict[str, TransactionListing]:
        return {
            each.transactional_id: TransactionListing(
                each.transactional_id, each.producer_id, TransactionState(each.transaction_state), node_id
            )
            for each in answer.transaction_states
        }

    return settle_brokers(answers, listed, "Listing transactions")


def describe_transactions(
    context: OperationContext, transactional_ids: Sequence[str]
) -> Operation[dict[str, TransactionDescription]]:
    """DescribeTransactions at each id's coordinator."""
    retry = retry_on_codes(attrgetter("transaction_states"), *COORDINATOR_MOVED)
    answers = yield [
        context.call(
            ApiKeys.DESCRIBE_TRANSACTIONS,
            DescribeTransactionsRequest(transactional_ids=[each]),
            Target.of_transactional_id(each),
            retry,
        )
        for each in transactional_ids
    ]
    said = {each: _said_of(each, answer) for each, answer in zip(transactional_ids, answers, strict=True)}
    found = {each: state for each, state in said.items() if not isinstance(state, KafkaError)}
    places = yield [context.coordinator(Target.of_transactional_id(each)) for each in found]
    described = {
        each: _description(state, -1 if isinstance(place, KafkaError) else place.id)
        for (each, state), place in zip(found.items(), places, strict=True)
    }
    return settle_each(transactional_ids, {**said, **described}, "Describing transactions")


def _said_of(transactional_id: str, answer: Any) -> Any:
    if isinstance(answer, KafkaError):
        return answer
    states = {state.transactional_id: state for state in answer.transaction_states}
    state = said_of_each([transactional_id], states)[transactional_id]
    return state if isinstance(state, KafkaError) else Errors.for_code(state.error_code) or state


def _description(state: Any, coordinator_id: int) -> TransactionDescription:
    start_ms = state.transaction_start_time_ms
    return TransactionDescription(
        state.transactional_id,
        coordinator_id,
        TransactionState(state.transaction_state),
        state.producer_id,
        state.producer_epoch,
        state.transaction_timeout_ms,
        start_ms if start_ms >= 0 else None,
        frozenset(
            TopicPartition(topic.topic, partition) for topic in state.topics for partition in topic.partitions
        ),
    )


def describe_producers(
    context: OperationContext, partitions: Collection[TopicPartition], broker_id: int | None
) -> Operation[dict[TopicPartition, PartitionProducerState]]:
    """DescribeProducers at each partition's leader, or all at one broker, of whatever replicas it has."""

    def ask(target: Target, asked: Collection[TopicPartition]) -> KafkaFuture[Any]:
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(asked).items()
            ]
        )
        return context.call(ApiKeys.DESCRIBE_PRODUCERS, request, target)

    outcomes: dict[TopicPartition, PartitionProducerState | KafkaError]
    if broker_id is None:
        outcomes = yield from ask_leaders(context, partitions, ask, _producers)
    else:
        # Another leader is no way out, so what this broker says is the answer.
        (answer,) = yield [ask(Target(Role.NODE, node_id=broker_id), partitions)]
        outcomes = outcomes_of(answer, partitions, _producers)
    return settle_each(partitions, outcomes, "Describing producers")


def _producers(answer: Any) -> dict[TopicPartition, PartitionProducerState | KafkaError]:
    return {
        TopicPartition(topic.name, partition.partition_index): Errors.for_code(
            partition.error_code, partition.error_message
        )
        or PartitionProducerState(tuple(map(_producer, partition.active_producers)))
        for topic in answer.topics
        for partition in topic.partitions
    }


def _producer(state: Any) -> ProducerState:
    epoch, start = state.coordinator_epoch, state.current_txn_start_offset
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        epoch if epoch >= 0 else None,
        start if start >= 0 else None,
    )


def abort_transaction(context: OperationContext, spec: AbortTransactionSpec) -> Operation[None]:
    """WriteTxnMarkers at the partition's leader: a marker there, of which the coordinator hears nothing."""
    tp = spec.topic_partition
    request = WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=spec.producer_id,
                producer_epoch=spec.producer_epoch,
                transaction_result=False,
                topics=[WritableTxnMarkerTopic(name=tp.topic, partition_indexes=[tp.partition])],
                coordinator_epoch=spec.coordinator_epoch or 0,
            )
        ]
    )

    def ask(leader: Target, _asked: Collection[TopicPartition]) -> KafkaFuture[Any]:
        return context.call(ApiKeys.WRITE_TXN_MARKERS, request, leader)

    def read(answer: Any) -> dict[TopicPartition, KafkaError | None]:
        return {
            TopicPartition(topic.name, partition.partition_index): Errors.for_code(partition.error_code)
            for marker in answer.markers
            if marker.producer_id == spec.producer_id
            for topic in marker.topics
            for partition in topic.partitions
        }

    outcomes = yield from ask_leaders(context, [tp], ask, read)
    settle_each([spec], {spec: outcomes[tp]}, "Aborting a transaction")


def fence_producers(
    context: OperationContext, transactional_ids: Sequence[str]
) -> Operation[dict[str, FencedProducer]]:
    """InitProducerId at each id's coordinator, which aborts what is open and gives the id its next epoch."""
    timeout_ms = max(min(context.timer.timeout_ms, _LONGEST_TRANSACTION_MS), 1)
    # While a transaction is being ended: the first request is what ends one that is open.
    retry = retry_on_codes(lambda message: [message], *COORDINATOR_MOVED, Errors.CONCURRENT_TRANSACTIONS)
    answers = yield [
        context.call(
            ApiKeys.INIT_PRODUCER_ID,
            InitProducerIdRequest(transactional_id=each, transaction_timeout_ms=timeout_ms),
            Target.of_transactional_id(each),
            retry,
        )
        for each in transactional_ids
    ]
    outcomes = {
        each: answer
        if isinstance(answer, KafkaError)
        else Errors.for_code(answer.error_code) or FencedProducer(answer.producer_id, answer.producer_epoch)
        for each, answer in zip(transactional_ids, answers, strict=True)
    }
    return settle_each(transactional_ids, outcomes, "Fencing producers")
