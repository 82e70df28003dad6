"""Beginnings and ends of clients: exit, garbage collection, close, and what they cost while nothing happens."""

from __future__ import annotations

import os
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.broker.process import BrokerProcess
from harness.network.ports import closed_port
from harness.programs import run_script, start_script
from harness.topics import end_offsets, new_topic, read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import BootstrapError, ClientClosedError, KafkaError, KafkaTimeoutError
from kclient.producer import KafkaProducer

# The end of the interpreter.

_UNCLOSED = """
    import sys
    from kclient import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=60_000, delivery_timeout_ms=120_000)
    for i in range(1000):
        producer.send(sys.argv[2], b"%d" % i)
"""
_UNCLOSED_AND_FORGOTTEN = """
    import sys
    from kclient import KafkaProducer

    def main():
        producer = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=60_000, delivery_timeout_ms=120_000)
        for i in range(1000):
            producer.send(sys.argv[2], b"%d" % i)

    main()
"""


@pytest.mark.parametrize("source", [_UNCLOSED, _UNCLOSED_AND_FORGOTTEN], ids=["held", "collected"])
def test_a_program_that_ends_without_close_delivers_what_it_sent(servers: str, source: str) -> None:
    topic = new_topic(servers, 1)
    started = time.monotonic()
    _, err = run_script(source, servers, topic)
    assert time.monotonic() - started < 50, "it flushes at once, it does not wait for linger.ms or a timeout"
    assert [record.value for record in read_all(servers, topic)] == [b"%d" % i for i in range(1000)]
    assert "undelivered" not in err


def test_a_program_that_ends_by_an_error_delivers_what_it_sent_and_shows_the_error(servers: str) -> None:
    topic = new_topic(servers, 1)
    source = textwrap.dedent(_UNCLOSED) + "raise RuntimeError('the program failed')\n"
    with start_script(source, servers, topic) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the program failed" in err
    assert sum(end_offsets(servers, topic).values()) == 1000


@pytest.mark.heavy
@pytest.mark.parametrize("delivery_timeout_ms", [1500, 120_000])
def test_a_program_whose_broker_is_away_ends_in_time_and_says_how_much_is_lost(
    tmp_path: Path, delivery_timeout_ms: int
) -> None:
    source = """
        import sys, threading
        from kclient import KafkaProducer

        timeout_ms = int(sys.argv[3])
        producer = KafkaProducer(
            bootstrap_servers=sys.argv[1], client_id="leaver",
            delivery_timeout_ms=timeout_ms, request_timeout_ms=1000, linger_ms=0, reconnect_backoff_max_ms=100,
        )
        producer.send(sys.argv[2], b"first").result(30)
        print("delivered", flush=True)
        input()
        for i in range(123):
            producer.send(sys.argv[2], b"%d" % i)
        print("ends", flush=True)
    """
    with BrokerProcess(tmp_path) as broker:
        topic = new_topic(broker.bootstrap_servers, 1)
        with start_script(source, broker.bootstrap_servers, topic, str(delivery_timeout_ms)) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == "delivered\n"
            broker.kill()
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "ends\n"
            started = time.monotonic()
            _, err = process.communicate(timeout=60)
            took_ms = (time.monotonic() - started) * 1000
    limit_ms = min(delivery_timeout_ms, 10_000)
    assert took_ms < limit_ms + 2000
    assert took_ms > limit_ms - 500, "it tries as long as it may"
    lines = [line for line in err.splitlines() if "leaver" in line and "123 records" in line]
    assert len(lines) == 1, err
    assert "Traceback" not in err


# Forgotten clients.


def make_producer(servers: str) -> KafkaProducer[bytes, bytes]:
    return KafkaProducer(bootstrap_servers=servers, client_id="forgotten")


def make_consumer(servers: str) -> KafkaConsumer[bytes, bytes]:
    return KafkaConsumer(bootstrap_servers=servers, client_id="forgotten", group_id="forgotten")


def make_admin(servers: str) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=servers, client_id="forgotten")


MAKERS = [make_producer, make_consumer, make_admin]
MAKER_IDS = ["producer", "consumer", "admin"]


def threads_of(name: str) -> list[str]:
    return [thread.name for thread in threading.enumerate() if name in thread.name]


