"""kclient.processing with exactly once, on a real broker: whatever ends a member, each input counts once."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from harness.programs import start_script
from harness.real_kafka.broker import RealKafka
from harness.topics import end_offsets, new_topic, read_all
from harness.waiting import wait_until
from kclient import (
    ConsumerRecord,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    ProducerRecord,
    TopicPartition,
)
from kclient.errors import InvalidRecordError, RecordTooLargeError, TransactionAbortableError
from kclient.processing import Processed, run

DEADLINE_S = 90.0

MEMBER = """
    import sys, time
    from kclient import KafkaConsumer, KafkaProducer, ProducerRecord
    from kclient.processing import run

    servers, source, target, name, concurrency, delay = sys.argv[1:]

    def handle(record):
        time.sleep(float(delay))
        return [ProducerRecord(target, record.value, key=record.key), ProducerRecord(target, record.value)]

    with (
        KafkaProducer(bootstrap_servers=servers, transactional_id=f"{source}-{name}") as producer,
        KafkaConsumer(
            bootstrap_servers=servers,
            group_id=f"g-{source}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            max_poll_records=20,
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
        ) as consumer,
    ):
        print("ready", flush=True)
        done = run(
            consumer, producer, handle, topics=[source], exactly_once=True, concurrency=int(concurrency),
            ordered_by="key",
        )
        print(done.records, done.outputs, flush=True)
