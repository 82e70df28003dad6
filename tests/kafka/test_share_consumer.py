"""Share groups on a real Kafka, whose locks and counts of deliveries decide (KIP-932, KIP-1206, KIP-1222)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.network.proxy import FaultProxy
from harness.programs import start_script
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import SHORT_LIVED, classpath
from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.admin import (
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
)
from kclient.consumer import AcknowledgeType, ConsumerRecord, KafkaShareConsumer
from kclient.errors import DisconnectError, InvalidRecordStateError, RecordDeserializationError
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys
from kclient.serialization import StringDeserializer

LOCK_MS = 2000
DEADLINE_S = 60.0


@pytest.fixture
def servers(kafka: RealKafka) -> str:
    return kafka.bootstrap_servers


@pytest.fixture
def group(servers: str) -> str:
    """A share group that reads from the beginning and locks for 2 s."""
    return new_group(servers, share_record_lock_duration_ms=LOCK_MS)


def new_group(servers: str, **settings: object) -> str:
    name = f"g-{uuid.uuid4().hex[:12]}"
    given = {"share_auto_offset_reset": "earliest", **settings}
    resource = ConfigResource(ConfigResourceType.GROUP, name)
    changes = [AlterConfigOp(key.replace("_", "."), str(value)) for key, value in given.items()]
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.incremental_alter_configs({resource: changes})
    return name


def member(servers: str, group: str, topic: str, **settings: Any) -> KafkaShareConsumer[Any, Any]:
    """A member that acknowledges by itself."""
    settings = {"share_acknowledgement_mode": "explicit", **settings}
    consumer: KafkaShareConsumer[Any, Any] = KafkaShareConsumer(
        bootstrap_servers=servers, group_id=group, **settings
    )
    consumer.subscribe([topic])
    return consumer


def take(consumer: KafkaShareConsumer[Any, Any], count: int) -> list[ConsumerRecord[Any, Any]]:
    """The next `count` records, all of one poll."""
    records: list[ConsumerRecord[Any, Any]] = []
    wait_until(lambda: records.extend(consumer.poll(500)) or records, DEADLINE_S, "records")
    assert len(records) == count
    return records


def deliveries(records: list[ConsumerRecord[Any, Any]]) -> list[tuple[int, int | None]]:
    return [(record.offset, record.delivery_count) for record in records]


@contextlib.contextmanager
def java_member(servers: str, group: str, topic: str, log: Path) -> Iterator[Path]:
    """Java's console share consumer, whose records are the lines of a file: Delivery:COUNT, a tab, the value."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                *("java", *SHORT_LIVED, "-Xmx256m", "-cp", classpath()),
                "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
                *("--bootstrap-server", servers, "--topic", topic, "--group", group),
                *("--formatter-property", "print.delivery=true"),
            ],
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield log
        finally:
            process.terminate()
            process.wait(20)


def test_beside_javas_console_consumer_every_record_is_acknowledged_once(
    servers: str, tmp_path: Path
) -> None:
    group, topic = new_group(servers), new_topic(servers, 2)
    ours: Counter[bytes] = Counter()
    with (
        java_member(servers, group, topic, tmp_path / "java.txt") as log,
        member(servers, group, topic, max_poll_records=50) as consumer,
    ):
        consumer.poll(2000)
        written = 0

        def both_have_some_and_nothing_is_left() -> bool:
            nonlocal written
            if written < 20_000 and (not ours or not log.stat().st_size):
                produce(servers, topic, 1000)
                written += 1000
            for record in consumer.poll(500):
                consumer.acknowledge(record)
                ours[b"%d-%d" % (record.partition, record.offset)] += 1
            return bool(ours) and len(ours) + log.read_bytes().count(b"\n") >= written > 0

        wait_until(both_have_some_and_nothing_is_left, DEADLINE_S, "every record")
        assert not any(consumer.commit_sync().values())
        theirs = log.read_bytes().count(b"\n")
        assert theirs, "Java's consumer got nothing"
        assert len(ours) + theirs == written
        assert set(ours.values()) == {1}


