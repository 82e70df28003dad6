"""Three brokers that all get other addresses at once, while clients run: who finds them again, and by which trigger."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.network.listener import SilentListener
from harness.real_kafka.cluster import RealCluster
from harness.topics import read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import KafkaTimeoutError
from kclient.producer import KafkaProducer

_HEALING_S = 60
_NEVER_MS = 300_000


@pytest.fixture
def admin(kafka_cluster: RealCluster) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=kafka_cluster.direct_servers) as made:
        yield made


def bootstrap(cluster: RealCluster) -> str:
    """The ways to the brokers that stay, by which clients are told of the proxies, which do not."""
    return ",".join(f"127.0.0.1:{broker.port}" for broker in cluster.brokers)


def move_all(cluster: RealCluster, old: str, stack: ExitStack) -> None:
    """Replace every broker by one at another address. The old ones are `gone`, or `silent`: connected, and no more."""
    for proxy in [broker.move() for broker in cluster.brokers]:
        proxy.stop()
        if old == "silent":
            stack.enter_context(SilentListener(proxy.port))
    for broker in cluster.brokers:
        broker.kill()
    for broker in cluster.brokers:
        broker.spawn()
    for broker in cluster.brokers:
        broker.wait()


def numbers(consumer: KafkaConsumer[bytes, bytes]) -> list[int]:
    """The records of a poll."""
    return [int(record.value or b"") for record in consumer.poll(500)]


@pytest.mark.parametrize(
    ("old", "trigger_ms", "reason"),
    [
        # Where every old address refuses, that is enough (KIP-899); else nothing but the time tells (KIP-1102).
        ("gone", _NEVER_MS, "no known broker is available"),
        ("silent", 2000, "no broker has answered for 2000 ms"),
    ],
)
def test_clients_that_may_begin_anew_go_on_where_every_broker_was_replaced_and_others_do_not(
    kafka_cluster: RealCluster,
    admin: KafkaAdminClient,
    old: str,
    trigger_ms: int,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "kclient.client.metadata_updater")
    topic = f"all-{old}"
    kafka_cluster.create_topic(admin, topic, 3)
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap(kafka_cluster),
        "request.timeout.ms": 1000,
        "socket.connection.setup.timeout.ms": 1000,
        "metadata.recovery.rebootstrap.trigger.ms": trigger_ms,
    }
    never = {**settings, "metadata.recovery.strategy": "none"}
    futures: list[Any] = []
    over = threading.Event()
    with ExitStack() as stack:
        producer = stack.enter_context(KafkaProducer(settings, client_id="p-producer"))
        consumer = stack.enter_context(
            KafkaConsumer(
                settings, client_id="p-consumer", group_id=f"g-{topic}", auto_offset_reset="earliest"
            )
        )
        consumer.subscribe([topic])
        steadfast = stack.enter_context(
            KafkaProducer(never, client_id="n-producer", delivery_timeout_ms=4000, linger_ms=0)
        )
        waiting = stack.enter_context(
            KafkaConsumer(never, client_id="n-consumer", group_id=f"n-{topic}", auto_offset_reset="earliest")
        )
        waiting.assign([TopicPartition(topic, i) for i in range(3)])
        steadfast.send(topic, b"0").result(60)
        read: set[int] = set()
        read_by_waiting: set[int] = set()

        def load() -> None:
            while not over.wait(0.01):
                futures.append(producer.send(topic, b"%d" % (len(futures) + 1)))

        def poll(until: int) -> bool:
            read.update(numbers(consumer))
            return len(read) > until

        def poll_waiting() -> bool:
            found = numbers(waiting)
            read_by_waiting.update(found)
            return bool(found)

        thread = threading.Thread(target=load)
        thread.start()
        try:
            wait_until(lambda: poll(50), 60, "the first records")
            wait_until(poll_waiting, 60, "the first records")

            move_all(kafka_cluster, old, stack)

            lost = steadfast.send(topic, b"to nobody")
            sent = len(futures)
            futures[-1].result(60)
            wait_until(lambda: poll(sent), 60, "the records that waited for the brokers")
        finally:
            over.set()
            thread.join()
        producer.flush(60_000)
        assert [error for error in (future.exception(0) for future in futures) if error is not None] == []
        wait_until(lambda: poll(len(futures)), 60, "every record")
        with pytest.raises(KafkaTimeoutError):
            lost.result(60)
        anew = [record.getMessage() for record in caplog.records if "Starting again" in record.getMessage()]
        for client_id in ("producer", "consumer"):
            assert any(each.endswith(reason) for each in anew if f"clientId=p-{client_id}" in each), anew
        assert not [each for each in anew if "clientId=n-" in each]
        # Both have had as long as the others, which began anew.
        wait_until(lambda: not poll_waiting(), 60, "the last of the records from before")
        assert max(read_by_waiting) <= sent
        for each in (waiting, steadfast):
            each.close(0)
    wait_until(lambda: not kafka_cluster.out_of_sync(admin), _HEALING_S, "every replica in sync")
    written = [int(record.value or b"") for record in read_all(kafka_cluster.direct_servers, topic)]
    assert sorted(written) == list(range(len(futures) + 1))
