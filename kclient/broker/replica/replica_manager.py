"""ReplicaManager: the partitions of this broker, and the requests that append to them and read from them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.log.record_slice import RecordSlice
from kclient.broker.purgatory import DelayedOperationPurgatory
from kclient.broker.replica.delayed_fetch import DelayedFetch
from kclient.broker.replica.delayed_produce import DelayedProduce, ProduceOutcome
from kclient.broker.replica.durable_produce import when_durable
from kclient.broker.replica.fetching import FetchParams, PartitionFetch, PartitionFetched
from kclient.broker.replica.partition import Partition
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    InconsistentTopicIdError,
    KafkaError,
    KafkaStorageError,
    OffsetOutOfRangeError,
    UnknownServerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from kclient.network.transport import Buffer
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

_NO_EPOCH = -1
_BATCH_PREFIX = 12  # base offset, and the length of what follows it
_INLINE_BYTES = 64 * 1024  # of one answer that are read at once, which is quicker for little
_LEAST_SLICE_BYTES = 1024  # what an encoder rather copies


class ReplicaManager:
    """Thread-safe. Lookups take no lock; partitions come and go under one.

    `append` and `fetch` answer through a callback, at once on the calling thread or later on another one.
    Neither may be called with a lock held that an answer could want.
    """

    def __init__(self, log_manager: LogManager, time: Time, log_context: LogContext) -> None:
        self.log_manager = log_manager
        self._time = time
        self._log = log_context.logger(__name__)
        self._lock = threading.Lock()
        self._partitions: dict[TopicPartition, Partition] = {}
        self._offline: dict[TopicPartition, str] = {}
        self._produce_purgatory: DelayedOperationPurgatory[DelayedProduce] = DelayedOperationPurgatory(
            "produce", time
        )
        self._fetch_purgatory: DelayedOperationPurgatory[DelayedFetch] = DelayedOperationPurgatory(
            "fetch", time
        )

    def make_leader(
        self,
        tp: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        directory_id: Uuid | None = None,
        *,
        leader_epoch: int,
    ) -> Partition:
        """Lead `tp` in this epoch. Its log is made in `directory_id` if it is not there. Raises KafkaStorageError."""
        with self._lock:
            partition = self._partitions.get(tp)
            if partition is None:
                log = self.log_manager.get_or_create_log(tp, topic_id, config, directory_id)
                partition = self._partitions[tp] = Partition(log, topic_id, leader_epoch)
            partition.leader_epoch = leader_epoch
            return partition

    def set_offline(self, tp: TopicPartition, why: str) -> None:
        """Answer all requests for `tp` with KafkaStorageError: it has a log, which cannot be reached."""
        self._offline[tp] = why

    def delete_partition(self, tp: TopicPartition) -> None:
        """Lead `tp` no more and delete its log. Requests that wait for it are answered with an error."""
        with self._lock:
            self._partitions.pop(tp, None)
            self._offline.pop(tp, None)
            if self.log_manager.get_log(tp) is not None:
                self.log_manager.delete_log(tp)
        self._changed(tp)

    def update_config(self, tp: TopicPartition, config: LogConfig) -> None:
        """Use other settings for the log of `tp`."""
        self.log_manager.update_config(tp, config)

    def partition(self, tp: TopicPartition) -> Partition:
        """The partition. Raises UnknownTopicOrPartitionError, and KafkaStorageError if its directory is missing."""
        partition = self._partitions.get(tp)
        if partition is None:
            why = self._offline.get(tp)
            if why is not None:
                raise KafkaStorageError(f"{tp} is offline: {why}")
            raise UnknownTopicOrPartitionError(f"This broker does not host {tp}")
        return partition

    def partitions(self) -> list[Partition]:
        """All partitions."""
        return list(self._partitions.values())

    def append(
        self,
        entries: Mapping[TopicPartition, Buffer],
        *,
        required_acks: int,
        timeout_ms: int,
        origin: AppendOrigin,
        answer: Callable[[Mapping[TopicPartition, ProduceOutcome]], None],
    ) -> None:
        """Append to several partitions and answer once all is acknowledged as `required_acks` (-1, 0, 1) asks."""
        outcomes: dict[TopicPartition, ProduceOutcome] = {}
        by_partition: dict[Partition, ProduceOutcome] = {}
        for tp, records in entries.items():
            outcomes[tp] = self._append_one(tp, records, required_acks, origin, by_partition, wait=False)

        def acknowledge() -> None:
            pending = required_acks == -1 and any(
                outcome.error is None and partition.log.high_watermark <= outcome.last_offset
                for partition, outcome in by_partition.items()
            )
            if pending:
                operation = DelayedProduce(timeout_ms, by_partition, lambda: answer(outcomes))
                self._produce_purgatory.try_complete_else_watch(
                    operation, [partition.tp for partition in by_partition]
                )
            else:
                answer(outcomes)
            for tp, outcome in outcomes.items():
                if outcome.error is None:
                    self._changed(tp)

        # The calling thread goes on: a handler that waited for a disk would keep others' requests waiting.
        when_durable(by_partition, self._log, acknowledge)

    def append_locally(self, tp: TopicPartition, records: Buffer) -> ProduceOutcome:
        """Append what the broker itself has to say, as a coordinator does. Never raises; see the outcome's
        error.

        May be called with a group's lock held: fetches that wait for the records take no such lock.
        """
        outcome = self._append_one(tp, records, -1, AppendOrigin.COORDINATOR, {}, wait=True)
        if outcome.error is None:
            self._changed(tp)
        return outcome

    def fetch(
        self,
        params: FetchParams,
        fetches: Sequence[PartitionFetch],
        answer: Callable[[Sequence[PartitionFetched]], None],
    ) -> None:
        """Read from several partitions and answer when there are `min_bytes`, or an error, or `max_wait_ms` is over."""
        self._fetch(params, fetches, answer, self._time.monotonic_ms() + params.max_wait_ms)

    def delete_records(self, tp: TopicPartition, before_offset: int) -> int:
        """Delete the records of `tp` below an offset; returns the new start of its log. Raises KafkaError."""
        start = self.partition(tp).delete_records(before_offset)
        self._changed(tp)
        return start

    def shutdown(self) -> None:
        """Complete no more by time; requests still waiting are dropped with their connections. Idempotent."""
        self._fetch_purgatory.shutdown()
        self._produce_purgatory.shutdown()

    def _fetch(
        self,
        params: FetchParams,
        fetches: Sequence[PartitionFetch],
        answer: Callable[[Sequence[PartitionFetched]], None],
        deadline_ms: int,
    ) -> None:
        partitions = {fetch.tp: self._partitions.get(fetch.tp) for fetch in fetches}
        # Before reading: what is appended meanwhile is rather counted twice than missed. A wait that ends too early
        # for that comes back here and goes on.
        before = {
            partition: partition.appended_bytes for partition in partitions.values() if partition is not None
        }
        fetched = self._read(params, fetches)
        size = sum(len(result.records) for result in fetched)
        remaining_ms = deadline_ms - self._time.monotonic_ms()
        if (
            remaining_ms <= 0
            or not fetches
            or size >= params.min_bytes
            or any(result.error is not None or result.diverging_epoch is not None for result in fetched)
        ):
            answer(fetched)
            return
        operation = DelayedFetch(
            remaining_ms,
            params,
            [(partition, fetch) for fetch in fetches if (partition := partitions[fetch.tp]) is not None],
            before,
            missing_bytes=params.min_bytes - size,
            is_current=lambda partition: self._partitions.get(partition.tp) is partition,
            on_enough=lambda: self._fetch(params, fetches, answer, deadline_ms),
        )
        self._fetch_purgatory.try_complete_else_watch(operation, [fetch.tp for fetch in fetches])

    def _changed(self, tp: TopicPartition) -> None:
        self._produce_purgatory.check_and_complete(tp)
        self._fetch_purgatory.check_and_complete(tp)

    def _append_one(
        self,
        tp: TopicPartition,
        records: Buffer,
        required_acks: int,
        origin: AppendOrigin,
        by_partition: dict[Partition, ProduceOutcome],
        *,
        wait: bool,
    ) -> ProduceOutcome:
        try:
            partition = self.partition(tp)
            info = partition.append(records, origin, required_acks, wait=wait)
        except KafkaError as error:
            if isinstance(error, KafkaStorageError):
                self._log.error("Appending to %s failed: %s", tp, error)
            return ProduceOutcome(error)
        except Exception:
            self._log.exception("Appending to %s failed", tp)
            return ProduceOutcome(UnknownServerError())
        outcome = ProduceOutcome(
            None, info.first_offset, info.log_append_time_ms, info.log_start_offset, info.last_offset
        )
        by_partition[partition] = outcome
        return outcome

    def _read(self, params: FetchParams, fetches: Sequence[PartitionFetch]) -> list[PartitionFetched]:
        remaining = params.max_bytes
        # The first partition that has anything gives at least one batch, however big: a consumer whose limits
        # are smaller than a batch must still get past it (KIP-74).
        min_one_batch = True
        inline = _INLINE_BYTES
        results = []
        for fetch in fetches:
            result = self._read_one(
                params,
                fetch,
                max(min(fetch.max_bytes, remaining), 0),
                min_one_batch,
                max(inline, _LEAST_SLICE_BYTES),
            )
            size = len(result.records)
            if not isinstance(result.records, RecordSlice):
                inline -= size
            if size:
                min_one_batch = False
                remaining -= size
            results.append(result)
        return results

    def _read_one(
        self,
        params: FetchParams,
        fetch: PartitionFetch,
        max_bytes: int,
        min_one_batch: bool,
        inline_bytes: int,
    ) -> PartitionFetched:
        partition: Partition | None = None
        try:
            partition = self._partition_of(fetch)
            partition.check_leader_epoch(fetch.current_leader_epoch)
            diverging = _divergence(partition, fetch)
            if diverging is not None:
                return self._watermarks(PartitionFetched(fetch.tp, diverging_epoch=diverging), partition)
            info = partition.log.read(
                fetch.offset,
                max_bytes,
                isolation=params.isolation,
                min_one_batch=min_one_batch,
                inline_bytes=inline_bytes,
            )
        except OffsetOutOfRangeError as error:
            result = PartitionFetched(fetch.tp, error)
            # Consumers look at the bounds to decide where to go on.
            return result if partition is None else self._watermarks(result, partition)
        except KafkaError as error:
            if isinstance(error, KafkaStorageError):
                self._log.error("Reading %s failed: %s", fetch.tp, error)
            return PartitionFetched(fetch.tp, error)
        except Exception:
            self._log.exception("Reading %s failed", fetch.tp)
            return PartitionFetched(fetch.tp, UnknownServerError())
        # Behind other partitions' data there may be room for less than a batch. Clients take a batch that is cut
        # for a broker from before KIP-74, at which they cannot get on.
        cut = not min_one_batch and _is_first_batch_cut(info.records)
        return PartitionFetched(
            fetch.tp,
            None,
            b"" if cut else info.records,
            info.high_watermark,
            info.last_stable_offset,
            info.log_start_offset,
            info.aborted,
        )

    def _partition_of(self, fetch: PartitionFetch) -> Partition:
        if fetch.topic_id == Uuid.ZERO:
            return self.partition(fetch.tp)
        if not fetch.tp.topic:
            raise UnknownTopicIdError(f"There is no topic with the id {fetch.topic_id}")
        partition = self.partition(fetch.tp)
        if partition.topic_id != fetch.topic_id:
            raise InconsistentTopicIdError(
                f"{fetch.tp} has the topic id {partition.topic_id}, and the request is for {fetch.topic_id}"
            )
        return partition

    @staticmethod
    def _watermarks(result: PartitionFetched, partition: Partition) -> PartitionFetched:
        result.high_watermark = partition.log.high_watermark
        result.last_stable_offset = partition.log.last_stable_offset
        result.log_start_offset = partition.log.log_start_offset
        return result


def _is_first_batch_cut(records: Buffer | RecordSlice) -> bool:
    if isinstance(records, RecordSlice):
        return len(records) < records.first_batch_size
    return len(records) < _BATCH_PREFIX or len(records) < _BATCH_PREFIX + int.from_bytes(
        records[8:_BATCH_PREFIX], "big"
    )


def _divergence(partition: Partition, fetch: PartitionFetch) -> tuple[int, int] | None:
    """Return the epoch and end offset at which the log parts from what the client read before (KIP-595).

    None if they agree.
    """
    if fetch.last_fetched_epoch == _NO_EPOCH:
        return None
    epoch, end_offset = partition.end_offset_for_epoch(fetch.last_fetched_epoch)
    if epoch == _NO_EPOCH or end_offset < 0:
        raise OffsetOutOfRangeError(
            f"{fetch.tp} has no leader epoch {fetch.last_fetched_epoch}, in which {fetch.offset} was read"
        )
    if epoch < fetch.last_fetched_epoch or end_offset < fetch.offset:
        return epoch, end_offset
    return None