"""


def fill(servers: str, topic: str, count: int) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send_many(
            topic, [b"%d" % number for number in range(count)], keys=[b"k%d" % (n % 40) for n in range(count)]
        ).result(DEADLINE_S)


def committed(servers: str, topic: str) -> list[ConsumerRecord[bytes, bytes]]:
    return read_all(servers, topic, isolation_level="read_committed")


def group_is_at(servers: str, source: str) -> int:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        offsets = admin.list_consumer_group_offsets(f"g-{source}")
    return sum(offset.offset for offset in offsets.values())


def member(
    servers: str, source: str, target: str, name: str, delay_s: float = 0.005
) -> subprocess.Popen[str]:
    return start_script(MEMBER, servers, source, target, name, "3", str(delay_s))


def assert_each_once(servers: str, target: str, count: int) -> None:
    assert Counter(record.value for record in committed(servers, target)) == {
        b"%d" % number: 2 for number in range(count)
    }


def terminate(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1])
def test_a_member_that_is_killed_at_random_and_started_again_loses_and_doubles_nothing(
    kafka: RealKafka, seed: int
) -> None:
    servers, count = kafka.bootstrap_servers, 2000
    source, target = new_topic(servers, 3), new_topic(servers, 2)
    fill(servers, source, count)
    chance = random.Random(seed)
    for _ in range(3):
        before = group_is_at(servers, source)
        with member(servers, source, target, "m") as process:
            wait_until(lambda past=before: group_is_at(servers, source) > past, DEADLINE_S, "work")
            # At any point of a transaction.
            threading.Event().wait(chance.random() / 2)
            process.kill()
    assert group_is_at(servers, source) < count
    with member(servers, source, target, "m") as process:
        wait_until(lambda: group_is_at(servers, source) == count, DEADLINE_S, "the end")
        terminate(process)
    assert_each_once(servers, target, count)


@pytest.mark.heavy
def test_members_that_come_and_go_in_the_middle_of_the_work_lose_and_double_nothing(kafka: RealKafka) -> None:
    servers, count = kafka.bootstrap_servers, 1500
    source, target = new_topic(servers, 4), new_topic(servers, 2)
    fill(servers, source, count)
    with member(servers, source, target, "a", 0.02) as first:
        wait_until(lambda: group_is_at(servers, source) > 0, DEADLINE_S, "work")
        with member(servers, source, target, "b", 0.02) as second:
            wait_until(lambda: group_is_at(servers, source) > count // 2, DEADLINE_S, "work of both")
            out = terminate(second)
        wait_until(lambda: group_is_at(servers, source) == count, DEADLINE_S, "the end")
        terminate(first)
    assert int(out.split()[-2]) > 0, "the second member did nothing"
    assert_each_once(servers, target, count)


@pytest.mark.heavy
def test_a_member_that_wakes_up_after_others_did_its_work_commits_nothing_of_it(kafka: RealKafka) -> None:
    servers, count = kafka.bootstrap_servers, 300
    source, target = new_topic(servers, 1), new_topic(servers, 1)
    fill(servers, source, count)
    with member(servers, source, target, "sleeper", 0.05) as sleeper:
        wait_until(lambda: group_is_at(servers, source) > 0, DEADLINE_S, "work")
        sleeper.send_signal(signal.SIGSTOP)
        with member(servers, source, target, "other", 0.001) as other:
            wait_until(lambda: group_is_at(servers, source) == count, DEADLINE_S, "the work of the other")
            sleeper.send_signal(signal.SIGCONT)
            terminate(sleeper)
            terminate(other)
    assert_each_once(servers, target, count)


@pytest.mark.heavy
def test_sigterm_finishes_the_batch_and_commits_it(kafka: RealKafka) -> None:
    servers, count = kafka.bootstrap_servers, 200
    source, target = new_topic(servers, 1), new_topic(servers, 1)
    fill(servers, source, count)
    with member(servers, source, target, "m", 0.05) as process:
        wait_until(lambda: group_is_at(servers, source) > 0, DEADLINE_S, "work")
        out = terminate(process)
    records, outputs = map(int, out.split()[-2:])
    assert 0 < records < count
    assert outputs == 2 * records
    assert group_is_at(servers, source) == records
    assert Counter(record.value for record in committed(servers, target)) == {
        b"%d" % number: 2 for number in range(records)
    }


def in_transactions(
    servers: str,
    source: str,
    handler: Callable[[ConsumerRecord[Any, Any]], Any],
    stop: threading.Event,
    settings: dict[str, Any] | None = None,
    **arguments: Any,
) -> Processed:
    with (
        KafkaProducer(bootstrap_servers=servers, transactional_id=f"x-{uuid.uuid4().hex[:8]}") as producer,
        KafkaConsumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"g-{source}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                **(settings or {}),
            }
        ) as consumer,
    ):
        return run(consumer, producer, handler, topics=[source], exactly_once=True, stop=stop, **arguments)


class Copy:
    """Copies records, and stops the run after so many calls."""

    def __init__(self, target: str, calls: int) -> None:
        self.target = target
        self.left = calls
        self.stop = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, record: ConsumerRecord[Any, Any]) -> ProducerRecord[Any, Any] | None:
        with self._lock:
            self.left -= 1
            if self.left <= 0:
                self.stop.set()
        return ProducerRecord(self.target, record.value, key=record.key)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_dead_letter_is_part_of_the_transaction_and_has_its_reason(
    kafka: RealKafka, concurrency: int
) -> None:
    servers = kafka.bootstrap_servers
    source, target, dead = (new_topic(servers, 1) for _ in range(3))
    fill(servers, source, 50)
    copy = Copy(target, 50 + 1)

    def handle(record: ConsumerRecord[Any, Any]) -> Any:
        made = copy(record)
        if record.value == b"17":
            raise ValueError("seventeen")
        return made

    done = in_transactions(
        servers, source, handle, copy.stop, dead_letter_topic=dead, attempts=2, retry_backoff_ms=1,
        concurrency=concurrency, ordered_by="key",
    )  # fmt: skip
    assert (done.records, done.outputs, done.dead_letters, done.aborted) == (50, 49, 1, 0)
    assert len(committed(servers, target)) == 49
    (letter,) = committed(servers, dead)
    assert (letter.value, letter.key) == (b"17", b"k17")
    said = dict(letter.headers)
    assert said["kclient.dead-letter.error.message"] == b"seventeen"
    assert said["kclient.dead-letter.offset"] == b"17"
    assert said["kclient.dead-letter.attempts"] == b"2"


def test_without_a_topic_for_them_a_record_that_fails_ends_the_run_and_nothing_of_its_batch_is_seen(
    kafka: RealKafka,
) -> None:
    servers = kafka.bootstrap_servers
    source, target = new_topic(servers, 1), new_topic(servers, 1)
    fill(servers, source, 50)

    def handle(record: ConsumerRecord[Any, Any]) -> Any:
        if record.value == b"25":
            raise ValueError("no")
        return ProducerRecord(target, record.value)

    with pytest.raises(ValueError, match="no") as caught:
        in_transactions(
            servers, source, handle, threading.Event(), {"max.poll.records": 10}, retry_backoff_ms=1
        )
    assert any(f"{source}-0 at offset 25" in note for note in caught.value.__notes__)
    assert group_is_at(servers, source) == 20
    assert len(committed(servers, target)) == 20


def test_an_output_that_the_broker_refuses_makes_a_dead_letter_of_its_record_alone(kafka: RealKafka) -> None:
    servers = kafka.bootstrap_servers
    source, dead = new_topic(servers, 1), new_topic(servers, 1)
    target = new_topic(servers, 1, **{"max.message.bytes": "2000"})
    fill(servers, source, 20)
    copy = Copy(target, 20 + 19)

    def handle(record: ConsumerRecord[Any, Any]) -> Any:
        made = copy(record)
        return [made, ProducerRecord(target, b"x" * 5000)] if record.value == b"7" else made

    done = in_transactions(servers, source, handle, copy.stop, dead_letter_topic=dead, retry_backoff_ms=1)
    assert (done.records, done.outputs, done.dead_letters) == (20, 19, 1)
    assert done.aborted >= 1
    assert sorted(record.value or b"" for record in committed(servers, target)) == sorted(
        b"%d" % number for number in range(20) if number != 7
    )
    (letter,) = committed(servers, dead)
    assert letter.value == b"7"


def test_what_would_abort_every_transaction_again_ends_the_run(kafka: RealKafka) -> None:
    servers = kafka.bootstrap_servers
    source, dead = new_topic(servers, 1), new_topic(servers, 1)
    target = new_topic(servers, 1, **{"cleanup.policy": "compact"})
    fill(servers, source, 5)

    def handle(record: ConsumerRecord[Any, Any]) -> Any:
        return ProducerRecord(target, record.value, key=None if record.value == b"3" else record.key)

    with pytest.raises(TransactionAbortableError) as caught:
        in_transactions(servers, source, handle, threading.Event(), dead_letter_topic=dead)
    assert isinstance(caught.value.__cause__, InvalidRecordError)
    assert group_is_at(servers, source) == 0
    assert committed(servers, target) == committed(servers, dead) == []


def test_an_output_that_cannot_be_sent_at_all_takes_the_others_of_its_record_back(kafka: RealKafka) -> None:
    servers = kafka.bootstrap_servers
    source, target, dead = (new_topic(servers, 1) for _ in range(3))
    fill(servers, source, 5)
    copy = Copy(target, 5 + 4)

    def handle(record: ConsumerRecord[Any, Any]) -> Any:
        made = copy(record)
        return [made, ProducerRecord(target, b"x" * 5_000_000)] if record.value == b"3" else made

    done = in_transactions(servers, source, handle, copy.stop, dead_letter_topic=dead, retry_backoff_ms=1)
    assert (done.records, done.outputs, done.dead_letters, done.aborted) == (5, 4, 1, 1)
    assert [record.value for record in committed(servers, target)] == [b"0", b"1", b"2", b"4"]
    (letter,) = committed(servers, dead)
    assert dict(letter.headers)["kclient.dead-letter.error.class"] == (
        f"{RecordTooLargeError.__module__}.RecordTooLargeError".encode()
    )


def test_a_batch_that_takes_longer_than_the_poll_interval_keeps_its_place(kafka: RealKafka) -> None:
    servers = kafka.bootstrap_servers
    source, target = new_topic(servers, 1), new_topic(servers, 1)
    fill(servers, source, 4)
    copy = Copy(target, 4)
    calls: list[float] = []

    def handle(record: ConsumerRecord[Any, Any]) -> Any:
        calls.append(time.monotonic())
        threading.Event().wait(0.9)
        return copy(record)

    done = in_transactions(
        servers, source, handle, copy.stop, {"max.poll.interval.ms": 1000, "session.timeout.ms": 6000}
    )
    assert (done.records, done.aborted, len(calls)) == (4, 0, 4)
    assert end_offsets(servers, source)[TopicPartition(source, 0)] == group_is_at(servers, source)
