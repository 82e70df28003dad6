"""Records that no deserializer can read: kclient.on.deserialization.error says what becomes of them."""

from __future__ import annotations

from typing import Any

import attrs

from kclient.consumer.internals.metrics import ConsumerMetrics
from kclient.consumer.types import ConsumerRecord, OnDeserializationError
from kclient.errors import KafkaError, RecordDeserializationError
from kclient.utils.log_context import LogContext, Logger, RepeatedWarning
from kclient.utils.time import Time

_MOST_OF_A_CAUSE = 200
"""Characters of a deserializer's error that are logged: some hold the whole record."""


class NotReplacedError(KafkaError):
    """The application's function ended with `failure`; its record is there still."""

    failure: Exception
    default_message = "The function of kclient.on.deserialization.error failed."


@attrs.define(eq=False, repr=False)
class UndecodableRecords:
    """Finds what is read instead of a record that cannot be. Belongs to the application's thread, which decodes.

    `decide` is the application's function; without one such records are left out.
    """

    _decide: OnDeserializationError | None
    _metrics: ConsumerMetrics
    _time: Time
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _warning: RepeatedWarning = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)
        self._warning = RepeatedWarning(self._log)
        self._metrics.watch_left_out()

    def __call__(self, error: RecordDeserializationError) -> Any:
        """Return what takes the place of the record or of its part; None to leave the record out.

        Raises NotReplacedError with what the application's function raises.
        """
        instead: object = None
        if self._decide is not None:
            try:
                instead = self._decide(error)
                if isinstance(instead, ConsumerRecord):
                    _check_place(instead, error)
            except Exception as failure:
                raise NotReplacedError(failure=failure) from failure
        if instead is None:
            self._left_out(error)
        return instead

    def _left_out(self, error: RecordDeserializationError) -> None:
        self._metrics.left_out()
        cause = error.__cause__
        self._warning.warn(
            str(error.topic_partition),
            f"The record at offset {error.offset} of {error.topic_partition} is left out: its {error.which} cannot be "
            f"deserialized, {type(cause).__name__}: {str(cause)[:_MOST_OF_A_CAUSE]}",
            self._time.monotonic_ms(),
        )


def _check_place(record: ConsumerRecord[Any, Any], error: RecordDeserializationError) -> None:
    if (record.topic_partition, record.offset) != (error.topic_partition, error.offset):
        raise ValueError(
            f"kclient.on.deserialization.error: a record of {record.topic_partition} at offset {record.offset} cannot "
            f"take the place of the one at offset {error.offset} of {error.topic_partition}"
        )
