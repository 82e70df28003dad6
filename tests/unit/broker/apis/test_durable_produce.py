"""Requests that are acknowledged from the disk, with many partitions in one."""

from __future__ import annotations

import errno
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.broker.wire import Wire, batch
from harness.waiting import wait_until
from kclient.broker.embedded import EmbeddedKafka
from kclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PARTITIONS = 20
STORAGE_ERROR = 56


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    settings = {"kclient_ack_policy": "batch", "num_io_threads": 1, "offsets_topic_num_partitions": 1}
    with EmbeddedKafka(**settings) as running:
        yield running


class Disk:
    """Keeps calls of fdatasync waiting until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._real = os.fdatasync
        self._lock = threading.Lock()
        self.go = threading.Event()
        self.files: list[str] = []
        self.threads: set[str] = set()
        self.broken: str | None = None
        self.only_commits = False
        """True if only what answers wait for is kept waiting."""
        monkeypatch.setattr(os, "fdatasync", self._fdatasync)

    def _fdatasync(self, fd: int) -> None:
        file = os.readlink(f"/proc/self/fd/{fd}")
        with self._lock:
            self.files.append(file)
            self.threads.add(threading.current_thread().name)
        if not self.only_commits or threading.current_thread().name.startswith("commit-"):
            assert self.go.wait(30)
        if self.broken is not None and self.broken in file:
            raise OSError(errno.EIO, "Input/output error")
        self._real(fd)


@pytest.fixture
def topic(wire: Wire) -> str:
    made = CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
    assert wire.ask(CreateTopicsRequest(topics=[made]), 7).topics[0].error_code == 0
    return "t"


@pytest.fixture
def disk(topic: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    made = Disk(monkeypatch)
    yield made
    made.go.set()


def request(topic: str) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=batch(b"x")) for index in range(PARTITIONS)]
    return ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )


def errors(answer: Any) -> set[int]:
    return {partition.error_code for partition in answer.responses[0].partition_responses}


def test_partitions_are_forced_to_disk_together_while_handlers_go_on(
    wire: Wire, connect: Callable[[], Wire], topic: str, disk: Disk
) -> None:
    wire.send(request(topic), 9)
    wait_until(lambda: len(disk.files) >= 4, what="several at a time")
    assert connect().ask(MetadataRequest(topics=[]), 9).brokers, "the only handler is free"
    assert len(disk.files) < PARTITIONS
    disk.go.set()
    assert errors(wire.receive()) == {0}
    assert len(disk.files) == len(set(disk.files)) == PARTITIONS
    assert not any("request-handler" in name for name in disk.threads)


def test_nothing_is_acknowledged_before_all_is_on_disk(
    wire: Wire, connect: Callable[[], Wire], topic: str, disk: Disk
) -> None:
    wire.send(request(topic), 9)
    wait_until(lambda: disk.files)
    assert connect().ask(MetadataRequest(topics=[]), 9).brokers
    wire.sock.setblocking(False)
    with pytest.raises(BlockingIOError):
        wire.sock.recv(1)
    wire.sock.settimeout(10)
    disk.go.set()
    assert errors(wire.receive()) == {0}


def test_what_could_not_be_forced_to_disk_is_not_acknowledged(wire: Wire, topic: str, disk: Disk) -> None:
    disk.broken = "/t-7/"
    disk.go.set()
    wire.send(request(topic), 9)
    try:
        answer = wire.receive()
    except (EOFError, ConnectionError):
        return  # its only directory is offline: the broker has stopped
    partitions = answer.responses[0].partition_responses
    assert partitions[7].error_code == STORAGE_ERROR
    assert partitions[7].base_offset == -1


def test_a_broker_that_stops_acknowledges_what_is_waiting_for_the_disk(
    wire: Wire, kafka: EmbeddedKafka, topic: str, disk: Disk
) -> None:
    disk.only_commits = True
    wire.send(request(topic), 9)
    wait_until(lambda: disk.files)
    stopping = threading.Thread(target=kafka.stop)
    stopping.start()
    try:
        # In their order: it waits for them, or has closed the logs.
        wait_until(lambda: is_in(stopping, "finish") or is_in(stopping, "release"), what="the stop")
        disk.go.set()
        assert errors(wire.receive()) == {0}
    finally:
        disk.go.set()
        stopping.join(30)


def is_in(thread: threading.Thread, function: str) -> bool:
    """True if `thread` has called a function of that name, which has not returned."""
    frame = sys._current_frames().get(thread.ident or 0)
    return any(found.f_code.co_name == function for found, _ in traceback.walk_stack(frame))
