"""Producers and consumers that write down what they do."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from harness.checker.history import Outcome, Place
from harness.checker.log import ConsumerLog, HistoryLog, ProducerLog
from harness.real_kafka.logs import PartitionLog
from harness.topics import end_offsets, partitions_of, read_all
from kclient.admin import KafkaAdminClient
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener, ConsumerRecord, ConsumerRecords
from kclient.errors import KafkaError
from kclient.producer import KafkaProducer, RecordMetadata

_UNKNOWN = "may have been written"
_AT_ONCE = 500


def outcome_of(error: BaseException) -> Outcome:
    """Outcome of a record that failed: an error that does not say otherwise says that it was not written."""
    return "unknown" if _UNKNOWN in str(error) else "fail"


class RecordedProducer:
    """Sends records and writes down what becomes of each, which callback and future have to agree about.

    The counts are written on the producer's I/O thread, but for what `send` refuses and what is sent alone.
    """

    def __init__(self, log: ProducerLog) -> None:
        self.log = log
        self.acked = 0
        self.failed: Counter[str] = Counter()
        """Errors of records that failed, by their names."""
        self.problems: list[str] = []
        """Records about which callback and future did not agree, or whose future was never done."""
        self._told: dict[int, tuple[int | None, str]] = {}
        """Number -> offset and error, as the callback had them."""
        self._futures: deque[tuple[int, Any]] = deque()

    def send(
        self,
        producer: KafkaProducer[bytes, bytes],
        topic: str,
        value: bytes,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        transaction: int | None = None,
    ) -> None:
        """Send a record with a callback, without waiting."""
        number = self.log.send(topic, value, partition, transaction)

        def delivered(metadata: RecordMetadata, error: KafkaError | None) -> None:
            self._told[number] = _answer(metadata, error)
            self._write(number, metadata, error)

        try:
            future = producer.send(topic, value, key=key, partition=partition, on_delivery=delivered)
        except KafkaError as error:
            self._write(number, None, error)
        else:
            self._futures.append((number, future))

    def send_alone(
        self,
        producer: KafkaProducer[bytes, bytes],
        topic: str,
        value: bytes,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timeout_s: float,
    ) -> None:
        """Send a record without a callback and wait for its future."""
        number = self.log.send(topic, value, partition)
        try:
            metadata = producer.send(topic, value, key=key, partition=partition).result(timeout_s)
        except KafkaError as error:
            self._write(number, None, error)
        else:
            self._write(number, metadata, None)

    def look_at_futures(self) -> None:
        """Hold the futures that are done against what the callbacks were told."""
        while self._futures and self._futures[0][1].done() and self._futures[0][0] in self._told:
            number, future = self._futures.popleft()
            error = future.exception()
            said, told = _answer(None if error else future.result(), error), self._told.pop(number)
            if said != told:
                self.problems.append(
                    f"unaccounted: record {number} of {self.log.name}: its future says {said}, its callback {told}"
                )

    def closed(self) -> None:
        """The producer was closed: every outcome must be there."""
        self.look_at_futures()
        self.problems += [
            f"unaccounted: the future of record {number} of {self.log.name} has no outcome"
            for number, _ in self._futures
        ]
        self.log.closed()

    def _write(self, number: int, metadata: RecordMetadata | None, error: KafkaError | None) -> None:
        if error is not None:
            self.failed[type(error).__name__] += 1
            self.log.failed(number, f"{type(error).__name__}: {error}", outcome_of(error))
        else:
            assert metadata is not None
            self.log.acked(number, metadata.partition, metadata.offset)
            self.acked += 1


def _answer(metadata: RecordMetadata | None, error: BaseException | None) -> tuple[int | None, str]:
    if error is not None:
        return None, f"{type(error).__name__}: {error}"
    return (None if metadata is None else metadata.offset), ""


class RecordingListener(ConsumerRebalanceListener):
    """Writes down what a consumer has."""

    def __init__(self, log: ConsumerLog) -> None:
        self._log = log

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._log.assigned(places_of(partitions))

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._log.revoked(places_of(partitions))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._log.lost(places_of(partitions))


def places_of(partitions: Iterable[TopicPartition]) -> list[Place]:
    """Partitions as a history has them, sorted."""
    return sorted(Place(*tp) for tp in partitions)


def write_poll(log: ConsumerLog, records: ConsumerRecords[bytes, bytes]) -> None:
    """Write down what a poll returned, if that is anything; to be called before the consumer is called again."""
    if records:
        log.polled(
            {
                Place(*tp): [(record.offset, record.value) for record in batch]
                for tp, batch in records.by_partition().items()
            }
        )


def end_of(servers: str, topic: str) -> dict[Place, int]:
    """The ends of the partitions of a topic that are not empty."""
    return {Place(*tp): offset for tp, offset in end_offsets(servers, topic).items() if offset}


def observe(admin: KafkaAdminClient, group: str, log: HistoryLog) -> dict[Place, int]:
    """Note and return what a group has committed by now."""
    started = log.now()
    entries = admin.list_consumer_group_offsets(group)
    committed = {Place(*tp): entry.offset for tp, entry in entries.items() if entry is not None}
    log.observed(group, started, committed)
    return committed


def read_to_end(
    servers: str, topic: str, log: HistoryLog, *, read_committed: bool = False, whole: bool = True
) -> list[ConsumerRecord[bytes, bytes]]:
    """Read all of a topic by a consumer of its own, and write that down.

    Not `whole` is one of which some records were deleted; what is missing says nothing then.
    """
    isolation = "read_committed" if read_committed else "read_uncommitted"
    began = log.now()
    what = "all" if whole else "what is left"
    consumer = log.consumer(f"the reader of {what} of {topic}, {isolation}", read_committed=read_committed)
    records = read_all(servers, topic, isolation_level=isolation)
    for begin in range(0, len(records), _AT_ONCE):
        polled: dict[Place, list[tuple[int, bytes | None]]] = {}
        for record in records[begin : begin + _AT_ONCE]:
            polled.setdefault(Place(record.topic, record.partition), []).append((record.offset, record.value))
        consumer.polled(polled)
    # Every partition, also the empty ones.
    if whole:
        log.at_end(consumer.name, places_of(partitions_of(servers, topic)), at=began)
    consumer.closed()
    return records


def write_logs(log: HistoryLog, logs: Sequence[PartitionLog], partitions: Iterable[Place]) -> None:
    """Write down all logs of `partitions` that are on disk, as if a consumer had read them to the end."""
    consumer = log.consumer("the logs on disk")
    places = [Place(each.topic, each.partition, each.topic_id) for each in logs]
    for place, each in zip(places, logs, strict=True):
        for begin in range(0, len(each.records), _AT_ONCE):
            batch = each.records[begin : begin + _AT_ONCE]
            consumer.polled({place: [(record.offset, record.value) for record in batch]})
    log.at_end(consumer.name, [*places, *partitions])
    consumer.closed()