@pytest.mark.parametrize("make", MAKERS, ids=MAKER_IDS)
def test_a_client_that_was_never_closed_is_warned_about_and_its_thread_ends(
    servers: str, make: Callable[[str], Any]
) -> None:
    client = make(servers)
    assert threads_of("forgotten")
    with pytest.warns(ResourceWarning, match="forgotten.*not closed|forgotten.*never closed"):
        del client
    wait_until(lambda: not threads_of("forgotten"), what="the end of the thread")


def test_a_producer_that_was_never_closed_still_delivers_what_it_has(servers: str) -> None:
    topic = new_topic(servers, 1)
    producer = make_producer(servers)
    futures = [producer.send(topic, b"%d" % i) for i in range(100)]
    with pytest.warns(ResourceWarning):
        del producer
    assert [future.result(20).offset for future in futures] == list(range(100))


# Closing.


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_threads_and_descriptors_are_back_to_the_baseline_after_twenty_rounds(servers: str) -> None:
    topic = new_topic(servers, 1)

    def one_round() -> None:
        with (
            KafkaProducer(bootstrap_servers=servers) as producer,
            KafkaConsumer(
                bootstrap_servers=servers, group_id="rounds", auto_offset_reset="latest"
            ) as consumer,
            KafkaAdminClient(bootstrap_servers=servers) as admin,
        ):
            producer.send(topic, b"x").result(20)
            consumer.subscribe([topic])
            consumer.poll(0)
            admin.list_topics()

    # The broker of this process opens the files of the offsets topic when the first group asks for its coordinator.
    with KafkaConsumer(bootstrap_servers=servers, group_id="first") as consumer:
        consumer.committed([TopicPartition(topic, 0)])
    # Connections that the broker in this process sees close a moment later are descriptors as well.
    one_round()
    baseline = (threading.active_count(), open_fds())
    for _ in range(20):
        one_round()
    wait_until(lambda: (threading.active_count(), open_fds()) <= baseline, what=f"back to {baseline}")


@pytest.mark.parametrize("make", MAKERS, ids=MAKER_IDS)
def test_closing_again_does_nothing_and_use_after_it_is_refused(
    servers: str, make: Callable[[str], Any]
) -> None:
    client = make(servers)
    client.close()
    client.close()
    client.close(timeout_ms=0)
    uses: dict[type, Callable[[], object]] = {
        KafkaProducer: lambda: client.send("t", b"x"),
        KafkaConsumer: lambda: client.poll(0),
        KafkaAdminClient: lambda: client.list_topics(timeout_ms=100),
    }
    with pytest.raises(ClientClosedError):
        uses[type(client)]()


def test_a_closed_producer_asks_no_serializer(servers: str) -> None:
    topic = new_topic(servers, 1)
    asked: list[Any] = []

    def serialize(value: Any) -> bytes:
        asked.append(value)
        return b"v"

    producer: KafkaProducer[Any, Any] = KafkaProducer(
        bootstrap_servers=servers, key_serializer=serialize, value_serializer=serialize
    )
    producer.send(topic, 1, key=2).result(20)
    producer.close()
    assert asked == [2, 1]
    with pytest.raises(ClientClosedError, match="closed"):
        producer.send(topic, 3, key=4)
    assert asked == [2, 1]


