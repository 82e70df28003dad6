"""Checks of what applications pass to a share consumer."""

from __future__ import annotations

from typing import Any

from kclient.consumer.acknowledge import AcknowledgeType
from kclient.consumer.internals.arguments import checked_topic
from kclient.consumer.types import ConsumerRecord


def checked_type(type_: Any) -> AcknowledgeType:
    """Return `type_`, if it is an AcknowledgeType; raises TypeError."""
    if not isinstance(type_, AcknowledgeType):
        raise TypeError(f"type must be an AcknowledgeType, not {type_!r}")
    return type_


def checked_record(record: Any) -> ConsumerRecord[Any, Any]:
    """Return `record`, if it is one; raises TypeError."""
    if not isinstance(record, ConsumerRecord):
        raise TypeError(f"record must be a ConsumerRecord, or the name of a topic, not {record!r}")
    return record


def checked_place(topic: Any, partition: Any, offset: Any) -> tuple[str, int, int]:
    """Return the place of a record; raises TypeError, ValueError or InvalidTopicError."""
    for name, value in (("partition", partition), ("offset", offset)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be a number, not {value!r}")
        if value < 0:
            raise ValueError(f"{name} must not be negative, not {value}")
    return checked_topic(topic), partition, offset


def check_commit_callback(callback: Any) -> None:
    """Raise TypeError for what cannot be called, nor is None."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, not {callback!r}")
