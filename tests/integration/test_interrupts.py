"""Ctrl-C and the handlers of signals: what reaches a client in the middle of whatever it does."""

from __future__ import annotations

import itertools
import signal
import time
from collections import defaultdict
from typing import Any

import pytest

from harness.consumer.reader import reader
from harness.interrupts import Storm, interrupted_at
from harness.topics import end_offsets, new_topic, produce, read_all
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.consumer.internals.consumer_core import ConsumerCore
from kclient.errors import (
    IllegalStateError,
)
from kclient.producer import KafkaProducer


def offsets_by_partition(records: list[Any]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for record in records:
        found[record.partition].append(record.offset)
    return found


def test_an_interrupt_at_any_moment_of_poll_skips_and_repeats_no_record(servers: str) -> None:
    topic = new_topic(servers, 2)
    produce(servers, topic, 12)
    records: list[Any] = []
    interrupts = 0
    with reader(servers, topic, 2, **{"max.poll.records": 5, "fetch.max.wait.ms": 5}) as consumer:
        while len(records) < 12:
            for moment in itertools.count(1):
                try:
                    found = interrupted_at(moment, consumer.poll, 2000)
                except KeyboardInterrupt:
                    interrupts += 1
                    continue
                records.extend(found)
                break
        assert {tp.partition: consumer.position(tp) for tp in consumer.assignment()} == {
            tp.partition: end for tp, end in end_offsets(servers, topic).items()
        }
        produce(servers, topic, 10)
        while len(records) < 22:
            records.extend(consumer.poll(1000))
    assert interrupts > 100
    for offsets in offsets_by_partition(records).values():
        assert offsets == list(range(len(offsets)))


def test_an_interrupt_at_any_moment_skips_and_repeats_no_record_where_a_loop_goes_from_fetch_to_fetch(
    servers: str,
) -> None:
    topic = new_topic(servers, 2)
    produce(servers, topic, 12)
    records: list[Any] = []
    interrupts = 0
    with reader(servers, topic, 2, **{"max.poll.records": 5, "fetch.max.wait.ms": 5}) as consumer:
        iterator = iter(consumer)
        while len(records) < 12:
            for moment in itertools.count(1):
                try:
                    records.append(interrupted_at(moment, next, iterator))
                except KeyboardInterrupt:
                    interrupts += 1
                    continue
                break
        for question in (consumer.paused, consumer.assignment):
            for moment in itertools.count(1):
                try:
                    interrupted_at(moment, question)
                except KeyboardInterrupt:
                    continue
                break
        assert {tp.partition: consumer.position(tp) for tp in consumer.assignment()} == {
            tp.partition: end for tp, end in end_offsets(servers, topic).items()
        }
    assert interrupts > 100
    for offsets in offsets_by_partition(records).values():
        assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("taken", [1, 7])
def test_an_interrupt_at_any_moment_of_the_call_after_iteration_leaves_the_position_behind_the_last_record(
    servers: str, taken: int
) -> None:
    topic = new_topic(servers, 1)
    tp = TopicPartition(topic, 0)
    produce(servers, topic, 12)
    with reader(servers, topic) as consumer:
        for moment in itertools.count(1):
            consumer.seek(tp, 0)
            iterator = iter(consumer)
            assert [next(iterator).offset for _ in range(taken)] == list(range(taken))
            interrupted = True
            try:
                interrupted_at(moment, consumer.position, tp)
                interrupted = False
            except KeyboardInterrupt:
                pass
            assert consumer.position(tp) == taken
            assert next(iterator).offset == taken
            if not interrupted:
                break
        assert moment > 10


@pytest.mark.parametrize("then", ["poll", "iterate", "poll_columns", "commit", "position", "seek"])
def test_a_second_interrupt_while_what_the_first_kept_from_the_caller_is_taken_back_skips_no_record(
    servers: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(servers, 2)
    produce(servers, topic, 12)
    partitions = [TopicPartition(topic, i) for i in range(2)]
    hand_out, take_back = ConsumerCore.hand_out, ConsumerCore.take_back
    moment = 0
    due: dict[str, bool] = {}

    def hand_out_interrupted(core: ConsumerCore, *arguments: Any) -> Any:
        records = hand_out(core, *arguments)
        if due.pop("hand out", False):
            raise KeyboardInterrupt
        return records

    def take_back_interrupted(core: ConsumerCore) -> None:
        if not due.pop("take back", False):
            take_back(core)
        elif moment == 0:
            raise KeyboardInterrupt
        else:
            interrupted_at(moment, take_back, core)

    monkeypatch.setattr(ConsumerCore, "hand_out", hand_out_interrupted)
    monkeypatch.setattr(ConsumerCore, "take_back", take_back_interrupted)
    twice = True
    with reader(servers, topic, 2, **{"fetch.max.wait.ms": 5}) as consumer:
        while twice:
            consumer.seek_to_beginning()
            consumer.position(partitions[0])
            consumer.position(partitions[1])
            due = {"hand out": True, "take back": True}
            with pytest.raises(KeyboardInterrupt) as raised:
                consumer.poll(20_000)
            twice = isinstance(raised.value.__context__, KeyboardInterrupt)
            moment += 1
            if then == "commit":
                consumer.commit_sync()
                committed = consumer.committed(partitions)
                assert [offset.offset for offset in committed.values() if offset] == [0, 0]
            elif then == "position":
                assert [consumer.position(tp) for tp in partitions] == [0, 0]
            elif then == "seek":
                for tp in partitions:
                    consumer.seek(tp, 1)
                assert {record.offset for record in consumer.poll(20_000)} >= {1}
                assert [consumer.position(tp) for tp in partitions] != [0, 0]
            elif then == "iterate":
                assert next(consumer).offset == 0
            elif then == "poll_columns":
                assert next(iter(consumer.poll_columns(20_000).values())).offsets[0] == 0
            else:
                assert next(iter(consumer.poll(20_000))).offset == 0
    assert moment > 5


def test_an_interrupt_at_any_moment_of_iteration_skips_and_repeats_no_record(servers: str) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 5)
    offsets: list[int] = []
    interrupts = 0
    with reader(servers, topic, **{"fetch.max.wait.ms": 5}) as consumer:
        for expected in range(5):
            for moment in itertools.count(1):
                try:
                    record = interrupted_at(moment, next, consumer)
                except KeyboardInterrupt:
                    interrupts += 1
                    continue
                offsets.append(record.offset)
                break
            assert consumer.position(TopicPartition(topic, 0)) == expected + 1
    assert offsets == list(range(5))
    assert interrupts > 100


def test_an_interrupt_at_any_moment_of_send_leaves_a_producer_that_works_and_holds_no_memory(
    servers: str,
) -> None:
    topic = new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0, batch_size=200) as producer:
        finished: list[Any] = []
        interrupted: list[int] = []
        for number in range(12):
            for moment in itertools.count(1):
                value = b"%d-%d" % (number, moment)
                try:
                    # The first are at the beginning of a batch, the last ones follow others.
                    finished.append(interrupted_at(moment, producer.send, topic, value, key=b"k" * number))
                except KeyboardInterrupt:
                    interrupted.append(moment)
                    continue
                break
        futures = [producer.send(topic, b"after %d" % i) for i in range(100)]
        producer.flush()
        assert all(future.exception(0) is None for future in [*finished, *futures])
        metrics = {name.name: value for name, value in producer.metrics().items()}
        assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]
    values = [record.value for record in read_all(servers, topic)]
    assert len(values) == len(set(values)), "an interrupted send is written once or not at all"
    assert values[-100:] == [b"after %d" % i for i in range(100)]
    assert len(interrupted) > 50


