"""PartitionQueue and TopicQueues: the open batch, the leader of each picture, bytes that were ever appended."""

from __future__ import annotations

import array
from typing import Any

import pytest

from kclient._accel import Column
from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.producer.internals.partition_queue import PartitionQueue, TopicQueues
from kclient.record import BatchBuilder, BatchResult
from kclient.serialization import AdaptedSerializer

TP = TopicPartition("t", 0)


class Columns:
    """Values without keys and timestamps."""

    def __init__(self, *values: bytes) -> None:
        ends = array.array("i", [0])
        for value in values:
            ends.append(ends[-1] + len(value))
        self.values: Column = (memoryview(ends), memoryview(b"".join(values)), None, 0)
        self.timestamps = None
        self.keys = None

    def row(self, number: int) -> tuple[int | None, bytes | None, bytes | None]:
        raise AssertionError("columns are appended as they are")


@pytest.fixture
def queue() -> PartitionQueue:
    return PartitionQueue(TP)


def opened(queue: PartitionQueue, limit: int = 10_000) -> BatchBuilder:
    queue.open = BatchBuilder(TP.topic, TP.partition, limit, BatchResult(TP.topic, TP.partition), 0)
    return queue.open


def append(queue: PartitionQueue, value: bytes = b"v") -> Any:
    return queue.try_append(None, None, value, (), None)


def test_without_an_open_batch_nothing_is_taken(queue: PartitionQueue) -> None:
    assert append(queue) is None
    assert queue.try_append_many(None, [b"v"], 0, 1) is None
    assert queue.try_append_columns(Columns(b"v"), 0, 1) is None
    assert queue.produced_bytes() == 0


def test_a_closed_batch_takes_nothing(queue: PartitionQueue) -> None:
    builder = opened(queue)
    builder.freeze()
    assert append(queue) is None
    assert queue.try_append_many(None, [b"v"], 0, 1) is None
    assert queue.try_append_columns(Columns(b"v"), 0, 1) is None


def test_many_are_taken_as_far_as_they_fit_and_the_first_of_them_is_told(queue: PartitionQueue) -> None:
    builder = opened(queue, limit=300)
    assert append(queue) is not None
    values = [b"x" * 60] * 10
    added = queue.try_append_many(None, values, 2, 10)
    assert added is not None
    result, first, taken = added
    assert (result, first) == (builder.result, 1)
    assert 0 < taken < 8
    assert builder.count == 1 + taken
    assert queue.try_append_many(None, values, 2 + taken, 10) is None


def test_columns_are_taken_as_lists_are(queue: PartitionQueue) -> None:
    builder = opened(queue)
    added = queue.try_append_columns(Columns(b"a", b"b", b"c"), 1, 3)
    assert added is not None
    assert added[1:] == (0, 2)
    assert builder.count == 2


def test_bytes_of_batches_that_were_open_and_of_the_open_one_are_counted_once(queue: PartitionQueue) -> None:
    first = opened(queue)
    append(queue, b"x" * 100)
    sizes = first.uncompressed_size
    assert queue.produced_bytes() == sizes
    queue.retire(first)
    queue.retire(first)
    assert queue.open is None
    assert queue.produced_bytes() == sizes
    second = opened(queue)
    queue.retire(first)  # of a batch that is open no more
    assert queue.open is second
    append(queue)
    assert queue.produced_bytes() == sizes + second.uncompressed_size


def test_the_leader_is_looked_up_once_for_each_picture_of_the_cluster(queue: PartitionQueue) -> None:
    looked_up: list[TopicPartition] = []

    class Watched(Cluster):
        def leader_for(self, tp: TopicPartition) -> Node | None:
            looked_up.append(tp)
            return super().leader_for(tp)

    node = Node(1, "h", 9092)
    with_leader = Watched("id", [node], [PartitionInfo("t", 0, node)])
    without = Watched("id", [node], [PartitionInfo("t", 0, None)])
    assert [queue.leader(with_leader) for _ in range(3)] == [node] * 3
    assert [queue.leader(without) for _ in range(3)] == [None] * 3
    assert queue.leader(with_leader) == node
    assert looked_up == [TP] * 3


def test_a_queue_is_made_when_it_is_first_asked_for_and_stays() -> None:
    plain = AdaptedSerializer(None, False, "value")
    sticky: Any = None  # it decides only about records without a key
    made = TopicQueues("t", False, plain, plain, sticky)
    queue = made.queue(5)
    assert queue.tp == TopicPartition("t", 5)
    assert made.queue(5) is queue
    assert list(made.queues) == [5]
