"""Partitions of a broker without its network: appends and fetches that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.broker.wire import batch
from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.unified_log import FetchIsolation
from kclient.broker.replica.fetching import FetchParams, PartitionFetch, PartitionFetched
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import UnknownTopicOrPartitionError
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME

TP = TopicPartition("t", 0)
LONG_MS = 60_000


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[ReplicaManager]:
    logs = LogManager([tmp_path])
    logs.startup()
    manager = ReplicaManager(logs, SYSTEM_TIME, LogContext())
    manager.make_leader(TP, Uuid.random(), LogConfig(), leader_epoch=0)
    yield manager
    manager.shutdown()
    logs.shutdown()


def fetch(replicas: ReplicaManager, min_bytes: int, offset: int = 0) -> list[Sequence[PartitionFetched]]:
    answers: list[Sequence[PartitionFetched]] = []
    params = FetchParams(FetchIsolation.HIGH_WATERMARK, LONG_MS, min_bytes, 1 << 20)
    replicas.fetch(params, [PartitionFetch(TP, offset, 1 << 20)], answers.append)
    return answers


def test_a_fetch_is_answered_by_the_append_that_completes_it(replicas: ReplicaManager) -> None:
    answers = fetch(replicas, 1)
    assert answers == []
    replicas.append_locally(TP, batch(b"v"))
    assert [result.high_watermark for result in answers[0]] == [1]


def test_bytes_that_were_counted_twice_do_not_end_the_wait(replicas: ReplicaManager) -> None:
    small = batch(bytes(100))
    answers = fetch(replicas, 3 * len(small))
    # What an append that runs at the same time as the fetch's first look can leave behind.
    replicas.partition(TP).appended_bytes += 2 * len(small)
    replicas.append_locally(TP, small)
    assert answers == [], "a third of min.bytes was taken for all of it"
    replicas.append_locally(TP, small)
    replicas.append_locally(TP, small)
    assert sum(len(result.records) for result in answers[0]) == 3 * len(small)


def test_a_fetch_ends_with_an_error_when_its_partition_is_deleted(replicas: ReplicaManager) -> None:
    answers = fetch(replicas, 1)
    replicas.delete_partition(TP)
    assert isinstance(answers[0][0].error, UnknownTopicOrPartitionError)


def test_a_position_that_the_log_never_had_in_its_epoch_is_told_where_they_part(
    replicas: ReplicaManager,
) -> None:
    replicas.append_locally(TP, batch(b"a", b"b"))
    answers: list[Sequence[PartitionFetched]] = []
    params = FetchParams(FetchIsolation.HIGH_WATERMARK, 0, 1, 1 << 20)
    # The client has read up to offset 9 in epoch 0, which has only two records here.
    replicas.fetch(params, [PartitionFetch(TP, 9, 1000, -1, 0)], answers.append)
    assert answers[0][0].diverging_epoch == (0, 2)
    assert answers[0][0].error is None
