"""ListOffsets: times that mean something else, transactions, epochs, and what each version knows."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from harness.broker.logs import append_alone
from harness.broker.wire import batch
from kclient.broker.apis.list_offsets import list_offsets
from kclient.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

UNKNOWN_TOPIC, CLUSTER_AUTHORIZATION, UNSUPPORTED_VERSION, FENCED, UNKNOWN_EPOCH = 3, 31, 35, 74, 75
INVALID_REQUEST = 42
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
FIRST_MS = 1_700_000_000_000
COMMITTED = 1
NOTHING = (0, -1, -1)


def ask(
    handlers: Handlers, *partitions: ListOffsetsPartition, version: int = 7, topic: str = "t", **fields: Any
) -> list[Any]:
    request = ListOffsetsRequest(
        **{"replica_id": -1, "topics": [ListOffsetsTopic(name=topic, partitions=list(partitions))], **fields}
    )
    found: list[Any] = handlers.ask(list_offsets, request, version).topics[0].partitions
    return found


def at(handlers: Handlers, timestamp: int, **options: Any) -> tuple[int, int, int]:
    """Error, offset and time for a time in partition 0."""
    (found,) = ask(handlers, ListOffsetsPartition(partition_index=0, timestamp=timestamp), **options)
    return found.error_code, found.offset, found.timestamp


@pytest.fixture
def filled(handlers: Handlers) -> Handlers:
    """Topic t, with three records in partition 0 and then one of a transaction that is open."""
    handlers.topics.create()
    log = handlers.led().log
    append_alone(log, batch(b"a", b"b", b"c", first_ms=FIRST_MS))
    in_transaction = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    append_alone(log, batch(b"open", first_ms=FIRST_MS + 100, **in_transaction))
    return handlers


def test_a_partition_that_comes_twice_is_answered_once_with_an_error(filled: Handlers) -> None:
    first, second = (ListOffsetsPartition(partition_index=number, timestamp=LATEST) for number in (0, 9))
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(name="t", partitions=[first, second]),
            ListOffsetsTopic(name="t", partitions=[first]),
        ],
    )
    (topic,) = filled.ask(list_offsets, request, 7).topics
    assert [(part.partition_index, part.error_code, part.offset) for part in topic.partitions] == [
        (0, INVALID_REQUEST, -1),
        (9, UNKNOWN_TOPIC, -1),
    ]


def test_the_end_is_where_the_isolation_lets_the_client_read(filled: Handlers) -> None:
    assert at(filled, LATEST) == (0, 4, -1)
    assert at(filled, LATEST, isolation_level=COMMITTED) == (0, 3, -1)


def test_a_record_that_the_client_may_not_read_is_not_there_for_it(filled: Handlers) -> None:
    for timestamp in (FIRST_MS + 100, MAX_TIMESTAMP):
        assert at(filled, timestamp) == (0, 3, FIRST_MS + 100)
        assert at(filled, timestamp, isolation_level=COMMITTED) == NOTHING
    assert at(filled, FIRST_MS + 2, isolation_level=COMMITTED) == (0, 2, FIRST_MS + 2)


def test_a_time_is_found_at_the_first_record_that_is_not_before_it(filled: Handlers) -> None:
    assert at(filled, 0) == (0, 0, FIRST_MS)
    assert at(filled, FIRST_MS + 3) == (0, 3, FIRST_MS + 100)
    for timestamp in (FIRST_MS + 101, 2**63 - 1):
        assert at(filled, timestamp) == NOTHING


def test_an_empty_partition_has_a_start_and_an_end_and_no_times(handlers: Handlers) -> None:
    handlers.topics.create()
    assert [at(handlers, timestamp)[:2] for timestamp in (LATEST, EARLIEST)] == [(0, 0)] * 2
    assert [at(handlers, timestamp) for timestamp in (MAX_TIMESTAMP, 0)] == [NOTHING] * 2


def test_the_start_is_told_where_all_before_it_was_deleted_and_nothing_may_be_read(filled: Handlers) -> None:
    filled.led().delete_records(4)
    for isolation in (0, COMMITTED):
        assert at(filled, EARLIEST, isolation_level=isolation)[:2] == (0, 4)


@pytest.mark.parametrize(
    ("version", "timestamp", "error"),
    [
        (1, EARLIEST, 0), (6, EARLIEST, 0), (6, MAX_TIMESTAMP, UNSUPPORTED_VERSION), (7, MAX_TIMESTAMP, 0),
        (7, -4, UNSUPPORTED_VERSION), (1, -(2**63), UNSUPPORTED_VERSION),
    ],
)  # fmt: skip
def test_a_time_that_a_version_does_not_know_is_refused(
    filled: Handlers, version: int, timestamp: int, error: int
) -> None:
    assert at(filled, timestamp, version=version)[0] == error


@pytest.mark.parametrize(("version", "epoch"), [(3, -1), (4, 0)])
def test_the_epoch_is_told_from_version_4_on(filled: Handlers, version: int, epoch: int) -> None:
    for timestamp in (LATEST, EARLIEST, FIRST_MS):
        (found,) = ask(filled, ListOffsetsPartition(partition_index=0, timestamp=timestamp), version=version)
        assert (found.error_code, found.leader_epoch) == (0, epoch)


def test_a_record_is_told_with_the_epoch_it_was_written_in(filled: Handlers) -> None:
    partition = filled.led()
    partition.leader_epoch = 5
    append_alone(partition.log, batch(b"later", first_ms=FIRST_MS + 200), 5)
    epochs = [
        ask(filled, ListOffsetsPartition(partition_index=0, timestamp=timestamp))[0].leader_epoch
        for timestamp in (FIRST_MS, FIRST_MS + 200, LATEST)
    ]
    assert epochs == [0, 5, 5]


def test_the_start_of_an_empty_partition_is_in_the_present_epoch(handlers: Handlers) -> None:
    handlers.topics.create()
    handlers.led().leader_epoch = 5
    (found,) = ask(handlers, ListOffsetsPartition(partition_index=0, timestamp=EARLIEST))
    assert (found.offset, found.leader_epoch) == (0, 5)


@pytest.mark.parametrize(("known", "error"), [(-1, 0), (5, 0), (4, FENCED), (6, UNKNOWN_EPOCH)])
def test_a_client_with_another_epoch_is_refused(filled: Handlers, known: int, error: int) -> None:
    filled.led().leader_epoch = 5
    wanted = ListOffsetsPartition(partition_index=0, timestamp=LATEST, current_leader_epoch=known)
    assert ask(filled, wanted)[0].error_code == error


def test_each_partition_is_found_or_fails_by_itself(filled: Handlers) -> None:
    wanted = [ListOffsetsPartition(partition_index=number, timestamp=LATEST) for number in (7, 0, -1, 1)]
    assert [(found.partition_index, found.error_code, found.offset) for found in ask(filled, *wanted)] == [
        (7, UNKNOWN_TOPIC, -1), (0, 0, 4), (-1, UNKNOWN_TOPIC, -1), (1, 0, 0),
    ]  # fmt: skip
    followers = ask(filled, *wanted, replica_id=0)
    assert [found.error_code for found in followers] == [CLUSTER_AUTHORIZATION] * 4
