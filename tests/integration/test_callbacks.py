"""Callbacks and rebalance listeners that raise, send, close and poll: what they may do, and what it comes to."""

from __future__ import annotations

import functools
import threading
import uuid
from collections import defaultdict
from typing import Any

import pytest

from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.consumer import ConsumerRebalanceListener, KafkaConsumer
from kclient.errors import (
    ClientClosedError,
    IllegalStateError,
    KafkaError,
)
from kclient.producer import KafkaProducer, RecordMetadata


def test_a_callback_that_raises_is_logged_and_the_others_run(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(servers, 1)
    seen: list[int] = []

    def on_delivery(metadata: RecordMetadata, error: KafkaError | None) -> None:
        assert error is None
        seen.append(metadata.offset)
        if metadata.offset % 2:
            raise RuntimeError("a callback")

    with KafkaProducer(bootstrap_servers=servers, linger_ms=10) as producer:
        for _ in range(10):
            producer.send(topic, b"x", on_delivery=on_delivery)
        producer.flush()
        assert seen == list(range(10))
        producer.send(topic, b"x").result(20)
    assert caplog.text.count("RuntimeError: a callback") == 5


def test_a_callback_may_send_and_close_but_not_flush(servers: str) -> None:
    topic = new_topic(servers, 1)
    producer = KafkaProducer(bootstrap_servers=servers)
    sent: list[Any] = []
    errors: list[BaseException] = []
    closed = threading.Event()

    def first(_metadata: RecordMetadata, _error: KafkaError | None) -> None:
        sent.append(producer.send(topic, b"from a callback", on_delivery=second))
        try:
            producer.flush()
        except IllegalStateError as error:
            errors.append(error)

    def second(_metadata: RecordMetadata, _error: KafkaError | None) -> None:
        producer.close()
        closed.set()

    producer.send(topic, b"x", on_delivery=first).result(20)
    assert closed.wait(20)
    assert len(errors) == 1
    assert "callback" in str(errors[0])
    assert sent[0].result(20).offset == 1
    with pytest.raises(ClientClosedError):
        producer.send(topic, b"late")
    producer.close()
    wait_until(lambda: not producer._core.io_thread.alive, what="the end of the I/O thread")


def test_a_callback_is_called_exactly_once_for_each_record_also_when_the_producer_is_closed_at_once(
    servers: str,
) -> None:
    topic = new_topic(servers, 1)
    calls: dict[int, list[KafkaError | None]] = defaultdict(list)

    def note(number: int, _metadata: RecordMetadata, error: KafkaError | None) -> None:
        calls[number].append(error)

    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=60_000, delivery_timeout_ms=120_000)
    futures = [producer.send(topic, b"x", on_delivery=functools.partial(note, i)) for i in range(50)]
    producer.close(timeout_ms=0)
    assert {len(found) for found in calls.values()} == {1}
    assert len(calls) == 50
    assert [calls[i][0] for i in range(50)] == [future.exception(0) for future in futures]


def test_a_rebalance_listener_that_raises_comes_out_of_poll_and_the_consumer_goes_on(servers: str) -> None:
    topic = new_topic(servers, 2)
    produce(servers, topic, 10)

    class Listener(ConsumerRebalanceListener):
        calls = 0

        def on_partitions_assigned(self, partitions: Any) -> None:
            self.calls += 1
            if self.calls == 1:
                raise ValueError("a listener")

    with KafkaConsumer(
        bootstrap_servers=servers, group_id=f"g-{uuid.uuid4()}", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([topic], Listener())
        with pytest.raises(ValueError, match="a listener"):
            consumer.poll(30_000)
        assert len(consumer.assignment()) == 2
        found = 0
        while found < 10:
            found += len(consumer.poll(10_000))


def test_a_listener_may_not_poll_nor_close(servers: str) -> None:
    topic = new_topic(servers, 1)
    errors: list[BaseException] = []

    with KafkaConsumer(bootstrap_servers=servers, group_id=f"g-{uuid.uuid4()}") as consumer:

        class Listener(ConsumerRebalanceListener):
            def on_partitions_assigned(self, partitions: Any) -> None:
                for use in (lambda: consumer.poll(0), consumer.close):
                    try:
                        use()
                    except IllegalStateError as error:
                        errors.append(error)

        consumer.subscribe([topic], Listener())
        wait_until(lambda: consumer.poll(100) or consumer.assignment(), 30)
    assert len(errors) == 2
