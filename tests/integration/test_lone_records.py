"""Records that are sent one at a time: past the I/O thread where that is possible, and as safe as all others."""

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

from faults import FaultProxy, Reply, ScriptedBroker
from faults_cluster import ProxiedCluster
from helpers import wait_until
from interrupts import interrupted_at
from kclient.broker.embedded import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.errors import ErrorCode, KafkaTimeoutError, RecordTooLargeError
from kclient.producer import KafkaProducer, RecordMetadata
from kclient.producer.internals.lone_records import LoneRecords
from kclient.protocol.api_keys import ApiKeys
from lone_bed import Seen, await_open, send, send_alone, sent_sequences, went_alone
from scenarios import end_offsets, new_topic, read_all


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    found = Seen()
    settle = LoneRecords._settle

    def settled(self: LoneRecords, queue: Any, lane: Any, builder: Any, answer: Any, now_ms: int) -> Any:
        found.answered += lane.answered
        found.unanswered += builder is not None and answer is None
        return settle(self, queue, lane, builder, answer, now_ms)

    monkeypatch.setattr(LoneRecords, "_settle", settled)
    return found


@pytest.fixture
def cluster() -> Iterator[ProxiedCluster]:
    with ScriptedBroker(topics={"t": 1}) as broker, FaultProxy(broker.address) as proxy:
        yield ProxiedCluster(broker, proxy)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers


def test_records_that_are_waited_for_one_by_one_go_past_the_io_thread(servers: str, seen: Seen) -> None:
    topic = new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer:
        offsets = [producer.send(topic, b"%d" % i, key=b"k").result(20).offset for i in range(300)]
        assert offsets == list(range(300))
        producer.flush()

        def metrics() -> dict[str, float]:
            return {name.name: value for name, value in producer.metrics().items()}

        wait_until(lambda: metrics()["record-send-total"] == 300, what="the last ones being counted")
        found = metrics()
    assert seen.answered
    assert found["request-total"] == 300
    assert found["buffer-available-bytes"] == found["buffer-total-bytes"]
    assert found["request-latency-max"] >= found["request-latency-avg"] >= 0
    records = read_all(servers, topic)
    assert [record.value for record in records] == [b"%d" % i for i in range(300)]


@pytest.mark.parametrize("settings", [{"linger_ms": 5}, {"acks": 0}, {"compression_type": "gzip"}])
def test_with_linger_a_codec_or_no_acknowledgements_nothing_goes_alone(
    servers: str, seen: Seen, settings: dict[str, Any]
) -> None:
    topic = new_topic(servers, 1)
    defaults = {"linger_ms": 0, "enable_idempotence": settings.get("acks") != 0}
    with KafkaProducer(bootstrap_servers=servers, **{**defaults, **settings}) as producer:
        for i in range(5):
            producer.send(topic, b"%d" % i).result(20)
    assert not seen.any
    # Without acknowledgements they may still be on their way.
    wait_until(lambda: sum(end_offsets(servers, topic).values()) == 5)
    assert len(read_all(servers, topic)) == 5


@pytest.mark.parametrize(("acks", "idempotent"), [("all", True), ("all", False), (1, False)])
def test_headers_keys_times_and_null_travel_as_in_every_batch(
    servers: str, acks: Any, idempotent: bool
) -> None:
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


def test_what_follows_a_record_before_its_answer_comes_after_it(cluster: ProxiedCluster, seen: Seen) -> None:
    go = threading.Event()

    def later(header: Any, message: Any) -> Any:
        assert go.wait(20)
        return cluster.produce(message)

    with cluster.producer() as producer:
        cluster.broker.on(ApiKeys.PRODUCE, later)
        first = None
        while first is None:
            go.set()
            send_alone(cluster, producer).result(20)
            await_open(producer)
            seen.reset()
            go.clear()
            future = send(cluster, producer)
            if went_alone(producer, future):
                first = future
        others = [send(cluster, producer) for _ in range(5)]
        wait_until(lambda: seen.unanswered == 1, what="the record on its way being taken over")
        assert not first.done()
        go.set()
        assert [future.result(20).offset - first.result(20).offset for future in others] == [1, 2, 3, 4, 5]
    cluster.check()
    assert sent_sequences(cluster) == sorted(set(sent_sequences(cluster)))


