"""LoneRecords: records that come one at a time go past the queues, and past the I/O thread."""

from __future__ import annotations

from collections.abc import Callable

from kclient.client.kafka_client import KafkaClient
from kclient.client.requests import ClientRequest
from kclient.common.uuid import Uuid
from kclient.compress.codec import CompressionType
from kclient.errors import UnsupportedVersionError
from kclient.producer.internals.accumulator import RecordAccumulator
from kclient.producer.internals.drain import Drainer
from kclient.producer.internals.idempotence.manager import IdempotenceManager
from kclient.producer.internals.lane_template import lane_of
from kclient.producer.internals.metadata import ProducerMetadata
from kclient.producer.internals.metrics import ProducerMetrics
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.produce_request import versions_for
from kclient.producer.internals.producer_batch import NO_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, ProducerBatch
from kclient.protocol.api_keys import ApiKeys
from kclient.record import BatchBuilder, Lane
from kclient.utils.time import Timer

RequestMaker = Callable[[int, list[ProducerBatch], int], ClientRequest]


class LoneRecords:
    """Opens a `Lane` when there is nothing to do, and takes over what went through it.

    For a program that sends a record and waits for it, the way through queue, I/O thread and back costs more than the
    record. If the last request had one record and all that was ever sent has its outcome, the next record for the
    same partition may be written by the thread that sends it. What comes of that is settled here, on the I/O thread,
    to which the rest belongs: for sequences, metrics and metadata the records were sent by it.

    Only for producers that do not linger, have no codec and want acknowledgements (see `build_producer`).
    """

    def __init__(
        self,
        *,
        client: KafkaClient,
        metadata: ProducerMetadata,
        accumulator: RecordAccumulator,
        drainer: Drainer,
        idempotence: IdempotenceManager | None,
        metrics: ProducerMetrics,
        acks: int,
        request_timeout_ms: int,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._accumulator = accumulator
        self._drainer = drainer
        self._idempotence = idempotence
        self._metrics = metrics
        self._acks = acks
        self._request_timeout_ms = request_timeout_ms
        self._queue: PartitionQueue | None = None
        self._lane: Lane | None = None
        self._made_for: tuple[PartitionQueue, int, Uuid | None] | None = None

    def note_sent(self, batches: list[ProducerBatch]) -> None:
        """A request with `batches` goes out in the usual way."""
        first = batches[0]
        alone = len(batches) == 1 and first.builder.count == 1 and not first.attempts
        self._queue = first.queue if alone else None

    def offer(self, make_request: RequestMaker, now_ms: int) -> None:
        """Let the next record be sent during the next poll, if it can be."""
        queue = self._queue
        if queue is None or self._accumulator.incomplete or queue.batches or queue.muted:
            return
        leader = queue.leader(self._metadata.fetch())
        if leader is None:
            return
        named = (NO_PRODUCER_ID, NO_EPOCH, NO_SEQUENCE)
        if self._idempotence is not None:
            sequence = self._idempotence.next_sequence_at_rest(queue, now_ms)
            if sequence is None:
                return
            identity = self._idempotence.identity
            named = (identity.producer_id, identity.epoch, sequence)
        lane, version = self._lane_to(queue, leader.id, now_ms)
        if lane is None:
            return
        lane.prepare(*named)
        queue.lane = lane

        def settle(
            builder: BatchBuilder | None, answer: tuple[int, int] | None, now_ms: int
        ) -> ClientRequest | None:
            batch = self._settle(queue, lane, builder, answer, now_ms)
            return None if batch is None else make_request(leader.id, [batch], now_ms)

        self._client.lend(leader.id, version, lane, settle)

    def _lane_to(self, queue: PartitionQueue, node_id: int, now_ms: int) -> tuple[Lane | None, int]:
        topic_id = self._metadata.topic_id(queue.tp.topic)
        known = self._client.api_versions(node_id)
        if known is None:
            return None, -1
        try:
            version = known.usable_version(
                ApiKeys.PRODUCE, *versions_for(CompressionType.NONE, by_id=topic_id is not None)
            )
        except UnsupportedVersionError:
            return None, -1  # whoever sends in the usual way will be told
        made_for = (queue, version, topic_id)
        if made_for != self._made_for:
            if self._made_for is not None:
                self._made_for[0].lane = None

            def frame_of(message: object) -> bytes:
                return self._client.frame_of(self._client.new_request(node_id, message, now_ms), version)

            self._lane = lane_of(
                queue.tp, topic_id, version, frame_of, acks=self._acks, timeout_ms=self._request_timeout_ms
            )
            self._accumulator.entry.lane = self._lane
            self._made_for = made_for
        return self._lane, version

    def _settle(
        self,
        queue: PartitionQueue,
        lane: Lane,
        builder: BatchBuilder | None,
        answer: tuple[int, int] | None,
        now_ms: int,
    ) -> ProducerBatch | None:
        self._accumulator.close_lane(queue)
        unanswered = builder if answer is None else None
        if lane.answered:
            if self._idempotence is not None:
                self._idempotence.on_lone_successes(queue, lane.answered, now_ms)
            self._metadata.add_topic(queue.tp.topic, now_ms)
            self._metrics.lone_records_sent(
                lane.answered,
                lane.total_bytes - (0 if unanswered is None else unanswered.size),
                lane.largest_bytes,
                now_ms,
            )
            self._metrics.answered(lane.answered, lane.latency_ms, lane.longest_ms)
        if builder is not None and answer is not None:
            # Whoever waited for it has not yet run, or was interrupted.
            builder.result.complete(*answer)
        if unanswered is None:
            return None
        batch = self._accumulator.adopt(unanswered, queue)
        self._drainer.sent(batch)
        return batch

    def wait_until_now(self, timer: Timer | None) -> bool:
        """Wait for the record that is on its way past the queues, if one is; False if `timer` expired. Any thread."""
        lane = self._lane
        builder = None if lane is None else lane.pending
        if builder is None:
            return True
        return builder.result.wait(None if timer is None else timer.remaining_ms() / 1000)
