"""One task's rows in one transaction together with the marker that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

import attrs

from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    ApplicationRecoverableError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
)
from kclient.spark.clients import BytesProducer
from kclient.spark.delivery import Tally, Written, sent
from kclient.spark.exactly_once.markers import Markers, made_marker, marked_rows
from kclient.spark.exactly_once.sink_task import SinkTask
from kclient.spark.given_partitions import GivenPartitions
from kclient.spark.output import SinkColumns
from kclient.spark.shipped_files import on_this_machine
from kclient.spark.sink_options import ExactlyOnceOptions
from kclient.utils.time import SYSTEM_TIME, Time


class Finding(Enum):
    """The way in which a task came to its end."""

    WRITTEN = "written"
    ALREADY_WRITTEN = "already written"
    """Another attempt has written the epoch; this one wrote nothing."""
    NO_ROWS = "no rows"
    """There was nothing to write and no marker to leave."""


@attrs.frozen
class TaskOutcome:
    """The end of a task, for the driver. Can be pickled."""

    task: SinkTask
    finding: Finding
    written: Mapping[TopicPartition, Written] = attrs.field(factory=dict)


@attrs.define(eq=False)
class _Rows:
    """The batches of a task that have rows, counted, and refused when its transaction is too old to be committed."""

    _batches: Iterator[Any]
    _task: SinkTask
    _timeout_ms: int
    _time: Time
    count: int = 0
    _first: Any = None
    _began_ms: int | None = None

    def any(self) -> bool:
        """Wait for the first row, before which no transaction needs to be open; False if there is none."""
        self._first = next(self._batches, None)
        return self._first is not None

    def begin(self) -> None:
        """The transaction begins now."""
        self._began_ms = self._time.monotonic_ms()

    def __iter__(self) -> Iterator[Any]:
        batch = self._first
        while batch is not None:
            self.count += batch.num_rows
            yield batch
            batch = next(self._batches, None)
            self.check_time()

    def check_time(self, cause: KafkaError | None = None) -> None:
        """Raise KafkaTimeoutError if the broker has given up the transaction, or does so any moment."""
        if self._began_ms is None:
            return
        elapsed_ms = self._time.monotonic_ms() - self._began_ms
        if elapsed_ms >= self._timeout_ms:
            self._began_ms = None  # once is enough
            raise KafkaTimeoutError(
                f"{self._task}: its transaction is open for {elapsed_ms} ms, and the broker aborts it after "
                f"kafka.transaction.timeout.ms={self._timeout_ms}; set that higher (as far as the broker's "
                "transaction.max.timeout.ms allows), or write less in a task (maxOffsetsPerTrigger, more partitions)"
                + (f". The error was: {cause}" if cause is not None else "")
            ).because_of(cause)


@attrs.frozen
class ExactlyOnceDelivery:
    """Writes the tasks of a write, on an executor."""

    _settings: Mapping[str, str]
    _once: ExactlyOnceOptions
    _columns: SinkColumns
    _time: Time = SYSTEM_TIME

    def deliver(self, task: SinkTask, batches: Iterable[Any], tally: Tally | None = None) -> TaskOutcome:
        """Write all rows and the marker in one transaction, unless the marker is there already.

        Sink partition 0 leaves its marker in every epoch, the others where they have rows. Raises KafkaTimeoutError
        that names transaction.timeout.ms if the rows took longer, IllegalStateError where the markers do not fit to
        the epoch, and what the producer raises; the transaction is then aborted.
        """
        with_rows = (batch for batch in batches if batch.num_rows)
        rows = _Rows(with_rows, task, self._once.transaction_timeout_ms, self._time)
        if not rows.any() and task.partition != 0:
            return TaskOutcome(task, Finding.NO_ROWS)
        markers = Markers(self._settings, self._once.marker_partition)
        try:
            with self._producer(task) as producer:
                # From here on no earlier attempt can commit.
                producer.init_transactions()
                marker = self._marker(markers, task)
                if marker is None:
                    return self._write(producer, task, rows, tally)
        except KafkaError as error:
            # A newer attempt of the task may have written.
            if isinstance(error, ApplicationRecoverableError) and self._is_marked(markers, task):
                return TaskOutcome(task, Finding.ALREADY_WRITTEN)
            rows.check_time(error)
            raise
        _compare(task, rows, marked_rows(marker))
        return TaskOutcome(task, Finding.ALREADY_WRITTEN)

    def _producer(self, task: SinkTask) -> BytesProducer:
        from kclient.producer import KafkaProducer

        return KafkaProducer({**on_this_machine(self._settings), "transactional.id": task.group_id})

    def _write(
        self, producer: BytesProducer, task: SinkTask, rows: _Rows, tally: Tally | None
    ) -> TaskOutcome:
        # A topic that is not there is created, or named by an error, before there is a transaction to abort.
        producer.partitions_for(self._once.marker_topic)
        rows.begin()
        with producer.transaction():
            given = GivenPartitions(self._settings, self._columns, self._time)
            written = sent(lambda: producer, self._columns, given, rows, tally)
            rows.check_time()
            producer.send_offsets_to_transaction(
                {self._once.marker_partition: made_marker(task, rows.count)},
                ConsumerGroupMetadata(task.group_id),
            )
        return TaskOutcome(task, Finding.WRITTEN, written)

    def _marker(self, markers: Markers, task: SinkTask) -> OffsetAndMetadata | None:
        """Return the marker of the epoch, None if it is not written. Raises IllegalStateError if that is not known."""
        marker = markers.read(task)
        if marker is None:
            self._accept_none(markers, task)
            return None
        if marker.offset > task.marker:
            raise IllegalStateError(
                f"{task}: group {task.group_id} has the marker of epoch {marker.offset - 1}, a later one. Either the "
                "checkpoint was taken back, or another run of the query is ahead of this one; what this epoch has "
                "written cannot be known. To write it anyway, stop all runs and delete the groups of all sink "
                f"partitions (kclient groups delete --group {task.group_id} ...)"
            )
        return marker if marker.offset == task.marker else None

    def _accept_none(self, markers: Markers, task: SinkTask) -> None:
        if task.epoch == 0 or self._once.accept_missing_markers:
            return
        # A partition has no marker where it never had rows; the first one has had one in every epoch.
        if task.partition != 0:
            first = attrs.evolve(task, partition=0)
            if markers.read(first, stable=False) is not None:
                return
        raise IllegalStateError(
            f"{task}: there is no marker of an epoch before, so that nobody knows if this one is written already. "
            "Markers are committed offsets: brokers delete them offsets.retention.minutes (7 days) after the last "
            f"write, or with their topic (if {self._once.marker_topic} was deleted and created again), and a query "
            "that has written at least once so far has none. If this epoch is not written, or may be written twice, "
            "start once with the option kclient.missing.markers=accept"
        )

    def _is_marked(self, markers: Markers, task: SinkTask) -> bool:
        try:
            marker = markers.read(task)
        except KafkaError:
            return False  # the error before is the one that matters
        return marker is not None and marker.offset == task.marker


def _compare(task: SinkTask, rows: _Rows, expected: int | None) -> None:
    """Raise IllegalStateError if the epoch has been written with another number of rows."""
    found = sum(batch.num_rows for batch in rows)
    if expected is not None and found != expected:
        raise IllegalStateError(
            f"{task}: {expected} rows were written, and this time there are {found}. With "
            "kclient.delivery=exactly_once a micro-batch that runs again has to have the same rows in the same "
            "partitions (docs/spark.md). Nothing was written now; to write the whole epoch once more, start with "
            "kclient.delivery=at_least_once"
        )
