"""Exactly once: a transaction for each batch, with its outputs and its offsets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    InvalidConfigurationError,
    InvalidTimestampError,
    KafkaTimeoutError,
    PolicyViolationError,
    TransactionAbortableError,
)
from kclient.processing.dead_letters import Reason
from kclient.processing.gaps import PartitionProgress
from kclient.processing.handling import is_fault_of_record, with_place
from kclient.processing.options import Options
from kclient.processing.outcome import Processed
from kclient.processing.source import LOOK_MS, Batch, Source
from kclient.processing.stopping import Stop
from kclient.processing.tasks import Task
from kclient.processing.workers import Workers
from kclient.producer import KafkaProducer
from kclient.utils.text import counted

log = logging.getLogger(__name__)


_HOPELESS = (InvalidConfigurationError, InvalidTimestampError, PolicyViolationError)
"""Reasons of an abort that another transaction would have, too; missing permissions are among them."""


class _AgainError(Exception):
    """The transaction has to be aborted, and its batch tried again."""


class ExactlyOnce:
    """Takes a batch, has all of it handled in one transaction, and commits that with the offsets."""

    def __init__(self, source: Source, producer: KafkaProducer[Any, Any], options: Options) -> None:
        self.outcome = Processed()
        self._source = source
        self._producer = producer
        self._backoff = options.backoff
        self._buries = options.dead_letter_topic is not None
        self._workers = Workers(producer, options, lambda _: None)
        self._tasks = self._workers.tasks
        # Records whose outputs no transaction can hold.
        self._refused: dict[tuple[TopicPartition, int], Reason] = {}
        self._aborted_in_a_row = 0

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to `topics`. That partitions go is seen by the generation, and told by the broker's refusal."""
        self._source.consumer.subscribe(topics)

    def run(self, stop: Stop) -> Processed:
        """Work until a stop is wanted, and then to the end of the batch."""
        interrupted = True
        try:
            while not stop.wanted:
                batch = self._source.poll(LOOK_MS)
                if batch:
                    self._process(batch, stop)
            self._source.resume()
            interrupted = False
        except Exception:
            interrupted = False
            raise
        finally:
            self._workers.close(wait=not interrupted)
        return self.outcome

    def _process(self, batch: Batch, stop: Stop) -> None:
        # At once: a member that is removed later has another one, or none, and the broker has to hear of this one.
        member = self._source.consumer.group_metadata()
        if member.generation_id < 0 and self._source.consumer.subscription():
            # It was removed already. Offsets without a member would be accepted, and others have the partitions.
            self._source.put_back(batch.starts)
            return
        try:
            self._producer.begin_transaction()
            tasks = self._handle(batch, member, stop)
            offsets = _offsets(batch)
            self._insist(lambda: self._producer.send_offsets_to_transaction(offsets, member), stop)
            self._insist(self._producer.commit_transaction, stop)
        except (_AgainError, TransactionAbortableError) as error:
            self._abort(batch, member, error, stop)
        except Exception:
            self._give_up(batch, member)
            raise
        else:
            self._aborted_in_a_row = 0
            self._count(tasks)

    def _handle(self, batch: Batch, member: ConsumerGroupMetadata, stop: Stop) -> list[Task]:
        """Have the whole batch handled; then the producer has all outputs, acknowledged or not."""
        progress = PartitionProgress()
        tasks = [
            Task(record, progress, batch.unreadable or self._refused.get((tp, record.offset)))
            for tp, records in batch.records.items()
            for record in records
        ]
        self._workers.add(tasks)
        moved_on = False
        # Also after an error: what is begun must not come into the next transaction.
        while not self._tasks.wait_for_workers(LOOK_MS / 1000):
            if stop.wanted:
                self._tasks.hurry()
            self._source.keep_alive()
            if not moved_on and self._source.generation != member.generation_id:
                moved_on = True
                self._workers.halt()
        if self._tasks.failure is not None:
            raise self._tasks.failure
        if moved_on:
            raise _AgainError("the group has moved on")
        if any(task.given_up for task in tasks):
            raise _AgainError("the run ends before another attempt at a record")
        if any(task.refused is not None for task in tasks):
            # Without asking the producer: it lets a record pass that has no serialized form.
            raise _AgainError("an output of a record was refused")
        return tasks

    def _insist(self, call: Callable[[], None], stop: Stop) -> None:
        """Call again what had no time, as a member of the group, until it has an outcome."""
        while True:
            try:
                call()
            except KafkaTimeoutError as error:
                if stop.wanted:
                    raise
                log.warning("The transaction is waited for: %s", error)
                self._source.keep_alive()
            else:
                return

    def _abort(self, batch: Batch, member: ConsumerGroupMetadata, error: Exception, stop: Stop) -> None:
        log.warning("The transaction of %s is aborted: %s", counted(_size(batch), "record"), error)
        self._insist(self._producer.abort_transaction, stop)
        self.outcome.aborted += 1
        self._aborted_in_a_row += 1
        self._source.put_back(batch.starts, generation=member.generation_id)
        if not self._remember_refused() and isinstance(error.__cause__, _HOPELESS):
            raise error
        self._workers.restart()
        self._pause(stop)

    def _give_up(self, batch: Batch, member: ConsumerGroupMetadata) -> None:
        """Abort after an error that ends the run, as far as that is possible."""
        self._workers.halt()
        try:
            self._producer.abort_transaction()
            self.outcome.aborted += 1
            self._source.put_back(batch.starts, generation=member.generation_id)
        except Exception as error:
            # The error that ends the run is the one that matters; to close the producer aborts as well.
            log.warning("The transaction is left to the end of the producer: %r", error)

    def _remember_refused(self) -> bool:
        """Return True if outputs were refused, of records that are to be dead letters the next time."""
        found = False
        for task in self._tasks.take_refused():
            error = task.refused
            assert error is not None
            if not is_fault_of_record(error):
                continue
            if task.reason is not None or not self._buries:
                raise with_place(error, task, "an output was not written of the record of")
            self._refused[task.partition, task.record.offset] = Reason(error, 1)
            found = True
        return found

    def _pause(self, stop: Stop) -> None:
        left_ms = self._backoff.backoff_ms(self._aborted_in_a_row - 1)
        deadline = time.monotonic() + left_ms / 1000
        while not stop.wanted and (left_s := deadline - time.monotonic()) > 0:
            self._tasks.wait(lambda: False, min(left_s, LOOK_MS / 1000))
            self._source.keep_alive()

    def _count(self, tasks: Collection[Task]) -> None:
        self.outcome.commits += 1
        for task in tasks:
            self.outcome.records += 1
            self.outcome.outputs += task.outputs
            self.outcome.dead_letters += task.reason is not None
            self._refused.pop((task.partition, task.record.offset), None)


def _size(batch: Batch) -> int:
    return sum(map(len, batch.records.values()))


def _offsets(batch: Batch) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        tp: OffsetAndMetadata(batch.next_offsets[tp], leader_epoch=records[-1].leader_epoch)
        for tp, records in batch.records.items()
    }