@pytest.mark.parametrize("on_delivery", [None, lambda *_: None], ids=["plain", "callback"])
@pytest.mark.parametrize("linger_ms", [0, 5], ids=["alone", "linger"])
def test_a_signal_handler_may_send_and_flush_at_any_moment_of_send_or_is_refused(
    servers: str, on_delivery: Any, linger_ms: int
) -> None:
    topic = new_topic(servers, 1)
    futures: list[Any] = []
    refused: list[str] = []
    handled = 0

    def handle() -> None:
        nonlocal handled
        handled += 1
        try:
            futures.append(producer.send(topic, b"in the handler", on_delivery=on_delivery))
            producer.flush()
        except IllegalStateError as error:
            refused.append(str(error))

    with KafkaProducer(bootstrap_servers=servers, linger_ms=linger_ms, batch_size=200) as producer:
        for number in range(4):
            for moment in itertools.count(1):
                before = handled
                if number % 2:
                    producer.flush()  # so that it begins a batch
                value, key = b"%d-%d" % (number, moment), b"k" * number
                futures.append(
                    interrupted_at(
                        moment, producer.send, topic, value, by=handle, key=key, on_delivery=on_delivery
                    )
                )
                if handled == before:
                    break
    assert all(future.exception(0) is None for future in futures)
    assert len(read_all(servers, topic)) == len(futures)
    assert handled > 30
    assert refused or not linger_ms, "alone, a record may go where no lock is held"
    assert all("signal handler" in text for text in refused)


