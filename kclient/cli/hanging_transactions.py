"""Open transactions that no coordinator will end, found as Kafka's own tool finds them (KIP-664)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from kclient.admin import KafkaAdminClient, ProducerState, TransactionDescription
from kclient.common.topic_partition import TopicPartition
from kclient.errors import AdminError, TransactionalIdNotFoundError

_LARGEST_BATCH = 500
"""Topics or partitions in one request, which a broker can answer without stopping everything else."""

T = TypeVar("T")
OpenTransaction = tuple[TopicPartition, ProducerState]


def find_hanging(
    admin: KafkaAdminClient,
    *,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    last_written_before_ms: int,
) -> list[OpenTransaction]:
    """Return the hanging transactions of the partitions given, in order.

    One is open, was not written to since `last_written_before_ms`, and its coordinator either knows no transactional
    id of its producer or will write no marker to the partition.
    """
    candidates = [
        (tp, state)
        for batch in _batches(_partitions(admin, topic, partition, broker_id))
        for tp, found in admin.describe_producers(batch, broker_id).items()
        for state in found.active_producers
        if state.current_transaction_start_offset is not None
        and state.last_timestamp_ms < last_written_before_ms
    ]
    if not candidates:
        return []
    producer_ids = {state.producer_id for _, state in candidates}
    listed = admin.list_transactions(producer_ids=producer_ids).values()
    ids = {each.producer_id: each.transactional_id for each in listed}
    described = _describe(admin, sorted(set(ids.values())))

    def is_hanging(candidate: OpenTransaction) -> bool:
        tp, state = candidate
        transaction = described.get(ids.get(state.producer_id, ""))
        return transaction is None or tp not in transaction.topic_partitions

    return sorted(filter(is_hanging, candidates), key=lambda each: (each[0], each[1].producer_id))


def _partitions(
    admin: KafkaAdminClient, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    if topic is not None and partition is not None:
        return [TopicPartition(topic, partition)]
    topics = sorted(admin.list_topics()) if topic is None else [topic]
    return [
        TopicPartition(name, found.partition)
        for batch in _batches(topics)
        for name, description in admin.describe_topics(batch).items()
        for found in description.partitions
        if broker_id is None or any(node.id == broker_id for node in found.replicas)
    ]


def _describe(admin: KafkaAdminClient, ids: Sequence[str]) -> Mapping[str, TransactionDescription]:
    """The transactions of those ids that there still are."""
    if not ids:
        return {}
    try:
        return admin.describe_transactions(ids)
    except TransactionalIdNotFoundError:
        return {}
    except AdminError as error:
        other = [e for e in error.errors.values() if not isinstance(e, TransactionalIdNotFoundError)]
        if other:
            raise
        return error.results


def _batches(entries: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(entries), _LARGEST_BATCH):
        yield entries[start : start + _LARGEST_BATCH]
