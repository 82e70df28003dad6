"""Dead letters: records that nobody could handle, with the reason in their headers."""

from __future__ import annotations

import time
from typing import Any

import attrs

from kclient.consumer import ConsumerRecord
from kclient.processing.header_names import (
    ATTEMPTS,
    ERROR_CLASS,
    ERROR_MESSAGE,
    OFFSET,
    PARTITION,
    TIME,
    TOPIC,
)
from kclient.producer import ProducerRecord

_MOST_OF_A_MESSAGE = 4000
"""Characters of the error's text that are kept: a text with the whole record in it would not fit beside that."""


@attrs.frozen
class Reason:
    """The error that a record could not be handled for, after so many attempts; 0 if no handler has seen it."""

    error: BaseException
    attempts: int


def dead_letter(topic: str, record: ConsumerRecord[Any, Any], reason: Reason) -> ProducerRecord[Any, Any]:
    """Return the record for the topic of dead letters: key, value and headers as they were, and the reason."""
    error = type(reason.error)
    said = {
        TOPIC: record.topic,
        PARTITION: str(record.partition),
        OFFSET: str(record.offset),
        ERROR_CLASS: f"{error.__module__}.{error.__qualname__}",
        ERROR_MESSAGE: str(reason.error)[:_MOST_OF_A_MESSAGE],
        ATTEMPTS: str(reason.attempts),
        TIME: str(int(time.time() * 1000)),
    }
    return ProducerRecord(
        topic,
        record.value,
        key=record.key,
        headers=(*record.headers, *((name, text.encode(errors="replace")) for name, text in said.items())),
        # Brokers refuse what is below 0, which is a record without a time.
        timestamp_ms=record.timestamp_ms if record.timestamp_ms >= 0 else None,
    )
