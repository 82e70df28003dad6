"""Memory that clients keep is bounded by their settings, whatever the broker does.

Measured with tracemalloc: it sees what this process allocates, to the byte, and nothing of the allocator's moods. The
broker is another process, so nothing of it is counted.
"""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.broker.process import BrokerProcess
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import BufferExhaustedError
from kclient.producer import KafkaProducer

pytestmark = pytest.mark.heavy

_MIB = 2**20
# Threads, metrics, compression contexts, and whatever was loaded for the first time.
_SLACK = 3 * _MIB


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("memory")) as running:
        yield running


class Traced:
    """Bytes allocated since the block began."""

    def __init__(self) -> None:
        self._base = tracemalloc.get_traced_memory()[0]

    @property
    def now(self) -> int:
        """The objects that are still held."""
        return tracemalloc.get_traced_memory()[0] - self._base

    @property
    def peak(self) -> int:
        """The most that was held."""
        return tracemalloc.get_traced_memory()[1] - self._base


@contextmanager
def traced() -> Iterator[Traced]:
    gc.collect()
    tracemalloc.start()
    try:
        yield Traced()
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("size", "codec", "partitions", "shrinks"),
    [(100, "none", 1, True), (20_000, "none", 3, True), (1000, "zstd", 20, True), (20_000, "lz4", 3, False)],
)
def test_a_producer_whose_broker_does_not_answer_holds_buffer_memory_and_gives_it_back(
    broker: BrokerProcess, size: int, codec: str, partitions: int, shrinks: bool
) -> None:
    buffer_memory = 8 * _MIB
    topic = new_topic(broker.bootstrap_servers, partitions)
    # What does not shrink would be seen twice if a batch were held both ways, or joined for its request.
    value = (bytes(range(256)) * (size // 256 + 1))[:size] if shrinks else random.Random(1).randbytes(size)
    with KafkaProducer(
        {"compression.type": codec},
        bootstrap_servers=broker.bootstrap_servers,
        buffer_memory=buffer_memory,
        max_block_ms=300,
    ) as producer:
        producer.partitions_for(topic)
        producer.send(topic, value)
        producer.flush()
        with traced() as memory:
            broker.pause()
            try:
                sent = _send_until_exhausted(producer, topic, value)
                full = memory.now
            finally:
                broker.resume()
            # It is full: not of air, and not of more than it may.
            assert sent * size > buffer_memory // 2
            assert full < buffer_memory + _SLACK
            assert memory.peak < 2 * buffer_memory + _SLACK
            producer.flush()
            producer.send(topic, value).result(30)
            wait_until(lambda: memory.now < _SLACK, what="the memory given back")
            # Nor does it grow from one time to the next.
            broker.pause()
            try:
                _send_until_exhausted(producer, topic, value)
                assert memory.now < buffer_memory + _SLACK
            finally:
                broker.resume()
            producer.flush()


def _send_until_exhausted(producer: KafkaProducer[bytes, bytes], topic: str, value: bytes) -> int:
    """The number of records that `send` took before there was no memory for another."""
    for sent in range(10**6):
        try:
            producer.send(topic, value)
        except BufferExhaustedError:
            return sent
    raise AssertionError("buffer.memory was never exhausted")


def test_a_consumer_holds_no_more_than_its_fetch_settings_allow(broker: BrokerProcess) -> None:
    partitions, per_fetch, largest_fetch = 8, 128 * 1024, _MIB
    topic = new_topic(broker.bootstrap_servers, partitions)
    value = bytes(4096)
    count = 6000
    # A batch that is larger than the limits comes all the same, alone; these are not.
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_request_size=32 * 1024) as producer:
        for number in range(count):
            producer.send(topic, value, partition=number % partitions)
    # Two fetches of each partition wait to be read, one answer is being received, and what was read from is whole
    # until its last record was.
    allowed = 2 * partitions * per_fetch + 2 * largest_fetch
    with traced() as memory:
        with KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers,
            max_partition_fetch_bytes=per_fetch,
            fetch_max_bytes=largest_fetch,
            max_poll_records=50,
        ) as consumer:
            consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
            consumer.seek_to_beginning(consumer.assignment())
            read = len(consumer.poll(10_000))
            # The application does nothing for a while: the client reads ahead, and stops.
            _wait_until_steady(memory)
            assert memory.now < allowed + _SLACK
            deadline = time.monotonic() + 60
            while read < count:
                read += len(consumer.poll(1000))
                assert time.monotonic() < deadline, f"{read} of {count} records came"
            assert memory.peak < allowed + _SLACK
            assert allowed + _SLACK < count * len(value) // 2  # or else nothing was proved
        gc.collect()
        assert memory.now < _SLACK


def _wait_until_steady(memory: Traced) -> None:
    """Wait until nothing was allocated to speak of for half a second."""
    last = [memory.now, time.monotonic()]

    def steady() -> bool:
        now, at = memory.now, time.monotonic()
        if abs(now - last[0]) > 64 * 1024:
            last[:] = now, at
        return at - last[1] > 0.5

    wait_until(steady, 30, "reading ahead coming to its end")
