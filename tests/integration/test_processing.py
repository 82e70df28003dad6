"""kclient.processing at least once, on the embedded broker."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from harness.topics import DEADLINE_S, assert_read_back, new_topic, produce, read_all
from harness.waiting import wait_until
from kclient import (
    ConsumerRecord,
    JsonDeserializer,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    ProducerRecord,
    TopicPartition,
)
from kclient.errors import IllegalStateError, RecordDeserializationError
from kclient.processing import Processed, run

Record = ConsumerRecord[Any, Any]


def reader(servers: str, source: str, **settings: Any) -> KafkaConsumer[Any, Any]:
    return KafkaConsumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"g-{source}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
            **settings,
        }
    )


def process(
    servers: str, source: str, handler: Callable[[Record], Any], stop: threading.Event, **arguments: Any
) -> Processed:
    settings = arguments.pop("settings", {})
    with (
        KafkaProducer(bootstrap_servers=servers) as producer,
        reader(servers, source, **settings) as consumer,
    ):
        return run(consumer, producer, handler, topics=[source], stop=stop, **arguments)


def copy(record: Record, target: str) -> ProducerRecord[Any, Any]:
    return ProducerRecord(target, record.value, key=record.key, headers=record.headers)


class Until:
    """A stop after so many different records."""

    def __init__(self, count: int) -> None:
        self.stop = threading.Event()
        self.seen: Counter[tuple[int, int]] = Counter()
        self._count = count
        self._lock = threading.Lock()

    def __call__(self, record: Record) -> None:
        with self._lock:
            self.seen[record.partition, record.offset] += 1
            if len(self.seen) >= self._count:
                self.stop.set()


def committed(servers: str, source: str) -> dict[TopicPartition, int]:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        offsets = admin.list_consumer_group_offsets(f"g-{source}")
    return {tp: offset.offset for tp, offset in offsets.items()}


@pytest.mark.parametrize("ordered_by", ["partition", "key"])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_every_record_is_copied_once_in_the_order_of_its_key_and_committed(
    servers: str, concurrency: int, ordered_by: str
) -> None:
    source, target = new_topic(servers, 3), new_topic(servers, 2)
    produce(servers, source, 3000)
    until = Until(3000)

    def handle(record: Record) -> ProducerRecord[Any, Any]:
        until(record)
        return copy(record, target)

    done = process(servers, source, handle, until.stop, concurrency=concurrency, ordered_by=ordered_by)
    assert (done.records, done.outputs, done.dead_letters, done.aborted) == (3000, 3000, 0, 0)
    assert sum(committed(servers, source).values()) == 3000
    assert_read_back(read_all(servers, target), 3000)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_handler_that_fails_ends_the_run_and_the_next_one_continues_behind_what_is_done(
    servers: str, concurrency: int
) -> None:
    source, target = new_topic(servers, 1), new_topic(servers, 1)
    produce(servers, source, 100)
    broken = True
    until = Until(100)

    def handle(record: Record) -> ProducerRecord[Any, Any]:
        if broken and record.value == b"v40":
            raise RuntimeError("out of order")
        until(record)
        return copy(record, target)

    with pytest.raises(RuntimeError, match="out of order") as caught:
        process(servers, source, handle, until.stop, attempts=2, retry_backoff_ms=1, concurrency=concurrency)
    assert any(f"{source}-0 at offset 40" in note for note in caught.value.__notes__)
    assert committed(servers, source) == {TopicPartition(source, 0): 40}
    broken = False
    process(servers, source, handle, until.stop, concurrency=concurrency)
    assert set(until.seen.values()) == {1}
    assert_read_back(read_all(servers, target), 100)


def test_nothing_is_committed_before_a_record_that_is_not_finished(servers: str) -> None:
    source = new_topic(servers, 1)
    produce(servers, source, 50)
    until, go_on = Until(50), threading.Event()
    results: list[Processed] = []

    def handle(record: Record) -> None:
        if record.value == b"v10":
            go_on.wait(DEADLINE_S)
        until(record)

    thread = threading.Thread(
        target=lambda: results.append(
            process(
                servers, source, handle, until.stop, concurrency=3, ordered_by="key", commit_interval_ms=10
            )
        )
    )
    thread.start()
    wait_until(lambda: len(until.seen) == 49, DEADLINE_S, "all others")
    wait_until(lambda: committed(servers, source) == {TopicPartition(source, 0): 10}, DEADLINE_S, "commit")
    go_on.set()
    thread.join(DEADLINE_S)
    assert results[0].records == 50
    assert committed(servers, source) == {TopicPartition(source, 0): 50}


def test_a_record_is_not_committed_while_its_output_is_not_acknowledged(servers: str) -> None:
    source = new_topic(servers, 1)
    produce(servers, source, 3)
    until = Until(3)

    def handle(record: Record) -> ProducerRecord[Any, Any]:
        until(record)
        return ProducerRecord(source + "-x", record.value, partition=0)

    with (
        KafkaProducer(bootstrap_servers=servers, linger_ms=60_000, batch_size=1_000_000) as producer,
        reader(servers, source) as consumer,
    ):
        sent = producer.send
        acknowledged: list[int] = []

        def watch(record: Any, *, on_delivery: Any) -> Any:
            def told(metadata: Any, error: Any) -> None:
                acknowledged.append(sum(committed_of(consumer_offsets)))
                on_delivery(metadata, error)

            return sent(record, on_delivery=told)

        consumer_offsets: list[Any] = []
        commit = consumer.commit_sync

        def note(offsets: Any = None, **arguments: Any) -> None:
            consumer_offsets.append((len(acknowledged), offsets))
            commit(offsets, **arguments)

        def committed_of(commits: list[Any]) -> list[int]:
            return [offset.offset for _, offsets in commits for offset in offsets.values()]

        producer.send = watch  # type: ignore[method-assign]
        consumer.commit_sync = note  # type: ignore[method-assign]
        run(consumer, producer, handle, topics=[source], stop=until.stop)
    # Flushed long before linger.ms, and committed once all three were acknowledged.
    assert acknowledged == [0, 0, 0]
    assert [(known, committed_of([(known, offsets)])) for known, offsets in consumer_offsets] == [(3, [3])]


def test_a_handler_slower_than_the_poll_interval_keeps_its_partitions(servers: str) -> None:
    source = new_topic(servers, 2)
    produce(servers, source, 4)
    until = Until(4)

    def handle(record: Record) -> None:
        threading.Event().wait(0.8)
        until(record)

    process(servers, source, handle, until.stop, settings={"max.poll.interval.ms": 1000})
    assert set(until.seen.values()) == {1}
    assert sum(committed(servers, source).values()) == 4


def test_partitions_that_go_to_another_member_are_finished_and_committed_first(servers: str) -> None:
    source = new_topic(servers, 4)
    produce(servers, source, 400)
    until = Until(400)
    first_has_begun = threading.Event()
    by_run: list[Counter[int]] = [Counter(), Counter()]
    errors: list[BaseException] = []

    def handler(number: int) -> Callable[[Record], None]:
        def handle(record: Record) -> None:
            first_has_begun.set()
            threading.Event().wait(0.02)
            by_run[number][record.partition] += 1
            until(record)

        return handle

    def work(number: int) -> None:
        try:
            process(
                servers, source, handler(number), until.stop, concurrency=2, settings={"max.poll.records": 20}
            )
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    threads[0].start()
    assert first_has_begun.wait(DEADLINE_S)
    threads[1].start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert not errors
    assert sum(by_run[1].values()) > 0
    assert set(until.seen.values()) == {1}, "what was begun is finished before partitions go"
    assert sum(committed(servers, source).values()) == 400


def test_with_a_subscription_of_its_own_a_member_loses_nothing_when_partitions_go(servers: str) -> None:
    source = new_topic(servers, 4)
    produce(servers, source, 400)
    until, begun = Until(400), threading.Event()
    errors: list[BaseException] = []

    def handle(record: Record) -> None:
        begun.set()
        threading.Event().wait(0.02)
        until(record)

    def work() -> None:
        try:
            with (
                KafkaProducer(bootstrap_servers=servers) as producer,
                reader(servers, source, **{"max.poll.records": 20}) as consumer,
            ):
                consumer.subscribe([source])
                run(consumer, producer, handle, stop=until.stop, concurrency=3, ordered_by="key")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in (0, 1)]
    threads[0].start()
    assert begun.wait(DEADLINE_S)
    threads[1].start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert not errors
    assert len(until.seen) == 400
    # The last to be seen may have been repeated by then, and be in hand.
    process(servers, source, lambda _: None, (rest := Rest(servers, source, 400)).stop)
    assert rest.done()


class Rest:
    """A stop once the group has committed so many records."""

    def __init__(self, servers: str, source: str, count: int) -> None:
        self.stop = threading.Event()
        self._where = servers, source
        self._count = count
        threading.Thread(target=self._watch, daemon=True).start()

    def done(self) -> bool:
        return sum(committed(*self._where).values()) == self._count

    def _watch(self) -> None:
        wait_until(self.done, DEADLINE_S, "the commit of the rest")
        self.stop.set()


def test_a_consumer_that_is_subscribed_or_assigned_already_is_taken_as_it_is(servers: str) -> None:
    source = new_topic(servers, 2)
    produce(servers, source, 20)
    assigned, subscribed = Until(10), Until(20)
    with KafkaProducer(bootstrap_servers=servers) as producer, reader(servers, source) as consumer:
        with pytest.raises(IllegalStateError, match="topics"):
            run(consumer, producer, subscribed)
        consumer.assign([TopicPartition(source, 0)])
        assigned._count = len([record for record in read_all(servers, source) if record.partition == 0])
        assert run(consumer, producer, assigned, stop=assigned.stop).records == assigned._count
        consumer.unsubscribe()
        consumer.subscribe([source])
        subscribed._count = 20 - assigned._count
        run(consumer, producer, subscribed, stop=subscribed.stop)
    assert {partition for partition, _ in subscribed.seen} == {1}
    assert sum(committed(servers, source).values()) == 20


def test_a_record_that_is_not_handled_goes_to_the_dead_letters_with_its_reason(servers: str) -> None:
    source, dead = new_topic(servers, 1), new_topic(servers, 1)
    produce(servers, source, 10)
    until = Until(10)

    def handle(record: Record) -> None:
        until(record)
        if record.value == b"v3":
            raise LookupError("no such customer")

    before = time.time()
    done = process(
        servers, source, handle, until.stop, attempts=3, retry_backoff_ms=1, dead_letter_topic=dead
    )
    assert (done.records, done.dead_letters) == (10, 1)
    assert until.seen[0, 3] == 3
    (letter,) = read_all(servers, dead)
    assert (letter.key, letter.value) == (b"k3", b"v3")
    said = dict(letter.headers)
    time_ms = int(said.pop("kclient.dead-letter.time") or b"")
    assert before * 1000 - 1 <= time_ms <= time.time() * 1000
    assert said == {
        "n": b"3",
        "none": None,
        "kclient.dead-letter.topic": source.encode(),
        "kclient.dead-letter.partition": b"0",
        "kclient.dead-letter.offset": b"3",
        "kclient.dead-letter.error.class": b"builtins.LookupError",
        "kclient.dead-letter.error.message": b"no such customer",
        "kclient.dead-letter.attempts": b"3",
    }
    assert committed(servers, source) == {TopicPartition(source, 0): 10}


def test_an_output_that_the_broker_refuses_makes_a_dead_letter_too(servers: str) -> None:
    source, dead = new_topic(servers, 1), new_topic(servers, 1)
    target = new_topic(servers, 1, **{"max.message.bytes": "1000"})
    produce(servers, source, 3)
    until = Until(3)

    def handle(record: Record) -> ProducerRecord[Any, Any]:
        until(record)
        return ProducerRecord(target, b"x" * 5000 if record.value == b"v1" else record.value)

    done = process(servers, source, handle, until.stop, dead_letter_topic=dead)
    assert (done.records, done.outputs, done.dead_letters) == (3, 2, 1)
    assert [record.value for record in read_all(servers, dead)] == [b"v1"]
    assert committed(servers, source) == {TopicPartition(source, 0): 3}


def test_a_refused_output_ends_the_run_where_there_is_no_topic_for_dead_letters(servers: str) -> None:
    source, target = new_topic(servers, 1), new_topic(servers, 1, **{"max.message.bytes": "1000"})
    produce(servers, source, 3)

    def handle(record: Record) -> ProducerRecord[Any, Any]:
        return ProducerRecord(target, b"x" * 5000 if record.value == b"v1" else record.value)

    with pytest.raises(Exception, match=r"larger than max\.message\.bytes") as caught:
        process(servers, source, handle, threading.Event())
    assert any(f"{source}-0 at offset 1" in note for note in caught.value.__notes__)
    assert committed(servers, source) == {TopicPartition(source, 0): 1}


def test_what_no_deserializer_can_read_goes_to_the_dead_letters_as_it_was(servers: str) -> None:
    source, dead = new_topic(servers, 1), new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for value in (b"1", b"not json", b"2"):
            producer.send(source, value, key=b"k")
    values: list[Any] = []
    stop = threading.Event()

    def handle(record: Record) -> None:
        values.append(record.value)
        if record.value == 2:
            stop.set()

    with (
        KafkaProducer(bootstrap_servers=servers) as producer,
        KafkaConsumer(
            bootstrap_servers=servers,
            group_id=f"g-{source}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            value_deserializer=JsonDeserializer(),
        ) as consumer,
    ):
        with pytest.raises(RecordDeserializationError):
            run(consumer, producer, handle, topics=[source])
        assert committed(servers, source) == {TopicPartition(source, 0): 1}
        run(consumer, producer, handle, topics=[source], dead_letter_topic=dead, stop=stop)
    assert values == [1, 2]
    (letter,) = read_all(servers, dead)
    assert letter.value == b"not json"
    assert dict(letter.headers)["kclient.dead-letter.attempts"] == b"0"


def test_what_the_consumer_leaves_out_is_no_dead_letter_and_what_its_function_raises_is_one(
    servers: str,
) -> None:
    source, dead = new_topic(servers, 1), new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for value in (b"1", b"secret {", b"not json", b"2"):
            producer.send(source, value)
    until = Until(2)

    def decide(error: RecordDeserializationError) -> None:
        if error.value != b"secret {":
            raise error

    with (
        KafkaProducer(bootstrap_servers=servers) as producer,
        KafkaConsumer(
            bootstrap_servers=servers,
            group_id=f"g-{source}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            value_deserializer=JsonDeserializer(),
            kclient_on_deserialization_error=decide,
        ) as consumer,
    ):
        run(consumer, producer, until, topics=[source], dead_letter_topic=dead, stop=until.stop)
    assert [letter.value for letter in read_all(servers, dead)] == [b"not json"]
    assert committed(servers, source) == {TopicPartition(source, 0): 4}


def test_a_run_that_failed_is_repeated_on_the_same_clients_from_the_record_that_failed(servers: str) -> None:
    source = new_topic(servers, 1)
    produce(servers, source, 20)
    until = Until(20)
    broken = True

    def handle(record: Record) -> None:
        if broken and record.offset == 5:
            raise RuntimeError
        until(record)

    with KafkaProducer(bootstrap_servers=servers) as producer, reader(servers, source) as consumer:
        consumer.subscribe([source])
        with pytest.raises(RuntimeError):
            run(consumer, producer, handle, attempts=1)
        broken = False
        run(consumer, producer, handle, stop=until.stop)
    assert [until.seen[0, offset] for offset in range(20)] == [1] * 20


def test_a_stop_does_not_wait_for_another_attempt(servers: str) -> None:
    source = new_topic(servers, 1)
    produce(servers, source, 10)
    stop = threading.Event()
    seen: list[int] = []

    def handle(record: Record) -> None:
        seen.append(record.offset)
        if record.offset == 4:
            stop.set()
            raise RuntimeError

    done = process(
        servers, source, handle, stop, attempts=2, retry_backoff_ms=3_600_000, retry_backoff_max_ms=3_600_000
    )
    assert (done.records, seen) == (4, [0, 1, 2, 3, 4])
    assert committed(servers, source) == {TopicPartition(source, 0): 4}
