"""Batches for one broker, as a produce request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.compress.codec import CompressionType
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

# The first version whose brokers know the record format, and the one that brought zstd (KIP-110).
_MIN_VERSION = 3
_MIN_VERSION_ZSTD = 7
# Up to here brokers want partitions to be made part of a transaction first; later they do it themselves (KIP-890).
_MAX_VERSION_ADDED_FIRST = 11
# From here on topics are named by their ids alone (KIP-516).
TOPIC_ID_VERSION = 13


@attrs.frozen
class Transaction:
    """The transaction that batches belong to; `by_broker` if their partitions were not made part of it yet."""

    transactional_id: str
    by_broker: bool


def versions_for(
    codec: CompressionType, *, by_id: bool, transaction: Transaction | None = None
) -> tuple[int, int | None]:
    """The first and last version for a request.

    Without the ids of all its topics, as from a broker that has none, it has to use names.
    """
    first = _MIN_VERSION_ZSTD if codec is CompressionType.ZSTD else _MIN_VERSION
    last = None if by_id else TOPIC_ID_VERSION - 1
    if transaction is None:
        return first, last
    if transaction.by_broker:
        return _MAX_VERSION_ADDED_FIRST + 1, last
    return first, _MAX_VERSION_ADDED_FIRST


class ProduceRequestPlan:
    """The batches of one request, how to make it, and how to find them again in the answer. I/O thread."""

    __slots__ = (
        "_acks",
        "_by_partition",
        "_names",
        "_timeout_ms",
        "_transaction",
        "batches",
        "max_version",
        "min_version",
        "topic_ids",
    )

    def __init__(
        self,
        batches: Sequence[ProducerBatch],
        topic_id: Callable[[str], Uuid | None],
        *,
        acks: int,
        timeout_ms: int,
        codec: CompressionType,
        transaction: Transaction | None = None,
    ) -> None:
        self.batches = batches
        self._acks = acks
        self._timeout_ms = timeout_ms
        self._transaction = transaction
        self.topic_ids: dict[str, Uuid | None] = {}
        """The names of the topics, with their ids as far as they are known."""
        # Made for the first answer that needs them.
        self._names: dict[Uuid | None, str] | None = None
        self._by_partition: dict[TopicPartition, ProducerBatch] | None = None
        known = True
        for batch in batches:
            topic = batch.tp.topic
            if topic not in self.topic_ids:
                found = self.topic_ids[topic] = topic_id(topic)
                known = known and found is not None
        self.min_version, self.max_version = versions_for(codec, by_id=known, transaction=transaction)

    def build(self, version: int) -> ProduceRequest:
        """The request in `version`. It refers to the batches' bytes and does not copy them."""
        topics: dict[str, TopicProduceData] = {}
        for batch in self.batches:
            tp = batch.tp
            topic = topics.get(tp.topic)
            if topic is None:
                topic = topics[tp.topic] = TopicProduceData(partition_data=[])
                topic_id = self.topic_ids[tp.topic]
                if version >= TOPIC_ID_VERSION and topic_id is not None:
                    topic.topic_id = topic_id
                else:
                    topic.name = tp.topic
            topic.partition_data.append(PartitionProduceData(index=tp.partition, records=batch.wire_bytes()))
        return ProduceRequest(
            transactional_id=None if self._transaction is None else self._transaction.transactional_id,
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            topic_data=list(topics.values()),
        )

    def find(self, name: str, topic_id: Uuid, partition: int) -> ProducerBatch | None:
        """The batch that an answer speaks of, by its topic's name or, in newer versions, its id."""
        if not name:
            if self._names is None:
                self._names = {known_id: name for name, known_id in self.topic_ids.items()}
            name = self._names.get(topic_id, "")
        if len(self.batches) == 1:
            tp = self.batches[0].tp
            return self.batches[0] if tp.partition == partition and tp.topic == name else None
        if self._by_partition is None:
            self._by_partition = {batch.tp: batch for batch in self.batches}
        return self._by_partition.get(TopicPartition(name, partition))
