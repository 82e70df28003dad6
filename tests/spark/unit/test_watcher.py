"""The driver's view of a stream's records, and what it tells a group, on an embedded broker."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator

import pytest

from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.producer import KafkaProducer
from kclient.spark import clients
from kclient.spark.committer import GroupCommitter
from kclient.spark.topic_ids import noted_ids
from kclient.spark.watcher import RecordWatcher

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", num_partitions=2)])
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for number in range(100):
                producer.send("t", b"x" * 90, key=b"k" * 10, partition=0)
                producer.send("t", b"x" * number, partition=1)
        yield kafka.bootstrap_servers


@pytest.fixture
def watcher(servers: str) -> Iterator[RecordWatcher]:
    made = RecordWatcher({"bootstrap.servers": servers})
    yield made
    made._drop()
    clients.close_all()


def test_a_record_that_is_there_is_seen(watcher: RecordWatcher) -> None:
    # A quarter of a second is little for a connection where all processors have other things to do.
    wait_until(lambda: watcher.wait({T0: 99, T1: 100}), 30, "the record")
    wait_until(lambda: watcher.wait({T0: 100, T1: 3}), 30, "one at another position")


def test_nothing_is_seen_where_nothing_comes(watcher: RecordWatcher) -> None:
    began = time.monotonic()
    assert not watcher.wait({T0: 100})
    assert time.monotonic() - began >= 0.2


def test_a_record_that_comes_ends_the_wait(servers: str, watcher: RecordWatcher) -> None:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic("later")])
    tp = TopicPartition("later", 0)
    assert not watcher.wait({tp: 0})
    with KafkaProducer(bootstrap_servers=servers) as producer:
        sender = threading.Timer(0.1, lambda: producer.send("later", b"v"))
        sender.start()
        wait_until(lambda: watcher.wait({tp: 0}), 30, "the record")
        sender.join()


def test_what_cannot_be_asked_is_no_error_and_costs_the_wait() -> None:
    clock = MockTime()
    before = clock.monotonic_ms()
    watcher = RecordWatcher({"bootstrap.servers": "no.such.host.invalid:1"}, clock)
    assert watcher.wait({T0: 0})
    assert clock.monotonic_ms() - before == 250
    assert watcher.wait({}), "no partition yet"


def test_sizes_are_those_of_the_records_that_come_next(watcher: RecordWatcher) -> None:
    found = watcher.offset_bytes({T0: 0, T1: 0}, {T0: 100, T1: 0})
    assert found == {T0: pytest.approx(100.0)}
    both = watcher.offset_bytes({T0: 50, T1: 0}, {T0: 100, T1: 100})
    assert both[T0] == pytest.approx(100.0)
    assert both[T1] == pytest.approx(49.5)


def test_processed_offsets_are_the_groups(servers: str) -> None:
    committer = GroupCommitter({"bootstrap.servers": servers}, "etl")
    committer.commit({T0: 10, T1: 0}, {})
    committer.commit({T0: 20, T1: 0}, {})
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        found = admin.list_consumer_group_offsets("etl")
    assert {tp: each.offset for tp, each in found.items() if each} == {T0: 20, T1: 0}
    committer._lease.close()
    clients.close_all()


def test_ids_of_topics_are_noted_beside_them_and_outlast_their_topic(servers: str) -> None:
    clock = MockTime()
    committer = GroupCommitter({"bootstrap.servers": servers}, "noting", "markers", clock)
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic("short-lived"), NewTopic("markers")])
        read = TopicPartition("short-lived", 0)
        ids = {"short-lived": admin.describe_topics(["short-lived"])["short-lived"].topic_id}
        committer.commit({read: 10}, ids)

        def committed() -> dict[TopicPartition, OffsetAndMetadata]:
            found = admin.list_consumer_group_offsets("noting")
            return {tp: each for tp, each in found.items() if each is not None}

        assert noted_ids({read: committed()[read]}) == ids
        admin.delete_topics(["short-lived"])
        wait_until(lambda: read not in committed(), 10, "the end of what is committed for the topic")
        assert noted_ids(committed()) == ids
        # Once a day all is committed again, before brokers forget what has not changed.
        marker = TopicPartition("markers", 0)
        admin.delete_consumer_group_offsets("noting", [marker])
        committer.commit({}, ids)
        assert committed() == {}
        clock.advance(24 * 60 * 60_000)
        committer.commit({}, ids)
        assert noted_ids(committed()) == ids
    committer._lease.close()
    clients.close_all()


def test_a_commit_that_fails_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    committer = GroupCommitter({"bootstrap.servers": "no.such.host.invalid:1"}, "etl")
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        committer.commit({T0: 10}, {})
    assert "Group etl: the processed offsets could not be committed" in caplog.text