@pytest.mark.parametrize("cut_with", ["cut", "reset"])
@pytest.mark.parametrize("on_response", [False, True])
def test_a_connection_that_breaks_loses_and_repeats_no_record_that_went_alone(
    cluster: ProxiedCluster, cut_with: str, on_response: bool, seen: Seen
) -> None:
    with cluster.producer() as producer:
        for at in (0, 1, 4, 8, 20, 40, 60, 100):
            send_alone(cluster, producer).result(20)
            getattr(cluster.proxy, cut_with)(ApiKeys.PRODUCE, at, on_response=on_response)
            send(cluster, producer).result(20)
    cluster.check()
    assert seen.unanswered


def test_a_silent_broker_is_asked_again_after_request_timeout(cluster: ProxiedCluster, seen: Seen) -> None:
    with cluster.producer() as producer:
        send_alone(cluster, producer).result(20)
        seen.reset()
        cluster.proxy.swallow(ApiKeys.PRODUCE)
        send(cluster, producer).result(20)
        send(cluster, producer).result(20)
    cluster.check()


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT])
def test_a_passing_error_is_tried_again_under_the_same_sequence(
    cluster: ProxiedCluster, code: ErrorCode
) -> None:
    with cluster.producer() as producer:
        send_alone(cluster, producer).result(20)
        cluster.logs.fail("t", code, times=2)
        offset = send(cluster, producer).result(20).offset
        assert send(cluster, producer).result(20).offset == offset + 1
    cluster.check()
    times = Counter(sent_sequences(cluster))
    assert sorted(times.values())[-2:] == [1, 3]


