"""Interceptors: seeing and changing records on their way (KIP-42)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from kclient._accel import belongs_to_caller
from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError
from kclient.producer.types import ProducerRecord, RecordMetadata
from kclient.utils.log_context import LogContext

DeliveryCallback = Callable[[RecordMetadata, BaseException | None], object]


@runtime_checkable
class ProducerInterceptor(Protocol):
    """Sees every record. What it raises is logged and otherwise ignored.

    A `close()`, if there is one, is called once.
    """

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Called by the sending thread before serialization; returns the record to send instead."""
        ...

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None:
        """Called on the I/O thread when a record is acknowledged or has failed, or by `send` if that raises."""
        ...


class ProducerInterceptors:
    """The interceptors of one producer, in order. Thread-safe if they are."""

    __slots__ = ("_interceptors", "_log")

    def __init__(self, interceptors: Sequence[ProducerInterceptor], log_context: LogContext) -> None:
        self._interceptors = tuple(interceptors)
        self._log = log_context.logger(__name__)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """The record as all interceptors left it; one that raises is passed over."""
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record)
            except BaseException as error:
                self._log.exception("The interceptor %s raised in on_send", type(interceptor).__name__)
                if belongs_to_caller(error):
                    raise
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None:
        """Tell all interceptors what became of a record."""
        for interceptor in self._interceptors:
            try:
                interceptor.on_acknowledgement(metadata, error)
            except BaseException as caught:
                self._log.exception(
                    "The interceptor %s raised in on_acknowledgement", type(interceptor).__name__
                )
                if belongs_to_caller(caught):
                    raise

    def on_send_error(self, topic: str, partition: int | None, error: BaseException) -> None:
        """Tell all interceptors of a record that was never accepted."""
        tp = TopicPartition(topic, -1 if partition is None else partition)
        self.on_acknowledgement(RecordMetadata(tp.topic, tp.partition, -1, -1, -1, -1), error)

    def around(self, on_delivery: DeliveryCallback | None) -> DeliveryCallback:
        """A callback that tells the interceptors first, then `on_delivery`."""
        if on_delivery is None:
            return self.on_acknowledgement

        def told(metadata: RecordMetadata, error: BaseException | None) -> None:
            self.on_acknowledgement(metadata, error)
            on_delivery(metadata, error)

        return told

    def __iter__(self) -> Iterator[ProducerInterceptor]:
        return iter(self._interceptors)


def make_interceptors(values: Sequence[object]) -> list[ProducerInterceptor]:
    """The interceptors that `interceptor.classes` means: objects or classes."""
    made: list[ProducerInterceptor] = []
    for value in values:
        interceptor = value() if isinstance(value, type) else value
        if not isinstance(interceptor, ProducerInterceptor):
            raise ConfigError(
                f"interceptor.classes: {value!r} needs the methods on_send and on_acknowledgement",
                name="interceptor.classes",
            )
        made.append(interceptor)
    return made
