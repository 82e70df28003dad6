"""Ctrl-C while a client closes: closing again ends it cleanly, and nothing that was acknowledged is lost."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.interrupts import Storm, interrupted_at
from harness.network.proxy import FaultProxy
from harness.network.scripted_broker import ScriptedBroker
from harness.producer.cluster import ProxiedCluster
from harness.topics import new_topic, produce, read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys


@pytest.fixture(autouse=True)
def nothing_left_behind(servers: str) -> Iterator[None]:
    """Threads and connections of the clients are gone after the test."""
    threads, sockets = set(threading.enumerate()), open_sockets()
    yield
    wait_until(lambda: set(threading.enumerate()) <= threads, what="the end of all threads")
    # The broker's side of a connection is a socket of this process, too, and closes a moment later.
    wait_until(lambda: open_sockets() <= sockets, what="the end of all connections")


def open_sockets() -> int:
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            count += str(descriptor.readlink()).startswith("socket:")
        except FileNotFoundError:
            pass  # that of the listing itself, or closed meanwhile
    return count


class Plain:
    """Bytes as they are; notes that it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def serialize(self, topic: str, data: bytes, headers: Any) -> bytes:
        return data

    def deserialize(self, topic: str, data: bytes, headers: Any) -> bytes:
        return data

    def close(self) -> None:
        self.closed = True


def threads_of(client_id: str) -> list[str]:
    return [thread.name for thread in threading.enumerate() if client_id in thread.name]


def close_with_an_interrupt(moment: int, close: Callable[[], None]) -> bool:
    """Close with an interrupt at `moment` and then once more; returns whether there was that moment."""
    try:
        interrupted_at(moment, close)
    except KeyboardInterrupt:
        close()
        return True
    return False


def close_in_a_storm(close: Callable[[], None]) -> None:
    """Close again and again until nothing interrupts it any more."""
    deadline = time.monotonic() + 30
    while True:
        assert time.monotonic() < deadline
        try:
            close()
        except KeyboardInterrupt:
            continue
        return


def test_an_interrupt_at_any_moment_of_closing_a_producer_loses_nothing_that_closing_again_can_deliver(
    servers: str,
) -> None:
    topic = new_topic(servers, 1)
    futures: dict[bytes, Any] = {}
    for moment in itertools.count(1):
        serializer = Plain()
        producer = KafkaProducer(
            bootstrap_servers=servers, client_id="interrupted", linger_ms=50, value_serializer=serializer
        )
        for number in range(2):
            value = b"%d-%d" % (moment, number)
            futures[value] = producer.send(topic, value)
        interrupted = close_with_an_interrupt(moment, producer.close)
        assert not threads_of("interrupted")
        assert serializer.closed
        if not interrupted:
            break
    assert moment > 10
    values = [record.value for record in read_all(servers, topic)]
    assert {value: future.result(0).offset for value, future in futures.items()} == {
        value: offset for offset, value in enumerate(values)
    }


def test_a_storm_of_interrupts_while_a_producer_closes_loses_nothing() -> None:
    with ScriptedBroker(topics={"t": 1}) as broker, FaultProxy(broker.address) as proxy:
        cluster = ProxiedCluster(broker, proxy)
        producer = cluster.producer(request_timeout_ms=5000)
        cluster.send(producer)
        producer.flush()
        rule = proxy.delay(ApiKeys.PRODUCE, 300)
        cluster.send(producer, 10)
        with Storm(KafkaProducer.close) as storm:
            close_in_a_storm(producer.close)
        assert rule.hits == 1
        assert storm.raised > 5
        cluster.check()
        assert not producer._core.io_thread.alive


def committed(servers: str, group: str, tp: TopicPartition) -> int:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        found = admin.list_consumer_group_offsets(group, [tp])[tp]
    assert found is not None
    return found.offset


def reader(servers: str, group: str, **settings: object) -> KafkaConsumer[bytes, bytes]:
    return KafkaConsumer(
        {
            "bootstrap.servers": servers,
            "client.id": "interrupted",
            "group.id": group,
            "auto.offset.reset": "earliest",
            "max.poll.records": 5,
            # Nothing is committed but what the test asks for, however slow the machine is.
            "auto.commit.interval.ms": 600_000,
            **settings,
        }
    )


@pytest.mark.parametrize("way", ["assigned", "subscribed"])
def test_an_interrupt_at_any_moment_of_closing_a_consumer_commits_nothing_unread_and_takes_nothing_back(
    servers: str, way: str
) -> None:
    topic = new_topic(servers, 1)
    tp = TopicPartition(topic, 0)
    produce(servers, topic, 20)
    outcomes: Counter[int] = Counter()
    # Joining a group takes its time, so not every moment is tried with one.
    for moment in itertools.count(1, 1 if way == "assigned" else 5):
        group = f"g-{uuid.uuid4().hex[:8]}"
        deserializer = Plain()
        consumer = reader(servers, group, **{"value.deserializer": deserializer})
        if way == "assigned":
            consumer.assign([tp])
        else:
            consumer.subscribe([topic])
        while not consumer.poll(10_000):
            pass
        consumer.commit_sync({tp: 3})
        assert len(consumer.poll(10_000)) == 5
        interrupted = close_with_an_interrupt(moment, consumer.close)
        assert not threads_of("interrupted")
        assert deserializer.closed
        outcomes[committed(servers, group, tp)] += 1
        if not interrupted:
            break
    # What was committed before, or everything that was returned.
    assert set(outcomes) == {3, 10}
    assert outcomes.total() > 10


def test_a_storm_of_interrupts_while_a_consumer_closes_leaves_nothing_of_it(servers: str) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 20)
    interrupts = 0
    while interrupts < 30:
        consumer = reader(servers, f"g-{uuid.uuid4().hex[:8]}")
        consumer.subscribe([topic])
        while not consumer.poll(10_000):
            pass
        with Storm(KafkaConsumer.close, pause_s=0.0005) as storm:
            close_in_a_storm(consumer.close)
        assert not threads_of("interrupted")
        interrupts += storm.raised


def test_an_interrupt_at_any_moment_of_closing_an_admin_client_leaves_nothing_of_it(servers: str) -> None:
    for moment in itertools.count(1):
        admin = KafkaAdminClient(bootstrap_servers=servers, client_id="interrupted")
        admin.list_topics()
        interrupted = close_with_an_interrupt(moment, admin.close)
        assert not threads_of("interrupted")
        if not interrupted:
            break
    assert moment > 5


def test_a_client_whose_closing_was_interrupted_and_that_is_dropped_then_ends_by_itself(servers: str) -> None:
    made: Mapping[str, Callable[[], Any]] = {
        "producer": lambda: KafkaProducer(bootstrap_servers=servers, client_id="interrupted"),
        "consumer": lambda: reader(servers, "g"),
        "admin": lambda: KafkaAdminClient(bootstrap_servers=servers, client_id="interrupted"),
    }
    for name, make in made.items():
        for moment in itertools.count(1):
            client = make()
            try:
                interrupted_at(moment, client.close)
            except KeyboardInterrupt:
                pass
            else:
                break
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # it depends on how far closing came
                del client
            wait_until(lambda: not threads_of("interrupted"), what=f"the end of the {name}, moment {moment}")
