"""Bad input over the wire: an error code or the end of the connection, and nobody else notices."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator

import pytest

from harness.broker import requests
from harness.broker.hostile import HostileRequests
from harness.broker.wire import Wire, batch
from harness.waiting import wait_until
from kclient.broker import EmbeddedKafka
from kclient.broker.apis.registry import served_apis
from kclient.metrics import MetricValues
from kclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kclient.record.memory_records import iter_batches

FRAMES = 1000
TOPIC_EXISTS = 36
LOOK_EVERY = 20
MOST_WAITING, MOST_WAITING_BYTES = 20, 20_000
PATIENCE_S = 0.02  # with requests that rightly wait


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(
        offsets_topic_num_partitions=1, num_partitions=2, group_min_session_timeout_ms=1
    ) as running:
        yield running


BROKER_THREADS = (
    "acceptor-",
    "network-processor-",
    "request-handler-",
    "controller-",
    "expiration-reaper-",
    "scheduler-",
)


def broker_threads() -> set[threading.Thread]:
    found = {thread for thread in threading.enumerate() if thread.name.startswith(BROKER_THREADS)}
    assert {name for name in BROKER_THREADS if any(one.name.startswith(name) for one in found)} == set(
        BROKER_THREADS
    )
    return found


def summed(values: MetricValues, name: str) -> float:
    return sum(value for each, value in values.items() if each.name == name)


def throw(kafka: EmbeddedKafka, frame: bytes) -> None:
    """Send a frame on a connection of its own, and take what comes."""
    host, _, port = kafka.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as sock:
        sock.sendall(frame)
        sock.settimeout(PATIENCE_S)
        try:
            while sock.recv(1 << 16):
                break
        except (TimeoutError, ConnectionError):
            pass


@pytest.mark.parametrize("seed", range(3))
def test_bad_requests_of_every_api_hurt_nobody(
    kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    hostile = HostileRequests(list(served_apis().values()), seed)
    with Wire(kafka.bootstrap_servers) as healthy:
        requests.create(healthy, "healthy")
        there_is_t(healthy)
        threads = broker_threads()
        written: list[bytes] = []
        for number in range(FRAMES):
            frame = hostile.frame()
            throw(kafka, frame)
            raised = [
                record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR
            ]
            assert not raised, f"frame {number}, {frame.hex()}: {caplog.text[-3000:]}"
            if number % LOOK_EVERY == 0:
                there_is_t(healthy)
                written.append(b"%d" % number)
                requests.produce(healthy, "healthy", batch(written[-1]))
                assert requests.values(healthy, "healthy") == written
        assert threads <= broker_threads()
        for topic, described in requests.topics(healthy).items():
            for part in described.partitions if not topic.startswith("__") else ():
                check_log(healthy, topic, part.partition_index)
        # A wait of days that a wrong byte asked for is a wait; the requests are small and few.
        wait_until(lambda: summed(kafka.metrics(), "connection-count") <= MOST_WAITING)
        assert kafka.metrics()["MemoryPoolUsed"] <= MOST_WAITING_BYTES
        assert kafka.metrics()["RequestQueueSize"] == 0
    kafka.restart()  # what was written can be loaded
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR] == []
    with Wire(kafka.bootstrap_servers) as healthy:
        assert requests.values(healthy, "healthy") == written


def there_is_t(wire: Wire) -> None:
    """Make the topic that bad requests are about, and may have deleted; another one may make it at this moment."""
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    assert wire.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code in {0, TOPIC_EXISTS}


def check_log(wire: Wire, topic: str, partition: int) -> None:
    """Everything that was accepted can be read."""
    data = requests.fetch(wire, topic, partition)
    if data.error_code == 0:
        for found in iter_batches(data.records):
            found.ensure_valid()
            assert list(found.records())