def test_javas_consumer_gets_nothing_that_is_renewed_and_all_that_is_released(
    servers: str, group: str, tmp_path: Path
) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 5)
    with member(servers, group, topic) as consumer:
        records = take(consumer, 5)
        with (
            KafkaAdminClient(bootstrap_servers=servers) as admin,
            java_member(servers, group, topic, tmp_path / "java.txt") as log,
        ):

            def renewed() -> None:
                for record in records:
                    consumer.acknowledge(record, AcknowledgeType.RENEW)
                assert not any(consumer.commit_sync().values())
                assert take(consumer, 5) == records

            def both_are_members() -> bool:
                renewed()
                return len(admin.describe_share_groups([group])[group].members) == 2

            wait_until(both_are_members, DEADLINE_S, "Java's member")
            end = time.monotonic() + 2 * LOCK_MS / 1000
            while time.monotonic() < end:
                renewed()
            assert log.read_bytes() == b""
            consumer.acknowledge(records[0])
            consumer.acknowledge(records[1], AcknowledgeType.REJECT)
            for record in records[2:]:
                consumer.acknowledge(record, AcknowledgeType.RELEASE)
            assert not any(consumer.commit_sync().values())
            wait_until(lambda: len(log.read_text().splitlines()) >= 3, DEADLINE_S, "what was released")
            assert log.read_text().splitlines() == [f"Delivery:2\tv{number}" for number in (2, 3, 4)]


def test_a_released_record_comes_again_until_the_limit_of_deliveries(servers: str, group: str) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 3)
    with member(servers, group, topic) as consumer:
        for count in range(1, 6):
            expected = [(0, 1), (1, 1), (2, 1)] if count == 1 else [(1, count)]
            records = take(consumer, len(expected))
            assert deliveries(records) == expected
            for record in records:
                consumer.acknowledge(
                    record, AcknowledgeType.RELEASE if record.offset == 1 else AcknowledgeType.ACCEPT
                )
            assert not any(consumer.commit_sync().values())
        assert not consumer.poll(LOCK_MS)


def test_a_rejected_record_is_not_delivered_again(servers: str, group: str) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 2)
    with member(servers, group, topic) as consumer:
        first, second = take(consumer, 2)
        consumer.acknowledge(first, AcknowledgeType.REJECT)
        consumer.acknowledge(second, AcknowledgeType.RELEASE)
        assert deliveries(take(consumer, 1)) == [(1, 2)]
        consumer.acknowledge(topic, 0, 1, AcknowledgeType.ACCEPT)
        assert not consumer.poll(LOCK_MS)


def test_renewing_holds_a_lock_past_its_time(servers: str, group: str) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 1)
    with member(servers, group, topic) as consumer, member(servers, group, topic) as other:
        (record,) = take(consumer, 1)
        assert consumer.acquisition_lock_timeout_ms() == LOCK_MS
        end = time.monotonic() + 3 * LOCK_MS / 1000
        while time.monotonic() < end:
            consumer.acknowledge(record, AcknowledgeType.RENEW)
            assert not any(consumer.commit_sync().values())
            assert not other.poll(LOCK_MS // 3)
            (again,) = take(consumer, 1)
            assert again is record
        consumer.acknowledge(record)
        assert not any(consumer.commit_sync().values())
        assert not other.poll(LOCK_MS)


def test_a_lock_that_has_ended_fails_the_acknowledgement_and_another_member_gets_the_record(
    servers: str, group: str
) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 1)
    outcomes: list[Any] = []
    with member(servers, group, topic) as consumer, member(servers, group, topic) as other:
        consumer.set_acknowledgement_commit_callback(lambda *outcome: outcomes.append(outcome))
        (record,) = take(consumer, 1)
        (again,) = take(other, 1)
        assert again.delivery_count == 2
        consumer.acknowledge(record)
        (error,) = consumer.commit_sync().values()
        assert isinstance(error, InvalidRecordStateError)
        ((offsets, told),) = outcomes
        assert list(offsets.values()) == [{0}]
        assert isinstance(told, InvalidRecordStateError)
        other.acknowledge(again)
        assert list(other.commit_sync().values()) == [None]


def test_closing_gives_back_at_once_what_was_not_acknowledged(servers: str) -> None:
    group, topic = new_group(servers, share_record_lock_duration_ms=30_000), new_topic(servers, 1)
    produce(servers, topic, 2)
    with member(servers, group, topic) as consumer:
        first, _ = take(consumer, 2)
        consumer.acknowledge(first)
    with member(servers, group, topic) as other:
        began = time.monotonic()
        assert deliveries(take(other, 1)) == [(1, 2)]
        assert time.monotonic() - began < 20
        other.acknowledge(topic, 0, 1, AcknowledgeType.ACCEPT)


