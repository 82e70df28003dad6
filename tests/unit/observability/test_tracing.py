from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, Tracer

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, ConsumerRecords
from kclient.observability.tracing import (
    TracingConsumerInterceptor,
    TracingProducerInterceptor,
    context_of,
    processing,
)
from kclient.producer import ProducerRecord


class Traced:
    """A tracer whose spans are kept."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = provider.get_tracer("test")

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def sent(self, **fields: Any) -> ProducerRecord[Any, Any]:
        return TracingProducerInterceptor(self.tracer).on_send(ProducerRecord("orders", b"v", **fields))


@pytest.fixture
def traced() -> Traced:
    return Traced()


def read(record: ProducerRecord[Any, Any], partition: int = 0, offset: int = 5) -> ConsumerRecord[Any, Any]:
    return ConsumerRecord(
        record.topic, partition, offset, 1, 0, None, record.value, tuple(record.headers), None, -1, 1
    )


def test_a_record_carries_the_context_of_its_span_beside_its_own_headers(traced: Traced) -> None:
    record = traced.sent(headers=[("mine", b"1"), ("traceparent", b"older")], partition=2)

    (span,) = traced.spans
    assert (span.name, span.kind) == ("send orders", SpanKind.PRODUCER)
    assert span.attributes is not None
    assert span.attributes["messaging.destination.partition.id"] == "2"
    context = span.get_span_context()
    assert context is not None
    mine, (name, carried) = record.headers
    assert mine == ("mine", b"1")
    assert name == "traceparent"
    assert carried is not None
    assert carried.startswith(f"00-{context.trace_id:032x}-{context.span_id:016x}-".encode())


def test_processing_goes_on_with_the_trace_of_the_record(traced: Traced) -> None:
    record = read(traced.sent())
    with processing(record, traced.tracer):
        pass

    sent, processed = traced.spans
    assert (processed.name, processed.kind) == ("process orders", SpanKind.CONSUMER)
    assert processed.parent is not None
    sent_context, processed_context = sent.get_span_context(), processed.get_span_context()
    assert sent_context is not None
    assert processed_context is not None
    assert processed.parent.span_id == sent_context.span_id
    assert processed_context.trace_id == sent_context.trace_id
    assert processed.attributes is not None
    assert processed.attributes["messaging.kafka.offset"] == 5


def test_an_exception_is_noted_in_the_span_and_goes_on(traced: Traced) -> None:
    with pytest.raises(ZeroDivisionError), processing(read(traced.sent()), traced.tracer):
        _ = 1 / 0
    assert traced.spans[1].status.status_code is StatusCode.ERROR


def test_a_poll_is_a_span_for_each_topic_with_links_to_where_the_records_come_from(traced: Traced) -> None:
    records = [
        read(traced.sent()),
        read(traced.sent(), offset=6),
        read(ProducerRecord("orders", b"v"), offset=7),
    ]
    by_partition = {TopicPartition("orders", 0): records[:2], TopicPartition("orders", 1): records[2:]}

    polled: ConsumerRecords[Any, Any] = ConsumerRecords(by_partition)
    assert TracingConsumerInterceptor(traced.tracer).on_consume(polled) is polled

    first, second, poll = traced.spans
    assert (poll.name, poll.kind) == ("receive orders", SpanKind.CONSUMER)
    assert poll.attributes is not None
    assert poll.attributes["messaging.batch.message_count"] == 3
    assert [link.context.span_id for link in poll.links] == [
        span.get_span_context().span_id  # type: ignore[union-attr]
        for span in (first, second)
    ]


@pytest.mark.parametrize("value", [None, b"", b"nonsense", b"\xff"])
def test_a_context_that_cannot_be_read_is_none(value: bytes | None) -> None:
    assert context_of(read(ProducerRecord("orders", headers=[("traceparent", value)]))) == {}
