"""Records that are sent one at a time, each when the one before has its outcome."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.interrupts import interrupted_at
from harness.network.proxy import FaultProxy
from harness.network.scripted_broker import Reply, ScriptedBroker
from harness.producer.cluster import ProxiedCluster
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient.errors import ErrorCode, KafkaTimeoutError
from kclient.producer import KafkaProducer, RecordMetadata
from kclient.protocol.api_keys import ApiKeys
from kclient.record import iter_batches


@pytest.fixture
def cluster() -> Iterator[ProxiedCluster]:
    with ScriptedBroker(topics={"t": 1}) as broker, FaultProxy(broker.address) as proxy:
        yield ProxiedCluster(broker, proxy)


def test_each_is_a_request_that_is_counted_and_its_memory_given_back(servers: str) -> None:
    topic = new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer:
        offsets = [producer.send(topic, b"%d" % i, key=b"k").result(20).offset for i in range(300)]
        assert offsets == list(range(300))
        producer.flush()

        wait_until(lambda: producer.metrics()["record-send-total"] == 300, what="the last ones being counted")
        found = producer.metrics()
    assert found["records-per-request-avg"] == 1
    assert 300 <= found["request-total"] < 310  # with those for metadata and the producer's id
    assert found["buffer-available-bytes"] == found["buffer-total-bytes"]
    assert found["request-latency-max"] >= found["request-latency-avg"] >= 0
    records = read_all(servers, topic)
    assert [record.value for record in records] == [b"%d" % i for i in range(300)]


def send(cluster: ProxiedCluster, producer: KafkaProducer[bytes, bytes], **named: Any) -> Any:
    """Send the next record, by default without a callback."""
    value = b"%06d" % len(cluster.sent)
    future = producer.send("t", value, partition=0, **named)
    cluster.sent.append((value, future))
    cluster.told[value] = 1
    return future


def sent_sequences(cluster: ProxiedCluster) -> list[int]:
    return [
        batch.base_sequence
        for message in cluster.broker.received(ApiKeys.PRODUCE)
        for batch in iter_batches(message.topic_data[0].partition_data[0].records)
    ]


@pytest.mark.parametrize(("acks", "idempotent"), [("all", True), ("all", False), (1, False)])
def test_headers_keys_times_and_null_arrive(servers: str, acks: Any, idempotent: bool) -> None:
    topic = new_topic(servers, 1)
    with KafkaProducer(
        bootstrap_servers=servers, linger_ms=0, acks=acks, enable_idempotence=idempotent
    ) as producer:
        for _ in range(3):
            producer.send(topic, b"before").result(20)
        told = producer.send(
            topic, None, key=b"k", headers=[("h", b"1"), ("h", None)], timestamp_ms=77
        ).result(20)
    assert (told.timestamp_ms, told.serialized_key_size, told.serialized_value_size) == (77, 1, -1)
    record = read_all(servers, topic)[-1]
    assert (record.key, record.value, record.timestamp_ms) == (b"k", None, 77)
    assert [(name, value) for name, value in record.headers] == [("h", b"1"), ("h", None)]


@pytest.mark.parametrize("cut_with", ["cut", "reset"])
@pytest.mark.parametrize("on_response", [False, True])
def test_a_connection_that_breaks_loses_and_repeats_no_record(
    cluster: ProxiedCluster, cut_with: str, on_response: bool
) -> None:
    with cluster.producer() as producer:
        for at in (0, 1, 4, 8, 20, 40, 60, 100):
            send(cluster, producer).result(20)
            getattr(cluster.proxy, cut_with)(ApiKeys.PRODUCE, at, on_response=on_response)
            send(cluster, producer).result(20)
    cluster.check()


def test_a_silent_broker_is_asked_again_after_request_timeout(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        send(cluster, producer).result(20)
        cluster.proxy.swallow(ApiKeys.PRODUCE)
        send(cluster, producer).result(20)
        send(cluster, producer).result(20)
    cluster.check()


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT])
def test_a_passing_error_is_tried_again_under_the_same_sequence(
    cluster: ProxiedCluster, code: ErrorCode
) -> None:
    with cluster.producer() as producer:
        send(cluster, producer).result(20)
        cluster.logs.fail("t", code, times=2)
        offset = send(cluster, producer).result(20).offset
        assert send(cluster, producer).result(20).offset == offset + 1
    cluster.check()
    times = Counter(sent_sequences(cluster))
    assert sorted(times.values())[-2:] == [1, 3]


def test_a_final_error_is_told_and_the_producer_goes_on(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        send(cluster, producer).result(20)
        cluster.logs.fail("t", ErrorCode.INVALID_RECORD)
        failed = send(cluster, producer)
        error = failed.exception(20)
        assert error is not None
        assert error.code == ErrorCode.INVALID_RECORD  # type: ignore[attr-defined]
        for _ in range(3):
            send(cluster, producer).result(20)
    cluster.check(all_delivered=False)


def test_a_record_that_expires_says_so_and_the_next_one_is_sent(cluster: ProxiedCluster) -> None:
    with cluster.producer(request_timeout_ms=500, delivery_timeout_ms=1500) as producer:
        send(cluster, producer).result(20)
        cluster.broker.on(ApiKeys.PRODUCE, lambda header, message: Reply.NOTHING)
        with pytest.raises(KafkaTimeoutError, match="were not delivered within"):
            send(cluster, producer).result(20)
        cluster.broker.on(ApiKeys.PRODUCE, lambda header, message: cluster.produce(message))
        send(cluster, producer).result(20)
    cluster.check(all_delivered=False)


def test_flush_waits_for_the_record(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        for _ in range(20):
            future = send(cluster, producer)
            producer.flush()
            assert future.done()
        cluster.broker.answer(ApiKeys.PRODUCE, Reply.NOTHING)
        send(cluster, producer)
        with pytest.raises(KafkaTimeoutError, match="not delivered within 50 ms"):
            producer.flush(50)
        producer.flush()
    cluster.check()


def test_callbacks_run_on_the_io_thread_and_before_result_returns(cluster: ProxiedCluster) -> None:
    threads: list[str] = []

    def told(*_: Any) -> None:
        threads.append(threading.current_thread().name)

    with cluster.producer() as producer:
        for number in range(1, 6):
            send(cluster, producer).result(20)
            send(cluster, producer, on_delivery=told).result(20)
            assert len(threads) == number
    assert set(threads) == {f"kclient-producer-{producer._core.config.client_id}"}
    cluster.check()


def test_done_callbacks_are_called_once_wherever_they_are_added(cluster: ProxiedCluster) -> None:
    calls: list[Any] = []
    with cluster.producer() as producer:
        for _ in range(10):
            future = send(cluster, producer)
            future.add_done_callback(calls.append)
            future.result(20)
            future.add_done_callback(calls.append)
            assert calls[-2:] == [future, future]
        for _ in range(10):
            future = send(cluster, producer)
            future.add_done_callback(calls.append)
            wait_until(lambda: calls[-1] is future)  # noqa: B023
    assert len(calls) == 30
    cluster.check()


def test_many_threads_may_wait_for_one_record(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        for _ in range(20):
            future = send(cluster, producer)
            found: list[RecordMetadata] = []

            def wait(future: Any = future, found: list[RecordMetadata] = found) -> None:
                found.append(future.result(20))

            threads = [threading.Thread(target=wait) for _ in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(20)
            assert len({metadata.offset for metadata in found}) == 1
            assert len(found) == 5
    cluster.check()


def test_many_threads_that_send_one_by_one_lose_and_double_nothing(servers: str) -> None:
    topic = new_topic(servers, 1)
    offsets: dict[bytes, int] = {}
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer:

        def work(name: int) -> None:
            for number in range(200):
                value = b"%d-%d" % (name, number)
                offsets[value] = producer.send(topic, value).result(20).offset
                if number % 20 == name:
                    time.sleep(0.001)  # so that the others meet a lane that is free now and then

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    records = read_all(servers, topic)
    assert {record.value: record.offset for record in records} == offsets
    assert len(records) == 800
    last: dict[bytes, int] = {}
    for record in records:
        name, number = record.value.split(b"-")  # type: ignore[union-attr]
        assert last.get(name, -1) == int(number) - 1
        last[name] = int(number)


def test_an_interrupt_at_any_moment_of_sending_and_waiting_loses_and_doubles_nothing(
    cluster: ProxiedCluster,
) -> None:
    finished: dict[bytes, int] = {}
    interrupts = 0
    numbers = itertools.count()
    with cluster.producer() as producer:

        def round_trip(value: bytes) -> int:
            offset: int = producer.send("t", value, partition=0).result(20).offset
            return offset

        for _ in range(4):
            for moment in itertools.count(1):
                send(cluster, producer).result(20)
                value = b"x%05d" % next(numbers)
                try:
                    finished[value] = interrupted_at(moment, round_trip, value)
                except KeyboardInterrupt:
                    interrupts += 1
                    continue
                break
        producer.flush()
    values = cluster.logs.log("t").values
    assert len(values) == len(set(values)), "an interrupted send is written once or not at all"
    assert all(values[offset] == value for value, offset in finished.items())
    assert all(values[future.result(0).offset] == value for value, future in cluster.sent)
    assert interrupts > 50
    assert cluster.broker.errors == []


def test_after_a_pause_and_after_metadata_was_asked_for_it_goes_on(servers: str) -> None:
    topic = new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0, metadata_max_age_ms=150) as producer:
        until = time.monotonic() + 1.0
        count = 0
        while time.monotonic() < until:
            producer.send(topic, b"%d" % count).result(20)
            count += 1
            if count % 50 == 0:
                time.sleep(0.15)
        producer.flush()
    assert [record.value for record in read_all(servers, topic)] == [b"%d" % i for i in range(count)]


def test_a_broker_that_asks_for_silence_is_left_in_peace(cluster: ProxiedCluster) -> None:
    def throttled(header: Any, message: Any) -> Any:
        answer = cluster.produce(message)
        answer.throttle_time_ms = 300
        return answer

    with cluster.producer() as producer:
        send(cluster, producer).result(20)
        cluster.broker.once(ApiKeys.PRODUCE, throttled)
        send(cluster, producer).result(20)
        started = time.monotonic()
        send(cluster, producer).result(20)
        assert time.monotonic() - started > 0.15
    cluster.check()


def test_a_copy_of_the_process_can_use_nothing_of_it(cluster: ProxiedCluster) -> None:
    with ExitStack() as stack:
        producer = stack.enter_context(cluster.producer())
        future = send(cluster, producer)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                try:
                    producer.send("t", b"child")
                except Exception:
                    try:
                        future.result(5)
                        code = 0 if future.done() else 2
                    except Exception:
                        code = 0
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        future.result(20)
        send(cluster, producer).result(20)
    cluster.check()
