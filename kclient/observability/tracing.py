"""Traces of records for OpenTelemetry. Needs the extra: `pip install 'kclient-kafka[otel]'`.

Spans have the names and attributes of OpenTelemetry's conventions for messaging; the context goes with the record in
the headers traceparent and tracestate (W3C).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from kclient.consumer import ConsumerInterceptor, ConsumerRecord, ConsumerRecords
from kclient.producer import ProducerRecord, RecordMetadata

try:
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context
    from opentelemetry.propagators.textmap import Getter, Setter
    from opentelemetry.trace import Link, Span, SpanKind, Tracer
except ImportError as error:
    raise ImportError(
        "kclient.observability.tracing needs opentelemetry-api: pip install 'kclient-kafka[otel]'"
    ) from error

_Headers = list[tuple[str, bytes | None]]


class TracingProducerInterceptor:
    """Makes a span for every record that is sent, and puts its context into the record's headers. Thread-safe.

    The span ends when the record is handed over: an interceptor does not hear which record was acknowledged. Other
    headers of the record stay; what it had of an older context is replaced. For `interceptor.classes`.
    """

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer("kclient")

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        attributes: dict[str, str] = _attributes(record.topic, "send")
        if record.partition is not None:
            attributes["messaging.destination.partition.id"] = str(record.partition)
        with self._tracer.start_as_current_span(
            f"send {record.topic}", kind=SpanKind.PRODUCER, attributes=attributes
        ):
            carrier: _Headers = list(record.headers)
            propagate.inject(carrier, setter=_SETTER)
        return attrs.evolve(record, headers=carrier)

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None:
        """Do nothing."""


class TracingConsumerInterceptor(ConsumerInterceptor):
    """Makes a span for every topic of a poll, with links to where its records come from. For `interceptor.classes`."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer("kclient")

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        by_topic: dict[str, list[ConsumerRecord[Any, Any]]] = {}
        for tp, found in records.by_partition().items():
            by_topic.setdefault(tp.topic, []).extend(found)
        for topic, found in by_topic.items():
            attributes: dict[str, str | int] = {
                **_attributes(topic, "receive"),
                "messaging.batch.message_count": len(found),
            }
            span = self._tracer.start_span(
                f"receive {topic}", kind=SpanKind.CONSUMER, attributes=attributes, links=list(_links(found))
            )
            span.end()
        return records


def context_of(record: ConsumerRecord[Any, Any]) -> Context:
    """Return the context that a record brought with it; that of a record without one begins a trace of its own."""
    return propagate.extract(record.headers, context=Context(), getter=_GETTER)


@contextmanager
def processing(record: ConsumerRecord[Any, Any], tracer: Tracer | None = None) -> Iterator[Span]:
    """Run the block in a span that goes on with the trace of the record; an exception is noted in it and goes on.

    for record in consumer:
        with processing(record):
            ...
    """
    attributes: dict[str, str | int] = {
        **_attributes(record.topic, "process"),
        "messaging.destination.partition.id": str(record.partition),
        "messaging.kafka.offset": record.offset,
    }
    with (tracer or trace.get_tracer("kclient")).start_as_current_span(
        f"process {record.topic}", context=context_of(record), kind=SpanKind.CONSUMER, attributes=attributes
    ) as span:
        yield span


def _attributes(topic: str, operation: str) -> dict[str, str]:
    return {
        "messaging.system": "kafka",
        "messaging.destination.name": topic,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }


def _links(records: Iterable[ConsumerRecord[Any, Any]]) -> Iterator[Link]:
    for record in records:
        origin = trace.get_current_span(context_of(record)).get_span_context()
        if origin.is_valid:
            yield Link(origin)


class _HeaderSetter(Setter[_Headers]):
    def set(self, carrier: _Headers, key: str, value: str) -> None:
        carrier[:] = [(name, each) for name, each in carrier if name != key]
        carrier.append((key, value.encode()))


class _HeaderGetter(Getter[tuple[tuple[str, bytes | None], ...]]):
    def get(self, carrier: tuple[tuple[str, bytes | None], ...], key: str) -> list[str] | None:
        found = [
            value.decode(errors="replace") for name, value in carrier if name == key and value is not None
        ]
        return found or None

    def keys(self, carrier: tuple[tuple[str, bytes | None], ...]) -> list[str]:
        return [name for name, _ in carrier]


_SETTER, _GETTER = _HeaderSetter(), _HeaderGetter()