def test_a_storm_of_interrupts_during_poll_skips_and_repeats_no_record(servers: str) -> None:
    topic = new_topic(servers, 2)
    produce(servers, topic, 2000)
    records: list[Any] = []
    with (
        reader(servers, topic, 2, **{"max.poll.records": 7, "fetch.max.bytes": 3000}) as consumer,
        Storm(KafkaConsumer.poll) as storm,
    ):
        deadline = time.monotonic() + 60
        while len(records) < 2000 or storm.raised < 20:
            assert time.monotonic() < deadline, f"{len(records)} records"
            try:
                found = consumer.poll(1000)
            except KeyboardInterrupt:
                continue
            records.extend(found)

    for offsets in offsets_by_partition(records).values():
        assert offsets == list(range(len(offsets)))


def test_an_interrupt_ends_a_poll_that_waits_at_once(servers: str) -> None:
    topic = new_topic(servers, 1)
    with reader(servers, topic) as consumer, Storm(KafkaConsumer.poll):
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(60_000)
        assert time.monotonic() - started < 15


def test_an_interrupt_at_any_moment_of_a_commit_leaves_a_consumer_that_can_commit(servers: str) -> None:
    topic = new_topic(servers, 1)
    tp = TopicPartition(topic, 0)
    with reader(servers, topic) as consumer:
        done = False
        for line in itertools.count(1):
            try:
                interrupted_at(line, consumer.commit_sync, {tp: line})
                done = True
            except KeyboardInterrupt:
                pass
            if done or line % 20 == 0:
                consumer.commit_sync({tp: line})
                committed = consumer.committed([tp])[tp]
                assert committed is not None
                assert committed.offset == line
            if done:
                break


def test_interrupts_of_flush_and_of_waiting_for_a_future_lose_no_record(servers: str) -> None:
    topic = new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers, linger_ms=5) as producer:
        producer.send(topic, b"first").result(20)
        with Storm(KafkaProducer.flush, type(producer.send(topic, b"second")).result) as storm:
            futures: list[Any] = []
            deadline = time.monotonic() + 30
            while storm.raised < 40:
                assert time.monotonic() < deadline
                futures.append(producer.send(topic, b"%d" % len(futures)))
                for wait in (producer.flush, futures[-1].result):
                    try:
                        wait()
                    except KeyboardInterrupt:
                        pass
        producer.flush()
        assert [future.result(0).offset for future in futures] == list(range(2, len(futures) + 2))


def test_a_signal_handler_that_raises_comes_out_of_poll_and_one_that_does_not_ends_nothing(
    servers: str,
) -> None:
    topic = new_topic(servers, 1)

    class HandlerError(Exception):
        pass

    calls = 0

    def handle(_number: int, _frame: object) -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise HandlerError

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        with reader(servers, topic) as consumer:
            with pytest.raises(HandlerError):
                consumer.poll(60_000)
            assert calls == 4
            produce(servers, topic, 1)
            assert len(consumer.poll(20_000)) == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
