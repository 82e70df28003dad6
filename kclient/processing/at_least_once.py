"""At least once: outputs first, then the offsets of the records that they were made from."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener
from kclient.errors import (
    CommitFailedError,
    KafkaTimeoutError,
    RebalanceInProgressError,
    RetriableCommitFailedError,
)
from kclient.processing.gaps import PartitionProgress
from kclient.processing.options import Options
from kclient.processing.outcome import Processed
from kclient.processing.source import LOOK_MS, Batch, Source
from kclient.processing.stopping import Stop
from kclient.processing.tasks import Task
from kclient.processing.workers import Workers
from kclient.producer import KafkaProducer

log = logging.getLogger(__name__)

_PASSING = (CommitFailedError, KafkaTimeoutError, RebalanceInProgressError, RetriableCommitFailedError)
"""Errors of a commit after which the next one says the same, or the group has given the partitions to others."""


class AtLeastOnce(ConsumerRebalanceListener):
    """Keeps records in hand up to a bound, and commits each partition up to its first that is not finished."""

    def __init__(
        self, source: Source, producer: KafkaProducer[Any, Any], options: Options, max_poll_interval_ms: int
    ) -> None:
        self.outcome = Processed()
        self._source = source
        self._producer = producer
        self._interval_s = options.commit_interval_ms / 1000
        # One thread alone gets a batch at a time, which is committed before the next.
        self._most = options.max_in_hand if options.concurrency > 1 else 1
        # Whoever takes longer to give partitions up loses his place, and with it the commit.
        self._patience_ms = max_poll_interval_ms // 2
        self._progress: dict[TopicPartition, PartitionProgress] = {}
        self._generation = -1
        self._listens = False
        # A run that ended at once: the consumer, which goes on calling its listener, is not to be held up.
        self._interrupted = False
        self._committed_at = time.monotonic()
        self._workers = Workers(producer, options, self._finished)
        self._tasks = self._workers.tasks

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to `topics`, to hear of partitions that come and go."""
        self._listens = True
        self._source.consumer.subscribe(topics, self)

    def run(self, stop: Stop) -> Processed:
        """Work until a stop is wanted, and then to the end of what is in hand."""
        interrupted = True
        try:
            try:
                while not stop.wanted and self._tasks.failure is None:
                    self._turn()
            except Exception as error:
                self._tasks.fail(error)
            self._finish()
            interrupted = False
        finally:
            self._interrupted = interrupted
            self._workers.close(wait=not interrupted)
        if self._tasks.failure is not None:
            raise self._tasks.failure
        return self.outcome

    def _turn(self) -> None:
        if len(self._tasks) < self._most:
            self._take(self._source.poll(LOOK_MS))
        else:
            self._wait(lambda: len(self._tasks) < self._most)
        self._bury_refused()
        if not self._tasks or time.monotonic() - self._committed_at >= self._interval_s:
            self._commit()

    def _wait(self, enough: Callable[[], bool]) -> None:
        """Wait for a while, as a member of the group."""
        if not self._tasks.wait(enough, LOOK_MS / 1000):
            self._source.keep_alive()
            self._follow_group({})
        self._flush()

    def _flush(self) -> None:
        if self._tasks.only_unacknowledged:
            with suppress(KafkaTimeoutError):
                self._producer.flush(LOOK_MS)

    def _finish(self) -> None:
        """End what is in hand, after an error only what was begun, and commit it."""
        self._tasks.hurry()
        try:
            while self._tasks and self._tasks.failure is None:
                self._wait(lambda: not self._tasks)
                self._bury_refused()
        except Exception as error:
            self._tasks.fail(error)
        if self._tasks.failure is not None:
            self._end_after_failure()
        try:
            self._commit()
        except Exception as error:
            self._tasks.fail(error)
        self._leave()

    def _leave(self) -> None:
        """Let the consumer read on behind what is done with, whoever uses it next."""
        with self._tasks.changed:
            unfinished = {
                tp: start for tp, progress in self._progress.items() if (start := progress.start) is not None
            }
        try:
            self._source.resume()
            self._source.put_back(unfinished, generation=self._source.generation)
        except Exception as error:
            self._tasks.fail(error)

    def _end_after_failure(self) -> None:
        self._workers.halt()
        polls = True
        while not self._tasks.wait_for_end(LOOK_MS / 1000):
            try:
                if polls:
                    self._source.keep_alive()
                self._flush()
            except Exception as error:
                log.warning("Another error on the way out of run(): %r", error)
                polls = False

    def _take(self, batch: Batch) -> None:
        if self._follow_group(batch.starts):
            return
        tasks: list[Task] = []
        with self._tasks.changed:
            for tp, records in batch.records.items():
                progress = self._progress.setdefault(tp, PartitionProgress())
                for record in records:
                    progress.begin(record.offset, record.leader_epoch)
                    tasks.append(Task(record, progress, batch.unreadable))
                progress.reach(batch.next_offsets[tp])
        if tasks:
            self._workers.add(tasks)

    def _finished(self, task: Task) -> None:
        task.progress.finish(task.record.offset)
        self.outcome.records += 1
        self.outcome.outputs += task.outputs
        self.outcome.dead_letters += task.reason is not None

    def _bury_refused(self) -> None:
        for task in self._tasks.take_refused():
            failure = self._workers.handling.refused(task)
            if failure is not None:
                self._tasks.fail(failure)
                self._workers.halt()

    # Commits.

    def _commit(self, partitions: Collection[TopicPartition] | None = None) -> None:
        with self._tasks.changed:
            offsets: dict[TopicPartition, OffsetAndMetadata] = {
                tp: offset
                for tp, progress in self._progress.items()
                if (partitions is None or tp in partitions) and (offset := progress.to_commit()) is not None
            }
        if not offsets:
            return
        self._committed_at = time.monotonic()
        try:
            self._source.consumer.commit_sync(offsets, timeout_ms=self._patience_ms)
        except _PASSING as error:
            log.warning("What is done is not committed for now, and may be done again: %s", error)
            return
        self.outcome.commits += 1
        for tp, offset in offsets.items():
            self._progress[tp].committed(offset.offset)

    # Partitions that come and go.

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Begin anew with them: nothing is known of them."""
        self._forget(partitions)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Finish what was begun of them, commit, and let them go."""
        self._workers.give_up(partitions)
        deadline = time.monotonic() + self._patience_ms / 1000
        while not self._interrupted and not self._tasks.wait_for_those_of(partitions, LOOK_MS / 1000):
            self._bury_refused()
            self._flush()
            if time.monotonic() > deadline:
                log.warning(
                    "Partitions are given up before their records are finished, which others will do again: %s",
                    ", ".join(map(str, sorted(partitions))),
                )
                break
        self._commit(partitions)
        self._forget(partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Forget them: others have them already."""
        self._workers.give_up(partitions)
        self._forget(partitions)

    def _forget(self, partitions: Collection[TopicPartition]) -> None:
        with self._tasks.changed:
            for tp in partitions:
                self._progress.pop(tp, None)

    def _follow_group(self, starts: Mapping[TopicPartition, int]) -> bool:
        """Begin anew, without the batch, if the group has moved on and somebody else is its listener."""
        if self._listens or not self._source.consumer.subscription():
            return False
        generation = self._source.generation
        if generation == self._generation:
            return False
        first = self._generation < 0
        self._generation = generation
        if first:
            return False
        log.info("The group has moved on: what is in hand is given up")
        positions = dict(starts)
        with self._tasks.changed:
            positions.update(
                (tp, start)
                for tp, progress in self._progress.items()
                if (start := progress.start) is not None
            )
        known = set(self._progress)
        self._workers.give_up(known)
        self._forget(known)
        self._source.put_back(positions)
        return True
