"""Clients that ask for much and take their time to read it."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psutil
import pytest

from harness.broker.wire import Wire, batch
from kclient.broker.embedded import EmbeddedKafka
from kclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kclient.protocol.messages.delete_topics import DeleteTopicsRequest
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.record.memory_records import iter_batches

MIB = 1 << 20
BATCHES = 8
CLIENTS = 40


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(log_segment_delete_delay_ms=0, offsets_topic_num_partitions=1) as running:
        yield running


def value(number: int) -> bytes:
    return random.Random(number).randbytes(MIB - 1000)


def filled(wire: Wire, topic: str) -> str:
    made = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    assert wire.ask(CreateTopicsRequest(topics=[made]), 7).topics[0].error_code == 0
    for number in range(BATCHES):
        data = PartitionProduceData(index=0, records=batch(value(number)))
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
        )
        assert wire.ask(request, 9).responses[0].partition_responses[0].error_code == 0
    return topic


def everything(topic: str) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100 * MIB)
    return FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=100 * MIB, session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )  # fmt: skip


def values(wire: Wire) -> list[bytes | None]:
    data = wire.receive().responses[0].partitions[0]
    assert data.error_code == 0
    return [record.value for one in iter_batches(data.records) for record in one.records()]


def answered(wires: list[Wire]) -> None:
    """Wait until the broker has begun to answer each."""
    for wire in wires:
        assert wire.sock.recv(1, socket.MSG_PEEK)


def test_what_they_have_not_read_costs_next_to_nothing(
    wire: Wire, connect: Callable[[], Wire], kafka: EmbeddedKafka
) -> None:
    topic = filled(wire, "much")
    before = psutil.Process().memory_info().rss
    with ExitStack() as stack:
        slow = [stack.enter_context(Wire(kafka.bootstrap_servers)) for _ in range(CLIENTS)]
        for one in slow:
            one.send(everything(topic), 12)
        answered(slow)
        grown = psutil.Process().memory_info().rss - before
        assert grown < 40 * MIB, f"{grown // MIB} MiB for {CLIENTS} answers of {BATCHES} MiB"
        assert values(slow[-1]) == [value(number) for number in range(BATCHES)]


def test_they_get_it_all_though_the_topic_is_deleted_meanwhile(
    wire: Wire, connect: Callable[[], Wire]
) -> None:
    topic = filled(wire, "doomed")
    slow = [connect() for _ in range(3)]
    for one in slow:
        one.send(everything(topic), 12)
    answered(slow)
    deleted = wire.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000), 4)
    assert deleted.responses[0].error_code == 0
    for one in slow:
        assert values(one) == [value(number) for number in range(BATCHES)]