def test_a_final_error_is_told_and_the_producer_goes_on(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        send_alone(cluster, producer).result(20)
        cluster.logs.fail("t", ErrorCode.INVALID_RECORD)
        failed = send(cluster, producer)
        error = failed.exception(20)
        assert error is not None
        assert error.code == ErrorCode.INVALID_RECORD  # type: ignore[attr-defined]
        for _ in range(3):
            send(cluster, producer).result(20)
    cluster.check(all_delivered=False)


def test_a_record_that_expires_says_so_and_frees_the_way(cluster: ProxiedCluster) -> None:
    with cluster.producer(request_timeout_ms=200, delivery_timeout_ms=400) as producer:
        send_alone(cluster, producer).result(20)
        cluster.broker.on(ApiKeys.PRODUCE, lambda header, message: Reply.NOTHING)
        with pytest.raises(KafkaTimeoutError, match="were not delivered within"):
            send(cluster, producer).result(20)
        cluster.broker.on(ApiKeys.PRODUCE, lambda header, message: cluster.produce(message))
        send(cluster, producer).result(20)
    cluster.check(all_delivered=False)


def test_flush_waits_for_it(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        for _ in range(20):
            future = send_alone(cluster, producer)
            producer.flush()
            assert future.done()
        cluster.broker.answer(ApiKeys.PRODUCE, Reply.NOTHING)
        send(cluster, producer)
        with pytest.raises(KafkaTimeoutError, match="not delivered within 50 ms"):
            producer.flush(50)
        producer.flush()
    cluster.check()


def test_close_delivers_it(cluster: ProxiedCluster) -> None:
    for _ in range(5):
        producer = cluster.producer()
        future = send_alone(cluster, producer)
        producer.close()
        assert future.done()
    cluster.check()


def test_callbacks_run_on_the_io_thread_and_before_result_returns(cluster: ProxiedCluster) -> None:
    threads: list[str] = []

    def told(*_: Any) -> None:
        threads.append(threading.current_thread().name)

    with cluster.producer() as producer:
        for number in range(1, 6):
            send_alone(cluster, producer).result(20)
            send(cluster, producer, on_delivery=told).result(20)
            assert len(threads) == number
    assert set(threads) == {f"kclient-producer-{producer._core.client_id}"}
    cluster.check()


def test_done_callbacks_are_called_once_wherever_they_are_added(cluster: ProxiedCluster) -> None:
    calls: list[Any] = []
    with cluster.producer() as producer:
        for _ in range(10):
            future = send_alone(cluster, producer)
            future.add_done_callback(calls.append)
            future.result(20)
            future.add_done_callback(calls.append)
            assert calls[-2:] == [future, future]
        for _ in range(10):
            future = send_alone(cluster, producer)
            future.add_done_callback(calls.append)
            wait_until(lambda: calls[-1] is future)  # noqa: B023
    assert len(calls) == 30
    cluster.check()


def test_a_future_that_nobody_waits_for_is_done_too(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        for _ in range(10):
            wait_until(send_alone(cluster, producer).done)
    cluster.check()


def test_many_threads_may_wait_for_one_record(cluster: ProxiedCluster) -> None:
    with cluster.producer() as producer:
        for _ in range(20):
            future = send_alone(cluster, producer)
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


def test_the_order_of_one_thread_holds_whichever_way_its_records_go(servers: str) -> None:
    topic = new_topic(servers, 1)
    values = []
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer:
        for number in range(400):
            value = b"%d" % number
            values.append(value)
            future = producer.send(topic, value, headers=[("h", b"")] if number % 7 == 3 else ())
            if number % 5 == 0:
                future.result(20)
            elif number % 11 == 0:
                producer.send_many(topic, [])
    assert [record.value for record in read_all(servers, topic)] == values


def test_many_at_once_come_after_those_that_went_alone(servers: str, seen: Seen) -> None:
    topic = new_topic(servers, 1)
    values = [b"%d" % number for number in range(300)]
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer:
        for at in range(0, 300, 10):
            for value in values[at : at + 4]:
                producer.send(topic, value).result(20)
            producer.send_many(topic, values[at + 4 : at + 10]).result(20)
    assert seen.any
    assert [record.value for record in read_all(servers, topic)] == values


def test_partitions_take_turns_by_bytes_as_before(servers: str, seen: Seen) -> None:
    def turns(told: Any) -> list[int]:
        topic = new_topic(servers, 3)
        with KafkaProducer(bootstrap_servers=servers, linger_ms=0, batch_size=1000) as producer:
            went = [
                producer.send(topic, bytes(100), on_delivery=told).result(20).partition for _ in range(300)
            ]
            producer.flush()
        assert len(set(went)) == 3
        return [len(list(turn)) for _, turn in itertools.groupby(went)]

    usual = min(turns(lambda metadata, error: None))
    assert not seen.any
    alone = turns(None)
    assert seen.answered
    # A partition may be chosen again by chance.
    assert min(alone) == usual
    assert all(turn % usual == 0 for turn in alone)


def test_records_that_are_too_large_are_refused_and_large_ones_take_the_usual_way(servers: str) -> None:
    topic = new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0, max_request_size=20_000) as producer:
        for size in (10, 8000, 8200, 10, 19_000, 10):
            producer.send(topic, bytes(size)).result(20)
            with pytest.raises(RecordTooLargeError):
                producer.send(topic, bytes(20_000))
    assert [len(record.value or b"") for record in read_all(servers, topic)] == [
        10,
        8000,
        8200,
        10,
        19_000,
        10,
    ]


def test_an_interrupt_at_any_moment_of_sending_and_waiting_loses_and_doubles_nothing(
    cluster: ProxiedCluster, seen: Seen
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
                send_alone(cluster, producer).result(20)
                await_open(producer)
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
    assert seen.any
    assert cluster.broker.errors == []


def test_after_a_pause_and_after_metadata_was_asked_for_it_goes_on(servers: str, seen: Seen) -> None:
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
    assert seen.answered
    assert [record.value for record in read_all(servers, topic)] == [b"%d" % i for i in range(count)]


def test_a_broker_that_asks_for_silence_is_left_in_peace(cluster: ProxiedCluster, seen: Seen) -> None:
    def throttled(header: Any, message: Any) -> Any:
        answer = cluster.produce(message)
        answer.throttle_time_ms = 300
        return answer

    with cluster.producer() as producer:
        send_alone(cluster, producer).result(20)
        cluster.broker.once(ApiKeys.PRODUCE, throttled)
        send(cluster, producer).result(20)
        started = time.monotonic()
        send(cluster, producer).result(20)
        assert time.monotonic() - started > 0.15
    cluster.check()


def test_the_numbers_of_an_old_lane_are_never_used_again(servers: str) -> None:
    topics = [new_topic(servers, 1) for _ in range(2)]
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0) as producer:
        for number in range(300):
            producer.send(topics[number // 3 % 2], b"%d" % number).result(20)
    for at, topic in enumerate(topics):
        expected = [b"%d" % number for number in range(300) if number // 3 % 2 == at]
        assert [record.value for record in read_all(servers, topic)] == expected
    assert TopicPartition(topics[0], 0) != TopicPartition(topics[1], 0)


def test_a_copy_of_the_process_can_use_nothing_of_it(cluster: ProxiedCluster) -> None:
    with ExitStack() as stack:
        producer = stack.enter_context(cluster.producer())
        future = send_alone(cluster, producer)
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