def test_implicit_acknowledgement_accepts_with_the_next_poll_and_not_at_the_end(
    servers: str, group: str
) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 4)
    implicit = {"share_acknowledgement_mode": "implicit", "max_poll_records": 2}
    with member(servers, group, topic, share_acquire_mode="record_limit", **implicit) as consumer:
        assert deliveries(take(consumer, 2)) == [(0, 1), (1, 1)]
        assert deliveries(take(consumer, 2)) == [(2, 1), (3, 1)]
    with member(servers, group, topic, **implicit) as consumer:
        assert deliveries(take(consumer, 2)) == [(2, 2), (3, 2)]
        assert list(consumer.commit_sync().values()) == [None]
        assert not consumer.poll(LOCK_MS)


@pytest.mark.parametrize(("mode", "left"), [("batch_optimized", 0), ("record_limit", 90)])
def test_the_acquire_mode_decides_what_is_locked(servers: str, mode: str, left: int) -> None:
    group, topic = new_group(servers), new_topic(servers, 1)
    produce(servers, topic, 100, linger_ms=500)
    with (
        member(servers, group, topic, max_poll_records=10, share_acquire_mode=mode) as consumer,
        member(servers, group, topic, max_poll_records=1000) as other,
    ):
        assert [record.offset for record in take(consumer, 10)] == list(range(10))
        if left:
            assert len(take(other, left)) == left
        else:
            assert not other.poll(4000)


@pytest.mark.parametrize("by_java", [False, True])
def test_a_killed_members_records_come_again_with_their_count(
    servers: str, group: str, tmp_path: Path, by_java: bool
) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 5)
    process = start_script(
        """
        import sys
        from kclient import KafkaShareConsumer
        servers, group, topic = sys.argv[1:]
        consumer = KafkaShareConsumer(
            bootstrap_servers=servers, group_id=group, share_acknowledgement_mode="explicit"
        )
        consumer.subscribe([topic])
        records = []
        while not records:
            records = list(consumer.poll(500))
        consumer.acknowledge(records[0])
        consumer.commit_sync()
        print(len(records), flush=True)
        sys.stdin.read()
        """,
        servers,
        group,
        topic,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "5"
        os.kill(process.pid, 9)
    if by_java:
        with java_member(servers, group, topic, tmp_path / "java.txt") as log:
            wait_until(
                lambda: len(log.read_text().splitlines()) >= 4, DEADLINE_S, "the killed member's records"
            )
            assert log.read_text().splitlines() == [f"Delivery:2\tv{number}" for number in (1, 2, 3, 4)]
        return
    with member(servers, group, topic) as consumer:
        records: list[ConsumerRecord[Any, Any]] = []

        def all_came() -> bool:
            for record in consumer.poll(500):
                consumer.acknowledge(record)
                records.append(record)
            return len(records) >= 4

        wait_until(all_came, DEADLINE_S, "the killed member's records")
        assert deliveries(records) == [(1, 2), (2, 2), (3, 2), (4, 2)]


def test_a_record_that_cannot_be_deserialized_can_be_rejected_by_its_offset(servers: str, group: str) -> None:
    topic = new_topic(servers, 1)
    with_poison = [b"good", b"\xff\xfe", b"fine"]
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for value in with_poison:
            producer.send(topic, value)
    with member(servers, group, topic, value_deserializer=StringDeserializer()) as consumer:
        values, errors = [], []
        end = time.monotonic() + DEADLINE_S
        while len(values) < 2 and time.monotonic() < end:
            try:
                for record in consumer.poll(500):
                    values.append(record.value)
                    consumer.acknowledge(record)
            except RecordDeserializationError as error:
                errors.append(error.offset)
                consumer.acknowledge(topic, 0, error.offset, AcknowledgeType.REJECT)
        assert (values, errors) == (["good", "fine"], [1])
        assert not any(consumer.commit_sync().values())
        assert not consumer.poll(LOCK_MS)


def test_a_lost_connection_fails_acknowledgements_and_reading_goes_on(
    kafka: RealKafka, kafka_proxy: FaultProxy, group: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    produce(kafka.bootstrap_servers, topic, 1)
    with member(f"127.0.0.1:{kafka.proxy_port}", group, topic) as consumer:
        (record,) = take(consumer, 1)
        consumer.acknowledge(record)
        kafka_proxy.reset(ApiKeys.SHARE_ACKNOWLEDGE, 0, on_response=False)
        (error,) = consumer.commit_sync().values()
        assert isinstance(error, DisconnectError)
        assert deliveries(take(consumer, 1)) == [(0, 2)]
        consumer.acknowledge(topic, 0, 0, AcknowledgeType.ACCEPT)
        assert list(consumer.commit_sync().values()) == [None]
