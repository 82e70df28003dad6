"""Handling: what a worker does with a record: the handler, its retries, the outputs, the dead letter."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import attrs

from kclient.consumer import ConsumerRecord
from kclient.errors import (
    InvalidTopicError,
    KafkaError,
    RecordTooLargeError,
    SerializationError,
)
from kclient.processing.dead_letters import Reason, dead_letter
from kclient.processing.tasks import Task, TasksInHand
from kclient.producer import KafkaProducer, ProducerRecord
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.text import counted

log = logging.getLogger(__name__)

Outputs: TypeAlias = ProducerRecord[Any, Any] | Iterable[ProducerRecord[Any, Any]] | None
Handler: TypeAlias = Callable[[ConsumerRecord[Any, Any]], Outputs]

# InvalidRecordError is none of them: records that were in one batch with an invalid one fail with it as well.
_OF_THE_RECORD = (InvalidTopicError, RecordTooLargeError, SerializationError)
"""Errors of Kafka's that are the fault of the record that is sent: another time it would be refused as well."""


def is_fault_of_record(error: BaseException) -> bool:
    """Return True if `error` of sending says that this record cannot be sent, and not that nothing can."""
    if isinstance(error, KafkaError):
        return isinstance(error, _OF_THE_RECORD)
    return isinstance(error, Exception)


def place(record: ConsumerRecord[Any, Any]) -> str:
    """Return where `record` comes from, for errors."""
    return f"{record.topic}-{record.partition} at offset {record.offset}"


def with_place(error: BaseException, task: Task, what: str) -> BaseException:
    """Return `error` with a note that says which record it is about."""
    error.add_note(f"kclient.processing: {what} {place(task.record)}; it is not committed.")
    return error


class _UnsentError(Exception):
    """An output could not be sent; the cause says why."""


@attrs.define(eq=False)
class Handling:
    """Makes outputs of records and sends them. For any number of threads."""

    _handler: Handler
    _producer: KafkaProducer[Any, Any]
    _tasks: TasksInHand
    _attempts: int
    _backoff: ExponentialBackoff
    _dead_letter_topic: str | None
    _whole: bool
    """True if a record may not be sent in part: then one that was can only be taken back with its transaction."""

    def handle(self, task: Task) -> BaseException | None:
        """Take the task as far as to the producer; returns the error after which the run cannot go on.

        If there is none and the task is `given_up`, it was not handled and stays unfinished.
        """
        if task.reason is not None:
            return self.bury(task, task.reason)
        attempt = 0
        while True:
            attempt += 1
            try:
                outputs = _checked(self._handler(task.record))
            except Exception as error:
                if attempt >= self._attempts:
                    return self.bury(task, Reason(error, attempt))
                wait_ms = self._backoff.backoff_ms(attempt - 1)
                log.warning(
                    "The handler failed for %s and is called again in %d ms (attempt %d of %d): %r",
                    place(task.record),
                    wait_ms,
                    attempt,
                    self._attempts,
                    error,
                )
                if not self._tasks.pause(task, wait_ms):
                    task.given_up = True
                    self._tasks.undone([task])
                    return None
            except BaseException as error:
                return with_place(error, task, "the handler ended with")
            else:
                return self._send_outputs(task, outputs, attempt)

    def bury(self, task: Task, reason: Reason) -> BaseException | None:
        """Make the task a dead letter; returns the error if that cannot be, or there is no topic for them."""
        if self._dead_letter_topic is None:
            return with_place(
                reason.error, task, f"given up after {counted(reason.attempts, 'attempt')}, without a "
                "dead_letter_topic, at",
            )  # fmt: skip
        log.error(
            "%s goes to %s after %s: %r",
            place(task.record),
            self._dead_letter_topic,
            counted(reason.attempts, "attempt"),
            reason.error,
            exc_info=reason.error if log.isEnabledFor(logging.DEBUG) else None,
        )
        task.reason = reason
        task.outputs = 0
        try:
            self._send(task, dead_letter(self._dead_letter_topic, task.record, reason))
        except _UnsentError as unsent:
            return with_place(
                unsent.__cause__ or unsent, task, f"{self._dead_letter_topic} does not take the record of"
            )
        self._tasks.handled(task)
        return None

    def refused(self, task: Task) -> BaseException | None:
        """Bury a task of which an output was refused; returns the error if that cannot be."""
        error = task.refused
        assert error is not None
        if task.reason is not None or self._dead_letter_topic is None or not is_fault_of_record(error):
            self._tasks.dismiss(task)
            return with_place(error, task, "an output was not written of the record of")
        self._tasks.again(task)
        return self.bury(task, Reason(error, 1))

    def _send_outputs(
        self, task: Task, outputs: list[ProducerRecord[Any, Any]], attempts: int
    ) -> BaseException | None:
        for output in outputs:
            try:
                self._send(task, output)
            except _UnsentError as unsent:
                error = unsent.__cause__
                assert error is not None
                if not is_fault_of_record(error):
                    return with_place(error, task, "an output could not be sent of the record of")
                if not (self._whole and task.outputs):
                    return self.bury(task, Reason(error, attempts))
                # What was sent of it goes with the transaction.
                self._tasks.sending(task)
                self._tasks.acknowledged(task, error)
                break
            task.outputs += 1
        self._tasks.handled(task)
        return None

    def _send(self, task: Task, output: ProducerRecord[Any, Any]) -> None:
        self._tasks.sending(task)
        try:
            self._producer.send(output, on_delivery=lambda _, error: self._tasks.acknowledged(task, error))
        except Exception as error:
            self._tasks.unsent(task)
            raise _UnsentError from error


def _checked(outputs: Any) -> list[ProducerRecord[Any, Any]]:
    """Return what a handler has returned as a list; raises TypeError for what cannot be sent."""
    if outputs is None:
        return []
    if isinstance(outputs, ProducerRecord):
        return [outputs]
    made = list(outputs) if isinstance(outputs, Iterable) else [outputs]
    for output in made:
        if not isinstance(output, ProducerRecord):
            raise TypeError(
                f"handler: None, a ProducerRecord or an iterable of them is needed, not {type(output).__name__}"
            )
    return made
