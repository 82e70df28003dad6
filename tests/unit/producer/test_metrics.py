from __future__ import annotations

import threading

import pytest

from harness.producer.model import ProducerModel, ready_producer
from harness.waiting import wait_until
from kclient.errors import BufferExhaustedError, ErrorCode
from kclient.metrics import MetricName


def of_topic(m: ProducerModel, topic: str = "t") -> dict[str, float]:
    return {
        name.name: value
        for name, value in m.core.metrics.snapshot().items()
        if name.group == "producer-topic-metrics" and ("topic", topic) in name.tags
    }


def test_records_and_bytes_are_told_of_their_topic_and_of_the_client() -> None:
    m = ready_producer({"t": 1, "u": 1})
    for topic in ("t", "t", "u"):
        m.send(b"a" * 100, topic=topic)
    m.run()
    m.answer()
    values = of_topic(m)
    assert values["record-send-total"] == 2
    assert values["byte-total"] > 200
    assert values["record-send-rate"] > 0
    assert values["byte-rate"] > 0
    assert values["compression-rate"] == pytest.approx(1)
    assert of_topic(m, "u")["record-send-total"] == 1
    of_client = m.core.metrics.snapshot()
    assert of_client["record-send-total"] == 3
    assert of_client["batch-size-max"] > 200
    assert of_client["compression-rate-avg"] == pytest.approx(1)
    assert of_client["records-per-request-avg"] > 0
    tags = (("client-id", m.core.config.client_id), ("topic", "t"))
    assert of_client[MetricName("record-send-total", "producer-topic-metrics", tags)] == 2


def test_what_is_sent_again_and_what_fails_is_told_of_its_topic() -> None:
    m = ready_producer({"t": 1})
    m.send(b"a")
    m.run()
    m.broker.fail("t", ErrorCode.NOT_ENOUGH_REPLICAS, partition=0)
    m.answer()
    values = of_topic(m)
    assert values["record-retry-total"] == 1
    assert values["record-retry-rate"] > 0
    assert values["record-error-total"] == 0
    m.time.advance(10_000)
    m.run()
    m.broker.fail("t", ErrorCode.INVALID_RECORD, partition=0)
    m.answer()
    values = of_topic(m)
    assert values["record-error-total"] == 1
    assert values["record-error-rate"] > 0
    assert m.core.metrics.snapshot()["record-error-total"] == 1


def test_a_topic_that_nothing_is_sent_to_is_forgotten_when_metadata_forgets_it() -> None:
    m = ready_producer({"t": 1, "u": 1}, metadata_max_idle_ms=5000)
    for topic in ("t", "u"):
        m.send(b"a", topic=topic)
        m.run()
        m.answer()
    m.core.metrics.snapshot()
    for _ in range(2):
        m.time.advance(2500)
        assert of_topic(m, "t")
        m.send(b"a", topic="u")
        m.run()
        m.answer()
    assert not of_topic(m, "t")
    assert of_topic(m, "u")["record-send-total"] == 3
    assert m.core.metrics.snapshot()["record-send-total"] == 4


def test_records_that_get_no_buffer_memory_are_counted_and_the_wait_for_it() -> None:
    m = ready_producer(buffer_memory=20_000, batch_size=16_384, max_block_ms=1000)
    m.send(b"a" * 16_000)
    refused: list[BaseException] = []

    def send() -> None:
        try:
            m.send(b"a" * 16_000)
        except BufferExhaustedError as error:
            refused.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    wait_until(lambda: m.accumulator.pool.waiting == 1)
    assert m.core.metrics.snapshot()["waiting-threads"] == 1
    m.time.advance(1000)
    sender.join(10)
    assert refused
    values = m.core.metrics.snapshot()
    assert values["buffer-exhausted-total"] == 1
    assert values["buffer-exhausted-rate"] > 0
    assert values["bufferpool-wait-time-ns-total"] >= 1_000_000_000
    assert values["bufferpool-wait-ratio"] == pytest.approx(1 / 30, rel=0.1)
    assert values["buffer-available-bytes"] < values["buffer-total-bytes"] == 20_000
    assert values["waiting-threads"] == 0


def test_the_age_of_the_metadata_is_told_in_seconds() -> None:
    m = ready_producer()
    before = m.core.metrics.snapshot()["metadata-age"]
    m.time.advance(2500)
    assert m.core.metrics.snapshot()["metadata-age"] == before + 2.5


def test_requests_in_flight_and_their_times_are_told() -> None:
    m = ready_producer()
    m.send(b"a")
    m.run()
    assert m.core.metrics.snapshot()["requests-in-flight"] == 1
    m.answer()
    values = m.core.metrics.snapshot()
    assert values["requests-in-flight"] == 0
    for name in ("request-latency", "record-queue-time", "produce-throttle-time"):
        assert values[f"{name}-avg"] >= 0, name
        assert values[f"{name}-max"] >= 0, name
