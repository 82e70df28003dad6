"""Wakeups and second threads: what other threads, and signal handlers that raise nothing, do to a client."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from harness.consumer.reader import reader
from harness.topics import new_topic, produce, read_all
from harness.waiting import wait_until
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import (
    ConcurrentModificationError,
    KafkaError,
    WakeupError,
)
from kclient.producer import KafkaProducer

# wakeup().


def test_a_wakeup_before_poll_is_raised_by_the_next_poll_exactly_once(servers: str) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 5)
    with reader(servers, topic) as consumer:
        consumer.wakeup()
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll(20_000)
        assert len(consumer.poll(20_000)) == 5


def test_a_wakeup_from_another_thread_ends_a_poll_that_waits_exactly_once(servers: str) -> None:
    topic = new_topic(servers, 1)
    with reader(servers, topic) as consumer:
        consumer.poll(0)
        for _ in range(20):
            waker = threading.Thread(target=consumer.wakeup)
            waker.start()
            started = time.monotonic()
            with pytest.raises(WakeupError):
                consumer.poll(30_000)
            assert time.monotonic() - started < 15
            waker.join()
            consumer.poll(0)


def test_a_wakeup_ends_calls_other_than_poll(servers: str) -> None:
    topic = new_topic(servers, 1)
    tp = TopicPartition(topic, 0)
    calls: list[Callable[[KafkaConsumer[bytes, bytes]], object]] = [
        lambda consumer: consumer.commit_sync({tp: 1}),
        lambda consumer: consumer.end_offsets([tp]),
        lambda consumer: consumer.committed([tp]),
        lambda consumer: consumer.position(tp),
        next,
    ]
    for call in calls:
        with reader(servers, topic) as consumer:
            consumer.wakeup()
            with pytest.raises(WakeupError):
                call(consumer)


def test_a_wakeup_by_a_signal_handler_is_never_lost_and_never_locks_up(servers: str) -> None:
    topic = new_topic(servers, 1)
    with reader(servers, topic) as consumer:
        asked = 0

        def handle(_number: int, _frame: object) -> None:
            nonlocal asked
            asked += 1
            consumer.wakeup()

        before = signal.signal(signal.SIGUSR1, handle)
        main = threading.get_ident()
        caught = 0
        try:
            for _ in range(200):
                seen = asked
                killer = threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGUSR1))
                killer.start()
                started = time.monotonic()
                with pytest.raises(WakeupError):
                    consumer.poll(20_000)
                caught += 1
                assert time.monotonic() - started < 15
                killer.join()
                assert asked == seen + 1
        finally:
            signal.signal(signal.SIGUSR1, before)
        consumer.poll(0)
        assert caught == asked


# Threads.


def test_a_second_thread_is_refused_while_one_polls(servers: str) -> None:
    topic = new_topic(servers, 1)
    with reader(servers, topic) as consumer:
        polling, errors = threading.Event(), []

        def poll() -> None:
            polling.set()
            with pytest.raises(WakeupError):
                consumer.poll(30_000)

        first = threading.Thread(target=poll)
        first.start()
        polling.wait()

        def refused() -> bool:
            try:
                consumer.assignment()
            except ConcurrentModificationError:
                return True
            return False

        wait_until(refused, what="the first thread in poll()")
        uses: list[Callable[[], object]] = [
            lambda: consumer.poll(0),
            lambda: next(consumer),
            consumer.commit_sync,
            lambda: consumer.seek(TopicPartition(topic, 0), 0),
            consumer.close,
        ]
        for use in uses:
            try:
                use()
            except KafkaError as error:
                errors.append(type(error))
        consumer.wakeup()
        first.join(10)
        assert errors == [ConcurrentModificationError] * len(uses)
        produce(servers, topic, 3)
        records: list[Any] = []
        wait_until(lambda: records.extend(consumer.poll(100)) or len(records) == 3, 20, "three records")


def test_sixteen_threads_on_one_producer_lose_nothing_and_keep_the_order_of_each(servers: str) -> None:
    topic = new_topic(servers, 3)
    each = 500
    results: dict[int, list[Any]] = {}
    with KafkaProducer(bootstrap_servers=servers, linger_ms=1, batch_size=2000) as producer:

        def send(thread: int) -> None:
            results[thread] = [
                producer.send(topic, b"%d:%d" % (thread, i), key=b"%d" % thread) for i in range(each)
            ]

        threads = [threading.Thread(target=send, args=(i,)) for i in range(16)]
        for worker in threads:
            worker.start()
        for worker in threads:
            worker.join()
        producer.flush()
    last: dict[bytes, int] = {}
    records = read_all(servers, topic)
    assert len(records) == 16 * each
    for record in records:
        assert record.value is not None
        name, _, count = record.value.partition(b":")
        assert int(count) == last.get(name, -1) + 1
        last[name] = int(count)
    by_place = {(record.partition, record.offset): record.value for record in records}
    for number, futures in results.items():
        places = [(future.result(0).partition, future.result(0).offset) for future in futures]
        assert [by_place[place] for place in places] == [b"%d:%d" % (number, i) for i in range(each)]
