"""The choice of the batches that can be sent, and taking them out of their queues for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import attrs

from kclient.common.node import Node
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.idempotence.manager import IdempotenceManager
from kclient.producer.internals.metadata import ProducerMetadata
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.producer_batch import BatchState, ProducerBatch
from kclient.producer.internals.queued_batches import QueuedBatches
from kclient.record.constants import TRANSACTIONAL_BIT

if TYPE_CHECKING:
    from kclient.producer.internals.transactions.manager import TransactionManager

NEVER_MS = 2**62


@attrs.define
class ReadyCheck:
    """The result of a look at the queues."""

    nodes: Mapping[Node, list[PartitionQueue]]
    """The brokers with something to send, and the queues of all partitions they lead, in the order of their turn."""
    next_check_ms: int
    """In how many ms another batch will be ready."""
    unknown_leader_topics: AbstractSet[str]


_NOTHING = ReadyCheck({}, NEVER_MS, frozenset())


@attrs.define(kw_only=True, eq=False, repr=False)
class Drainer:
    """Looks at the queues and empties them. Belongs to the I/O thread."""

    _queued: QueuedBatches
    _metadata: ProducerMetadata
    _idempotence: IdempotenceManager | None
    _transactions: TransactionManager | None
    _config: ProducerConfig
    _on_unsendable: Callable[[ProducerBatch, BaseException], None]

    def ready(self, now_ms: int) -> ReadyCheck:
        """Find the brokers to send to.

        A broker is ready when any batch for it is: full, lingered long enough, or wanted at once because somebody
        flushes, closes or waits for memory. A batch that is to be sent again waits out its backoff first.
        """
        active = self._queued.active_queues()
        if not active:
            return _NOTHING
        cluster = self._metadata.fetch()
        at_once = self._queued.must_send_all or (
            self._transactions is not None and not self._transactions.at_rest
        )
        by_leader: dict[int, list[PartitionQueue]] = {}
        ready: dict[int, Node] = {}
        next_check_ms = NEVER_MS
        unknown: set[str] = set()
        for queue in active:
            leader = queue.leader(cluster)
            if leader is None:
                unknown.add(queue.tp.topic)
                continue
            leader_id = leader.id
            of_leader = by_leader.get(leader_id)
            if of_leader is None:
                by_leader[leader_id] = [queue]
            else:
                of_leader.append(queue)
            if queue.muted or leader_id in ready:
                continue
            batch = self._next_of(queue, now_ms)
            if not self._may_drain(batch, now_ms):
                # Nothing here depends on the time: an answer will change it.
                continue
            wait_ms = self._wait_ms(queue, batch, at_once, now_ms)
            if wait_ms <= 0:
                ready[leader_id] = leader
            elif wait_ms < next_check_ms:
                next_check_ms = wait_ms
        nodes = {leader: by_leader[leader_id] for leader_id, leader in ready.items()}
        return ReadyCheck(nodes, next_check_ms, unknown)

    def _wait_ms(self, queue: PartitionQueue, batch: ProducerBatch, at_once: bool, now_ms: int) -> int:
        if batch.attempts:
            return self._backoff_left_ms(batch, now_ms)
        if at_once or len(queue.batches) > 1 or batch.is_full:
            return 0
        return batch.queued_ms + self._config.linger_ms - now_ms

    def _backoff_left_ms(self, batch: ProducerBatch, now_ms: int) -> int:
        wait_ms = batch.retry_at_ms - now_ms
        if wait_ms > 0 and batch.leader_epoch is not None:
            # The backoff was for the leader that failed; a new one is no reason to wait (KIP-951).
            epoch = self._metadata.leader_and_epoch(batch.tp).epoch
            if epoch is not None and epoch > batch.leader_epoch:
                return 0
        return wait_ms

    def _next_of(self, queue: PartitionQueue, now_ms: int) -> ProducerBatch:
        first = queue.batches[0]
        if self._idempotence is None or not first.attempts:
            return first
        return self._idempotence.next_of(queue, now_ms)

    def _may_drain(self, batch: ProducerBatch, now_ms: int) -> bool:
        if self._transactions is not None and not self._transactions.may_send(batch.tp):
            return False
        return self._idempotence is None or self._idempotence.may_drain(batch, now_ms)

    def drain(self, queues: Iterable[PartitionQueue], now_ms: int) -> list[ProducerBatch]:
        """Take the batches for one request to the leader of `queues`: one of each partition, up to max.request.size.

        A batch larger than that goes alone.
        """
        drained: list[ProducerBatch] = []
        size = 0
        for queue in queues:
            if queue.muted or not queue.batches:
                continue
            batch = self._next_of(queue, now_ms)
            if batch.attempts and self._backoff_left_ms(batch, now_ms) > 0:
                continue
            if not self._may_drain(batch, now_ms):
                continue
            if drained and size + self._expected_size(batch) > self._config.max_request_size:
                break
            if self._take(batch):
                size += batch.builder.size
                drained.append(batch)
        return drained

    def _expected_size(self, batch: ProducerBatch) -> int:
        if batch.sealed or not self._queued.compressor.attributes:
            return batch.builder.size
        return int(batch.builder.uncompressed_size * self._queued.compressor.ratio(batch.tp.topic))

    def _take(self, batch: ProducerBatch) -> bool:
        compressed = None
        compressor = self._queued.compressor
        if not batch.sealed:
            # Closed for appending before anything is counted or numbered.
            body = batch.builder.freeze()
            try:
                compressed = compressor.compress(batch.tp.topic, body)
            except Exception as error:
                self._on_unsendable(batch, error)
                return False
        self._queued.take(batch)
        if self._idempotence is not None:
            self._idempotence.on_drain(batch)
        attributes = compressor.attributes
        if self._transactions is not None:
            self._transactions.on_drain()
            attributes |= TRANSACTIONAL_BIT
        if not batch.sealed:
            batch.seal(attributes, compressed)
        batch.transition_to(BatchState.IN_FLIGHT)
        batch.leader_epoch = self._metadata.leader_epoch(batch.tp)
        # One request at a time keeps the order only if no later batch goes out before a retry.
        batch.queue.muted = self._config.max_in_flight_requests_per_connection == 1
        return True
