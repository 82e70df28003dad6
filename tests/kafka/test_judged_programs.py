"""Programs that are slow, interrupted, forked, woken up and held back; the checker judges what their clients saw.

A row is a fault of faults.md by its number, as in test_judged_faults.py.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.broker.wire import Wire
from harness.checker.history import Place
from harness.checker.log import ProducerLog
from harness.consumer.reader import reader
from harness.interrupts import Storm
from harness.network.produce_answers import refuse_batches
from harness.network.proxy import FaultProxy
from harness.real_kafka.broker import RealKafka
from harness.scenarios.faults import QUICK, RecordedMember, UnderFault, judged_behind
from harness.soak.recorded import RecordedProducer, RecordingListener, write_poll
from harness.topics import new_topic
from kclient.admin import ClientQuotaAlteration, ClientQuotaEntity, KafkaAdminClient
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import (
    ConcurrentModificationError,
    ErrorCode,
    FencedInstanceIdError,
    ForkedClientError,
    KafkaError,
    WakeupError,
)
from kclient.producer import KafkaProducer, RecordMetadata
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

_ROUNDS_S = 1.0
Fault = Callable[[RealKafka, FaultProxy, UnderFault], None]


def a_slow_poll(kafka: RealKafka, proxy: FaultProxy, running: UnderFault) -> None:
    """Members of both protocols that do not poll for longer than max.poll.interval.ms."""
    slow = [
        running.more_members("slow", running.group, **{"max.poll.interval.ms": 1000}),
        running.more_members(
            "slow too",
            f"h-{running.topic}",
            **{"group.protocol": "consumer", "enable.auto.commit": False, "max.poll.interval.ms": 1000},
        ),
    ]
    running.wait_for_shares()
    before = running.turns()
    for member in slow:
        member.resting.set()
    running.until(
        lambda: running.turns()["assigned"] >= before["assigned"] + 2, "others with their partitions"
    )
    for member in slow:
        member.resting.clear()
    running.until(lambda: running.turns()["lost"] >= before["lost"] + 2, "members that know of it")
    running.wait_for_shares()


def static_members(kafka: RealKafka, proxy: FaultProxy, running: UnderFault) -> None:
    """One that comes back takes nothing from the others, and of two with the same id the first is fenced."""
    settings = {"group.instance.id": "one", "group.protocol": "classic"}
    first = running.more_members("static", running.group, **settings)
    running.wait_for_shares()
    first.stop()
    running.log.ended(first.name)
    del running.members["static"]
    before = running.turns()
    second = running.more_members(
        "static again", running.group, tolerated=(FencedInstanceIdError,), **settings
    )
    running.until(lambda: bool(second.handed), "records for the one that came back")
    assert running.turns()["revoked"] == before["revoked"]
    running.more_members("static as well", running.group, **settings)
    running.until(lambda: bool(second.errors), "the first of two to be fenced")
    second.stop()
    del running.members["static again"]
    running.wait_for_shares()


def a_member_whose_subscription_cannot_be_read(
    kafka: RealKafka, proxy: FaultProxy, running: UnderFault
) -> None:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"\xff\xff\xff")
    request = JoinGroupRequest(
        group_id=running.group,
        session_timeout_ms=1500,
        rebalance_timeout_ms=3000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    with Wire(kafka.bootstrap_servers) as wire:
        request.member_id = wire.ask(request, 5).member_id
        before = running.turns()
        joined = wire.ask(request, 5)
        assert joined.error_code == 0
        assert joined.leader != joined.member_id
        running.until(lambda: running.turns()["assigned"] > before["assigned"], "a share beside it")
    running.wait_for_progress()


def offsets_that_do_not_exist(kafka: RealKafka, proxy: FaultProxy, running: UnderFault) -> None:
    """Records are deleted before one that is behind has read them; who has read them notices nothing."""
    log = running.log.consumer("behind")
    little = {"max.poll.records": 5, "max.partition.fetch.bytes": 1000, **QUICK}
    jumped = set()
    with reader(proxy.bootstrap, running.topic, 3, **little) as consumer:
        partitions = consumer.assignment()
        while any(consumer.position(tp) < 5 for tp in partitions):
            write_poll(log, consumer.poll(1000))
        due = {tp: consumer.position(tp) for tp in partitions}
        running.until(
            lambda: all(
                end > due[TopicPartition(*place[:2])] + 50 for place, end in running.read_by_all().items()
            ),
            "groups that are ahead",
        )
        begins = running.delete_records()
        while any(due[tp] < begins[tp] + 20 for tp in partitions):
            records = consumer.poll(1000)
            for tp, batch in records.by_partition().items():
                if batch[0].offset != due[tp]:
                    # Its policy has moved it, to where the log begins.
                    assert batch[0].offset == begins[tp]
                    log.sought([Place(*tp)])
                    jumped.add(tp)
                due[tp] = batch[-1].offset + 1
            write_poll(log, records)
    log.closed()
    assert jumped == partitions


class InterruptedSends:
    """Sends records in the middle of interrupts; one that was interrupted may have been sent, or not."""

    def __init__(self, log: ProducerLog, producer: KafkaProducer[bytes, bytes], topic: str) -> None:
        self._log = log
        self._producer = producer
        self._topic = topic
        self._sent = 0
        self._told: set[int] = set()
        self._interrupted: list[int] = []

    def send(self) -> None:
        self._sent += 1
        partition = self._sent % 3
        value = b"interrupted:%d" % self._sent
        number = self._log.send(self._topic, value, partition)

        def delivered(metadata: RecordMetadata, error: KafkaError | None) -> None:
            self._told.add(number)
            assert error is None
            self._log.acked(number, metadata.partition, metadata.offset)

        try:
            self._producer.send(self._topic, value, partition=partition, on_delivery=delivered)
        except KeyboardInterrupt:
            self._interrupted.append(number)

    def closed(self) -> int:
        """All is delivered; returns how many calls were interrupted."""
        for number in self._interrupted:
            if number not in self._told:
                self._log.failed(number, "interrupted", "unknown")
        self._log.closed()
        return len(self._interrupted)


def interrupts(kafka: RealKafka, proxy: FaultProxy, running: UnderFault) -> None:
    log = running.log.consumer("interrupted reader")
    with (
        reader(proxy.bootstrap, running.topic, 3, **{"max.poll.records": 7, **QUICK}) as consumer,
        KafkaProducer(bootstrap_servers=proxy.bootstrap, linger_ms=1) as producer,
    ):
        sends = InterruptedSends(running.log.producer("interrupted"), producer, running.topic)
        with Storm(KafkaConsumer.poll, KafkaProducer.send, pause_s=0.001) as storm:
            ends = time.monotonic() + _ROUNDS_S
            while time.monotonic() < ends or storm.raised < 50:
                for _ in range(20):
                    sends.send()
                try:
                    records = consumer.poll(20)
                except KeyboardInterrupt:
                    continue
                write_poll(log, records)
        end = consumer.end_offsets(consumer.assignment())
        while any(consumer.position(tp) < end[tp] for tp in end):
            write_poll(log, consumer.poll(100))
    interrupted = sends.closed()
    log.closed()
    assert storm.raised > interrupted


def wakeups_and_threads(kafka: RealKafka, proxy: FaultProxy, running: UnderFault) -> None:
    """Members are woken up again and again, and used by a second thread; sixteen threads share a producer."""
    consumers = [member.consumer for member in running.members.values() if member.consumer is not None]

    def refused(consumer: KafkaConsumer[bytes, bytes]) -> bool:
        """Wake it up and use it; true if it refuses to be used beside its own thread."""
        consumer.wakeup()
        try:
            consumer.position(TopicPartition(running.topic, 0))
        except ConcurrentModificationError:
            return True
        except KafkaError:
            pass  # it had no other call at the moment, and was woken up, or has another partition
        return False

    def send(number: int) -> RecordedProducer:
        recorded = RecordedProducer(running.log.producer(f"thread {number}"))
        for each in range(100):
            recorded.send(producer, running.topic, b"thread:%d:%d" % (number, each), partition=each % 3)
        return recorded

    with (
        KafkaProducer(bootstrap_servers=proxy.bootstrap, linger_ms=1) as producer,
        ThreadPoolExecutor(16) as pool,
    ):
        sending = [pool.submit(send, number) for number in range(16)]
        for _ in range(100):
            for consumer in consumers:
                refused(consumer)
        recorded = [each.result(60) for each in sending]
    for each in recorded:
        each.closed()
        assert each.problems == []
    # All those calls may come before any member runs again.
    running.until(lambda: any(map(refused, consumers)), "a call that is refused")
    assert running.errors()["WakeupError"] > 0


class _RaisingListener(RecordingListener):
    """Writes down what it is told, and raises."""

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        super().on_partitions_assigned(partitions)
        raise ValueError("a listener")


class _MemberThatRaises(RecordedMember):
    def listener(self) -> RecordingListener:
        return _RaisingListener(self._log)


def callbacks_that_raise(kafka: RealKafka, proxy: FaultProxy, running: UnderFault) -> None:
    member = running.more_members("raising", running.group, _MemberThatRaises, tolerated=(ValueError,))
    running.until(
        lambda: bool(member.errors) and bool(member.handed), "records after what the listener raised"
    )
    log = running.log.producer("raising")
    told = 0

    def send(number: int, producer: KafkaProducer[bytes, bytes]) -> None:
        sent = log.send(running.topic, b"raising:%d" % number, number % 3)

        def delivered(metadata: RecordMetadata, error: KafkaError | None) -> None:
            nonlocal told
            told += 1
            assert error is None
            log.acked(sent, metadata.partition, metadata.offset)
            raise ValueError("a callback")

        producer.send(running.topic, b"raising:%d" % number, partition=number % 3, on_delivery=delivered)

    with KafkaProducer(bootstrap_servers=proxy.bootstrap, linger_ms=5) as producer:
        for number in range(100):
            send(number, producer)
    log.closed()
    assert told == 100


def of(label: bytes, code: ErrorCode) -> Callable[[Any], Any]:
    """Refuse the batches that begin with a record of one producer."""
    return refuse_batches(lambda values: int(code) if values[0].startswith(label) else None)


def a_full_buffer(kafka: RealKafka, proxy: FaultProxy, running: UnderFault) -> None:
    small = {"buffer.memory": 40_000, "batch.size": 8000, "max.block.ms": 50}
    held = proxy.answer(ApiKeys.PRODUCE, of(b"full", ErrorCode.NOT_ENOUGH_REPLICAS), times=-1)
    full = running.more_load("full", per_s=400, size=1000, **small)
    running.until(lambda: full.recorded.failed["BufferExhaustedError"] >= 3, "a buffer that is full")
    assert held.hits > 0
    proxy.clear()
    running.until(lambda: full.acked >= 100, "a buffer with room again")
    running.until(lambda: full.metric("buffer-available-bytes") > 20_000, "room")


def batches_that_expire(kafka: RealKafka, proxy: FaultProxy, running: UnderFault) -> None:
    short = {"request.timeout.ms": 300, "delivery.timeout.ms": 600, "linger.ms": 5}
    expiring = running.more_load("expiring", per_s=400, size=300, **short)
    running.until(lambda: expiring.acked > 20, "records")
    appended = proxy.answer(
        ApiKeys.PRODUCE, of(b"expiring", ErrorCode.REQUEST_TIMED_OUT), times=10, pass_on=True
    )
    running.happened(appended)
    for _ in range(3):
        lost = [proxy.swallow(ApiKeys.PRODUCE, times=4, on_response=way) for way in (False, True)]
        running.happened(*lost)
    running.until(lambda: expiring.recorded.failed["KafkaTimeoutError"] > 0, "batches that expire")
    acked = expiring.acked
    running.until(lambda: expiring.acked > acked + 50, "records after them")


def quotas(kafka: RealKafka, proxy: FaultProxy, running: UnderFault) -> None:
    """A producer and a member that a real broker holds back."""
    reading = {"client.id": f"throttled-reader-{running.topic}", "fetch.max.wait.ms": 50}
    member = running.more_members("held back", running.group, **reading)
    load = running.more_load("throttled", per_s=100, size=400)
    limits = {
        f"load-throttled-{running.topic}": ("producer_byte_rate", 5000.0),
        reading["client.id"]: ("consumer_byte_rate", 2000.0),
    }
    entities = {name: ClientQuotaEntity({"client-id": name}) for name in limits}

    held_back: list[float] = []

    def look() -> None:
        assert member.consumer is not None
        found = member.consumer.metrics().items()
        held_back.extend(value for key, value in found if key.name == "fetch-throttle-time-max" and value > 0)

    def throttled() -> bool:
        return load.metric("produce-throttle-time-max") > 0 and bool(held_back)

    member.before_poll = look

    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.alter_client_quotas(
            [ClientQuotaAlteration(entities[name], dict([limit])) for name, limit in limits.items()]
        )
        running.until(throttled, "clients that are held back")
        load.stop()
        admin.alter_client_quotas(
            [ClientQuotaAlteration(entities[name], {limit[0]: None}) for name, limit in limits.items()]
        )


def forks(kafka: RealKafka, proxy: FaultProxy, running: UnderFault) -> None:
    """Children of a process whose clients are at work cannot use them, and take nothing from them."""
    (consumer,) = (member.consumer for name, member in running.members.items() if name == "a")
    recorded = RecordedProducer(running.log.producer("parent"))
    with KafkaProducer(bootstrap_servers=proxy.bootstrap, linger_ms=1) as producer:
        for number in range(5):
            for each in range(20):
                recorded.send(producer, running.topic, b"parent:%d:%d" % (number, each), partition=each % 3)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, beside threads
                child = os.fork()
            if not child:
                os._exit(_in_a_child(producer, consumer, running.topic))
            ended: list[int] = []
            running.until(lambda: _has_ended(child, ended), "the child's end")  # noqa: B023
            assert os.waitstatus_to_exitcode(ended[0]) == 0
    recorded.closed()
    assert recorded.problems == []
    assert recorded.acked == 100


def _in_a_child(
    producer: KafkaProducer[bytes, bytes], consumer: KafkaConsumer[bytes, bytes] | None, topic: str
) -> int:
    assert consumer is not None
    refused = 0
    for use in (lambda: producer.send(topic, b"child"), producer.flush, lambda: consumer.poll(10)):
        try:
            use()
        except ForkedClientError:
            refused += 1
    return 0 if refused == 3 else 1


def _has_ended(child: int, ended: list[int]) -> bool:
    pid, status = os.waitpid(child, os.WNOHANG)
    if pid:
        ended.append(status)
    return bool(pid)


ROWS: Mapping[str, Fault] = {
    "F33": a_slow_poll,
    "F34": static_members,
    "F36": a_member_whose_subscription_cannot_be_read,
    "F37": offsets_that_do_not_exist,
    "F40": forks,
    "F42 F43": interrupts,
    "F44": wakeups_and_threads,
    "F45": callbacks_that_raise,
    "F49": a_full_buffer,
    "F50": batches_that_expire,
    "F51": quotas,
}


_TOLERATED: Mapping[str, tuple[type[KafkaError], ...]] = {
    # A member's own thread may come while the other one is inside.
    "F44": (WakeupError, ConcurrentModificationError),
}


@pytest.mark.parametrize("row", ROWS)
def test_nothing_is_lost_doubled_out_of_order_or_committed_ahead(
    kafka: RealKafka, kafka_proxy: FaultProxy, tmp_path: Path, row: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers)
    tolerated = _TOLERATED.get(row, ())
    with judged_behind(kafka_proxy, kafka, tmp_path, topic, tolerated=tolerated) as running:
        ROWS[row](kafka, kafka_proxy, running)