@pytest.mark.heavy
def test_every_close_is_bounded_while_the_broker_is_frozen(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        servers = broker.bootstrap_servers
        topic = new_topic(servers, 1)
        producer = KafkaProducer(bootstrap_servers=servers)
        consumer = KafkaConsumer(bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
        admin = KafkaAdminClient(bootstrap_servers=servers)
        producer.send(topic, b"x").result(20)
        consumer.subscribe([topic])
        wait_until(lambda: len(consumer.poll(100)), 30, "a record")
        admin.list_topics()
        broker.pause()
        try:
            future = producer.send(topic, b"never answered")
            caller_error: list[BaseException] = []

            def call() -> None:
                try:
                    admin.list_topics()
                except KafkaError as error:
                    caller_error.append(error)

            caller = threading.Thread(target=call)
            caller.start()
            took = {}
            for client in (producer, consumer, admin):
                started = time.monotonic()
                client.close(timeout_ms=500)
                took[type(client).__name__] = time.monotonic() - started
            caller.join(10)
        finally:
            broker.resume()
        assert all(seconds < 5.0 for seconds in took.values()), took  # unbounded it would take minutes
        assert isinstance(future.exception(0), ClientClosedError)
        assert len(caller_error) == 1
        wait_until(lambda: not threads_of("kclient-") and not threads_of("admin-client"), what="no thread")


def test_a_producer_closed_by_one_thread_while_others_send_leaves_no_future_open(servers: str) -> None:
    topic = new_topic(servers, 3)
    producer = KafkaProducer(bootstrap_servers=servers)
    futures: list[Any] = []
    refused: list[BaseException] = []
    sent = threading.Event()

    def send() -> None:
        try:
            while True:
                futures.append(producer.send(topic, b"x"))
                if len(futures) > 1000:
                    sent.set()
        except ClientClosedError as error:
            refused.append(error)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert sent.wait(20)
    producer.close()
    for thread in threads:
        thread.join(20)
    assert len(refused) == 4
    errors = [future.exception(0) for future in futures]
    assert errors == [None] * len(futures), "what was accepted before close is delivered"
    assert sum(end_offsets(servers, topic).values()) == len(futures)


def test_the_error_of_a_with_block_is_never_masked_by_closing(servers: str) -> None:
    def fail_in(client: Any) -> None:
        with client:
            raise RuntimeError("the block")

    for make in MAKERS:
        with pytest.raises(RuntimeError, match="the block"):
            fail_in(make(servers))


# Names that do not resolve, brokers that are not there.


@pytest.mark.parametrize("make", MAKERS, ids=MAKER_IDS)
def test_a_host_that_does_not_resolve_is_named_together_with_the_setting(make: Callable[[str], Any]) -> None:
    started = time.monotonic()
    with pytest.raises(BootstrapError, match=r"no-such-host\.invalid") as failed:
        make("no-such-host.invalid:9092")
    assert "bootstrap.servers" in str(failed.value)
    assert failed.value.connection is not None
    assert failed.value.connection.setting == "bootstrap.servers"
    assert failed.value.connection.step == "dns"
    assert time.monotonic() - started < 30
    assert not threads_of("forgotten")


def test_clients_without_a_broker_fail_in_time_and_name_the_address() -> None:
    servers = f"127.0.0.1:{closed_port()}"
    with KafkaProducer(bootstrap_servers=servers, max_block_ms=300) as producer:
        started = time.monotonic()
        with pytest.raises(KafkaTimeoutError, match=servers) as failed:
            producer.send("t", b"x")
        assert "max.block.ms" in str(failed.value)
        assert 0.25 < time.monotonic() - started < 20
    with (
        KafkaAdminClient(bootstrap_servers=servers) as admin,
        pytest.raises(KafkaTimeoutError, match=servers),
    ):
        admin.list_topics(timeout_ms=300)
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        started = time.monotonic()
        assert not consumer.poll(300)
        assert 0.25 < time.monotonic() - started < 20
        with pytest.raises(KafkaTimeoutError):
            consumer.end_offsets([TopicPartition("t", 0)], timeout_ms=300)


# What waiting costs.

_IDLE = """
    import sys, time
    from kclient import KafkaProducer, KafkaConsumer, KafkaAdminClient
    servers, topic, away = sys.argv[1:]
    producer = KafkaProducer(bootstrap_servers=servers)
    consumer = KafkaConsumer(bootstrap_servers=servers, group_id="idle", auto_offset_reset="latest")
    admin = KafkaAdminClient(bootstrap_servers=servers)
    consumer.subscribe([topic])
    if away != "away":
        producer.send(topic, b"x").result(30)
        admin.list_topics()
        while not consumer.assignment():
            consumer.poll(100)
    consumer.poll(300)
    cpu, wall = time.process_time(), time.monotonic()
    consumer.poll(2000)
    print((time.process_time() - cpu) / (time.monotonic() - wall))
    for client in (producer, consumer, admin):
        client.close(timeout_ms=1000)
"""


@pytest.mark.parametrize("away", ["there", "away"])
def test_waiting_clients_use_less_than_a_twentieth_of_a_core(servers: str, away: str) -> None:
    topic = new_topic(servers, 1)
    where = servers if away == "there" else f"127.0.0.1:{closed_port()}"
    out, _ = run_script(_IDLE, where, topic, away)
    assert float(out) < 0.05
