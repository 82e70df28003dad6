"""Clients on librdkafka's mock cluster: leaders and coordinators that move, brokers that go, errors of every API."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.network.librdkafka_mock import LibrdkafkaMock, missing_mock
from harness.requirements import skip_if
from harness.scenarios.faults import QUICK, UnderFault
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import ErrorCode
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys

_E = ErrorCode
_BROKERS = (1, 2, 3)
_PARTITIONS = 4
pytestmark = [pytest.mark.peers, pytest.mark.xdist_group("librdkafka-mock")]


@pytest.fixture(scope="module")
def mock() -> Iterator[LibrdkafkaMock]:
    skip_if(missing_mock())
    with LibrdkafkaMock(len(_BROKERS)) as running:
        yield running


@pytest.fixture
def topic(mock: LibrdkafkaMock) -> str:
    name = f"t-{uuid.uuid4().hex[:12]}"
    mock.create_topic(name, _PARTITIONS)
    for partition in range(_PARTITIONS):
        mock.move_leader(name, partition, _BROKERS[partition % len(_BROKERS)])
    return name


def test_leaders_that_move_are_followed_at_once_and_nothing_is_lost_doubled_or_out_of_order(
    mock: LibrdkafkaMock, topic: str, tmp_path: Path
) -> None:
    # Nobody waits for metadata.max.age.ms, which is five minutes.
    with UnderFault(tmp_path, mock.bootstrap_servers, topic, members=1) as running:
        for turn in range(1, 7):
            for partition in range(_PARTITIONS):
                mock.move_leader(topic, partition, _BROKERS[(partition + turn) % len(_BROKERS)])
            running.wait_for_progress()
        assert running.turns()["lost"] == 0


def test_a_coordinator_that_moves_costs_no_member_a_partition(
    mock: LibrdkafkaMock, topic: str, tmp_path: Path
) -> None:
    group = f"g-{topic}"
    mock.move_coordinator(group, 1)
    with UnderFault(tmp_path, mock.bootstrap_servers, topic, members=1) as running:
        before = running.turns()
        for broker in (2, 3, 1, 3):
            mock.move_coordinator(group, broker)
            running.wait_for_progress(200)
        assert running.turns() == before


def test_a_broker_that_goes_and_comes_back_costs_nothing(
    mock: LibrdkafkaMock, topic: str, tmp_path: Path
) -> None:
    group = f"g-{topic}"
    mock.move_coordinator(group, 1)
    with UnderFault(tmp_path, mock.bootstrap_servers, topic, members=1) as running:
        for broker in _BROKERS[1:]:
            mock.stop_broker(broker)
            for partition in range(_PARTITIONS):
                mock.move_leader(topic, partition, 1)
            running.wait_for_progress()
            mock.start_broker(broker)
            for partition in range(_PARTITIONS):
                mock.move_leader(topic, partition, broker)
            running.wait_for_progress()


_COORDINATOR = (_E.COORDINATOR_LOAD_IN_PROGRESS, _E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR)
PASSING: dict[ApiKeys, tuple[ErrorCode, ...]] = {
    ApiKeys.PRODUCE: (
        *(_E.UNKNOWN_TOPIC_OR_PARTITION, _E.LEADER_NOT_AVAILABLE, _E.NOT_LEADER_OR_FOLLOWER),
        *(_E.REQUEST_TIMED_OUT, _E.NETWORK_EXCEPTION, _E.NOT_ENOUGH_REPLICAS, _E.CORRUPT_MESSAGE),
        *(_E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, _E.KAFKA_STORAGE_ERROR, _E.FENCED_LEADER_EPOCH),
    ),
    ApiKeys.FETCH: (
        *(_E.UNKNOWN_TOPIC_OR_PARTITION, _E.LEADER_NOT_AVAILABLE, _E.NOT_LEADER_OR_FOLLOWER),
        *(_E.KAFKA_STORAGE_ERROR, _E.FENCED_LEADER_EPOCH, _E.UNKNOWN_LEADER_EPOCH),
        *(_E.OFFSET_NOT_AVAILABLE, _E.FETCH_SESSION_ID_NOT_FOUND, _E.INVALID_FETCH_SESSION_EPOCH),
    ),
    ApiKeys.LIST_OFFSETS: (
        *(_E.NOT_LEADER_OR_FOLLOWER, _E.LEADER_NOT_AVAILABLE, _E.OFFSET_NOT_AVAILABLE),
        *(_E.FENCED_LEADER_EPOCH, _E.UNKNOWN_LEADER_EPOCH, _E.KAFKA_STORAGE_ERROR),
    ),
    ApiKeys.INIT_PRODUCER_ID: (*_COORDINATOR, _E.REQUEST_TIMED_OUT),
    ApiKeys.OFFSET_FETCH: (*_COORDINATOR, _E.UNSTABLE_OFFSET_COMMIT),
    ApiKeys.OFFSET_COMMIT: (*_COORDINATOR, _E.REQUEST_TIMED_OUT),
}
"""Codes after which a client goes on by itself, for the requests of a producer and a member of a group.

Not those of JoinGroup and SyncGroup, which the mock refuses with a null where the protocol allows none.
"""
_TIMES = 3


@pytest.mark.parametrize(
    ("api", "code"),
    [pytest.param(api, code, id=f"{api.name}-{code.name}") for api in PASSING for code in PASSING[api]],
)
def test_an_error_that_passes_is_tried_again_as_often_as_it_comes_and_no_more(
    mock: LibrdkafkaMock, topic: str, api: ApiKeys, code: ErrorCode
) -> None:
    settings: dict[str, Any] = {"bootstrap.servers": mock.bootstrap_servers, **QUICK}
    mock.asked()
    mock.refuse(api, *[code] * _TIMES)
    try:
        with KafkaProducer({**settings, "linger.ms": 0}) as producer:
            for number in range(5):
                producer.send(topic, b"%d" % number, partition=0).result(20)
        values: list[bytes | None] = []
        member = {"group.id": f"g-{topic}", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        with KafkaConsumer({**settings, **member, "fetch.max.wait.ms": 100}) as consumer:
            consumer.subscribe([topic])
            for _ in range(100):
                values += [record.value for record in consumer.poll(200)]
                if len(values) >= 5:
                    break
            consumer.commit_sync(timeout_ms=20_000)
            (committed,) = consumer.committed([TopicPartition(topic, 0)]).values()
    finally:
        mock.clear(api)
    assert values == [b"%d" % number for number in range(5)]
    assert committed is not None
    assert committed.offset == 5
    asked = mock.asked()
    assert asked.count(api) > _TIMES
    for known, count in ((each, asked.count(each)) for each in set(asked)):
        assert count < 60, f"{count} times {known.name}"
    assert sum(1 for one, other in itertools.pairwise(asked) if one is other is ApiKeys.FIND_COORDINATOR) < 20
