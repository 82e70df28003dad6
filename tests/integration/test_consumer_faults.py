"""The consumer against a network that misbehaves: nothing is lost, nothing is out of order, every call ends in time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import attrs
import pytest

from harness.broker.proxied import proxied_broker
from harness.network.proxy import FaultProxy
from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener, ConsumerRecord, KafkaConsumer
from kclient.errors import CorruptRecordError, KafkaTimeoutError, WakeupError
from kclient.protocol.api_keys import ApiKeys

COUNT = 600

_FAST: dict[str, Any] = {
    "auto.offset.reset": "earliest",
    "request.timeout.ms": 1000,
    "fetch.max.wait.ms": 100,
    "heartbeat.interval.ms": 200,
    "session.timeout.ms": 6000,
    "retry.backoff.ms": 20,
    "reconnect.backoff.ms": 10,
    "max.poll.records": 50,
    "max.partition.fetch.bytes": 2000,
}
"""Small fetches, so that there are many, and short timeouts."""


@attrs.frozen
class Net:
    """A broker that clients reach through a proxy alone, and its address without the proxy."""

    proxy: FaultProxy
    direct: str

    def consumer(self, **settings: object) -> KafkaConsumer[bytes, bytes]:
        return KafkaConsumer({"bootstrap.servers": self.proxy.bootstrap, **_FAST, **settings})


@pytest.fixture
def net() -> Iterator[Net]:
    with proxied_broker() as (proxy, direct):
        yield Net(proxy, direct)


def fill(net: Net, count: int = COUNT) -> str:
    topic = new_topic(net.direct, 2)
    for _ in range(count // 100 or 1):  # many batches, so that there are many fetches
        produce(net.direct, topic, min(count, 100))
    return topic


def read(
    consumer: KafkaConsumer[bytes, bytes], count: int, timeout_s: float = 40
) -> list[ConsumerRecord[bytes, bytes]]:
    """Poll until `count` different records have come."""
    records: list[ConsumerRecord[bytes, bytes]] = []
    seen: set[tuple[int, int]] = set()
    deadline = time.monotonic() + timeout_s
    while len(seen) < count:
        assert time.monotonic() < deadline, f"only {len(seen)} of {count} records came"
        for record in consumer.poll(200):
            records.append(record)
            seen.add((record.partition, record.offset))
    return records


def assert_in_order(records: list[ConsumerRecord[bytes, bytes]]) -> None:
    """Without a rebalance every record comes once, offsets rising without a gap."""
    nexts: dict[int, int] = {}
    for record in records:
        assert record.offset == nexts.get(record.partition, 0)
        nexts[record.partition] = record.offset + 1


@pytest.mark.parametrize("fault", ["cut", "reset", "blackhole", "swallow", "drip", "duplicate"])
@pytest.mark.parametrize("on_response", [False, True])
def test_fetches_that_fail_on_their_way_cost_and_double_no_record(
    net: Net, fault: str, on_response: bool
) -> None:
    topic = fill(net)
    amount = {"cut": (30,), "reset": (30,), "drip": (20_000,)}.get(fault, ())
    with net.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        records = read(consumer, 50)
        for _ in range(3):
            getattr(net.proxy, fault)(ApiKeys.FETCH, *amount, times=1, on_response=on_response)
            records += read(consumer, 100)
        records += read(consumer, COUNT - len(records))
    assert_in_order(records)


@pytest.mark.parametrize(
    "api",
    [
        ApiKeys.API_VERSIONS,
        ApiKeys.METADATA,
        ApiKeys.FIND_COORDINATOR,
        ApiKeys.JOIN_GROUP,
        ApiKeys.SYNC_GROUP,
        ApiKeys.HEARTBEAT,
        ApiKeys.OFFSET_FETCH,
        ApiKeys.LIST_OFFSETS,
        ApiKeys.OFFSET_COMMIT,
    ],
)
@pytest.mark.parametrize("fault", ["cut", "swallow"])
def test_a_group_gets_over_any_answer_that_is_lost(net: Net, api: ApiKeys, fault: str) -> None:
    topic = fill(net)
    if fault == "cut":
        net.proxy.cut(api, 2, times=2)
    else:
        net.proxy.swallow(api, times=1)
    settings = {"group.id": f"g-{topic}", "max.poll.interval.ms": 6000, "enable.auto.commit": False}
    with net.consumer(**settings) as consumer:
        consumer.subscribe([topic])
        read(consumer, COUNT)
        consumer.commit_sync(timeout_ms=15_000)
        committed = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)])
    assert sum(offset.offset for offset in committed.values() if offset) == COUNT


def test_a_record_damaged_on_its_way_is_named_and_fetched_again(net: Net) -> None:
    topic = fill(net, 1500)
    tp = TopicPartition(topic, 0)
    errors: list[tuple[str, int, int]] = []
    records: list[ConsumerRecord[bytes, bytes]] = []
    with net.consumer() as consumer:
        consumer.assign([tp])
        count = consumer.end_offsets([tp])[tp]
        records += read(consumer, 20)
        net.proxy.corrupt(ApiKeys.FETCH, 200, times=2)
        deadline = time.monotonic() + 30
        while len(records) < count:
            assert time.monotonic() < deadline
            try:
                records += consumer.poll(200)
            except CorruptRecordError as error:
                errors.append((str(error), consumer.position(tp), len(records)))
    assert errors
    for message, position, returned in errors:
        assert str(tp) in message
        assert position == returned
    assert_in_order(records)


def test_everything_that_waits_ends_in_time_behind_a_black_hole(net: Net) -> None:
    topic = fill(net, 10)
    tp = TopicPartition(topic, 0)
    with net.consumer(**{"group.id": f"g-{topic}"}) as consumer:
        consumer.subscribe([topic])
        read(consumer, 10)
        net.proxy.blackhole(None, times=-1, on_response=False)
        started = time.monotonic()
        for call in (
            lambda: consumer.commit_sync(timeout_ms=700),
            lambda: consumer.committed([tp], timeout_ms=700),
            lambda: consumer.end_offsets([tp], timeout_ms=700),
            lambda: consumer.partitions_for(topic, timeout_ms=700),
        ):
            with pytest.raises(KafkaTimeoutError):
                call()
        assert not consumer.poll(300)
        assert time.monotonic() - started < 30
        started = time.monotonic()
        consumer.close(timeout_ms=1000)
        assert time.monotonic() - started < 20


def test_members_that_come_and_go_leave_no_record_unread(net: Net) -> None:
    topic = fill(net)
    group = {"group.id": f"g-{topic}", "auto.commit.interval.ms": 50}
    seen: set[tuple[int, int]] = set()
    overlaps: list[Any] = []
    owners: dict[TopicPartition, int] = {}
    lock = threading.Lock()
    stop = threading.Event()

    class Owners(ConsumerRebalanceListener):
        def __init__(self, number: int) -> None:
            self.number = number

        def on_partitions_assigned(self, partitions: Any) -> None:
            with lock:
                overlaps.extend(tp for tp in partitions if owners.get(tp, self.number) != self.number)
                owners.update(dict.fromkeys(partitions, self.number))

        def on_partitions_revoked(self, partitions: Any) -> None:
            with lock:
                for tp in partitions:
                    owners.pop(tp, None)

    def member(number: int, until: float) -> None:
        with net.consumer(**group) as consumer:
            consumer.subscribe([topic], Owners(number))
            while time.monotonic() < until and not stop.is_set():
                for record in consumer.poll(20):
                    seen.add((record.partition, record.offset))

    now = time.monotonic()
    threads = [
        threading.Thread(target=member, args=(number, now + end))
        for number, end in ((0, 30.0), (1, 1.5), (2, 30.0))
    ]
    for thread in threads:
        thread.start()
        stop.wait(0.5)
    wait_until(lambda: len(seen) == COUNT, 25, "every record")
    stop.set()
    for thread in threads:
        thread.join(15)
    assert not overlaps, "a partition was given to a member before another one gave it up"


def test_a_signal_handler_may_wake_the_consumer_it_interrupts(net: Net) -> None:
    topic = fill(net, 1)
    with net.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        read(consumer, 1)
        old = signal.signal(signal.SIGALRM, lambda *_: consumer.wakeup())
        try:
            for round_ in range(20):
                signal.setitimer(signal.ITIMER_REAL, 0.005 + round_ * 0.003)
                with pytest.raises(WakeupError):
                    consumer.poll(5000)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
        assert not consumer.poll(50)  # each wakeup was raised once


# A signal's handler may also run inside a weak reference's callback, where Python can only report what it raises.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_handler_that_raises_ends_a_poll_and_loses_no_record(net: Net) -> None:
    topic = fill(net)

    class AlarmError(Exception):
        pass

    def ring(_: int, frame: FrameType | None) -> None:
        while frame is not None:  # what is raised outside of poll() would be this test's own loss
            if frame.f_code is KafkaConsumer.poll.__code__:
                raise AlarmError
            frame = frame.f_back

    records: list[ConsumerRecord[bytes, bytes]] = []
    alarms = 0
    old = signal.signal(signal.SIGALRM, ring)
    try:
        with net.consumer() as consumer:
            tp = TopicPartition(topic, 0)
            consumer.assign([tp])
            count = consumer.end_offsets([tp])[tp]
            deadline = time.monotonic() + 40
            while len(records) < count or not alarms:  # all of it may come before the first alarm
                assert time.monotonic() < deadline
                try:
                    if alarms < 150:  # on a busy machine every poll could be ended before it has anything
                        signal.setitimer(signal.ITIMER_REAL, 0.0005 + (alarms % 50) * 0.0002)
                    polled = consumer.poll(5)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except AlarmError:
                    alarms += 1
                else:
                    records += polled
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert_in_order(records)
