"""Transactions that another broker left open: ended as their coordinator would have ended them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker.wire import batch
from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.log.unified_log import FetchIsolation
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.broker.transaction.open_transactions import EndedTransactions, end_open_transactions
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.protocol.codec import encode
from kclient.protocol.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from kclient.record import MemoryRecordsBuilder
from kclient.record.control import ControlRecordType, EndTransactionMarker
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME

DATA, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
STATES = TopicPartition("__transaction_state", 3)
ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT = 1, 2, 3, 4
LEADER_EPOCH = 5


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[ReplicaManager]:
    logs = LogManager([tmp_path])
    logs.startup()
    manager = ReplicaManager(logs, SYSTEM_TIME, LogContext())
    for tp in (DATA, OTHER, STATES):
        manager.make_leader(tp, Uuid.random(), LogConfig(), leader_epoch=LEADER_EPOCH)
    yield manager
    manager.shutdown()
    logs.shutdown()


def write(
    replicas: ReplicaManager, tp: TopicPartition, producer_id: int, *values: bytes, epoch: int = 0
) -> None:
    """Append what a transactional producer wrote."""
    builder = MemoryRecordsBuilder(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=0, is_transactional=True
    )
    for value in values:
        builder.append(1, None, value)
    replicas.partition(tp).append(builder.close(), AppendOrigin.COORDINATOR, 1)


def say(
    replicas: ReplicaManager, producer_id: int, status: int, *tps: TopicPartition, epoch: int = 0
) -> None:
    """Append what a coordinator wrote of a transactional id, which is named after its producer id."""
    key = struct.pack(">h", 0) + encode(TransactionLogKey(transactional_id=f"id-{producer_id}"), 0)
    parts = [PartitionsSchema(topic=tp.topic, partition_ids=[tp.partition]) for tp in tps]
    value = TransactionLogValue(
        producer_id=producer_id, producer_epoch=epoch, transaction_status=status, transaction_partitions=parts
    )
    for version in (0, 1):
        builder = MemoryRecordsBuilder()
        builder.append(1, key, struct.pack(">h", version) + encode(value, version))
        assert replicas.append_locally(STATES, builder.close()).error is None


def end(replicas: ReplicaManager) -> EndedTransactions:
    return end_open_transactions(replicas, [STATES], SYSTEM_TIME, LogContext())


def markers(replicas: ReplicaManager, tp: TopicPartition) -> list[tuple[int, int, ControlRecordType]]:
    """Producer id, epoch and kind of each marker."""
    return [
        (one.producer_id, one.producer_epoch, EndTransactionMarker.parse(next(one.records())).type)
        for one in replicas.partition(tp).batches()
        if one.is_control
    ]


def test_transactions_of_which_nothing_is_known_are_aborted(replicas: ReplicaManager) -> None:
    write(replicas, DATA, 7, b"a", b"b")
    write(replicas, DATA, 8, b"c", epoch=3)
    log = replicas.partition(DATA).log
    assert log.last_stable_offset == 0
    assert end(replicas) == EndedTransactions(aborted=("t-0",))
    assert markers(replicas, DATA) == [(7, 0, ControlRecordType.ABORT), (8, 3, ControlRecordType.ABORT)]
    assert log.last_stable_offset == log.high_watermark == log.log_end_offset == 5
    found = log.read(0, 1 << 20, isolation=FetchIsolation.TXN_COMMITTED)
    assert found.aborted == [(7, 0), (8, 2)]


@pytest.mark.parametrize(
    ("status", "named", "kind"),
    [
        (ONGOING, DATA, ControlRecordType.ABORT),
        (PREPARE_ABORT, DATA, ControlRecordType.ABORT),
        (COMPLETE_COMMIT, DATA, ControlRecordType.ABORT),
        (PREPARE_COMMIT, DATA, ControlRecordType.COMMIT),
        (PREPARE_COMMIT, OTHER, ControlRecordType.ABORT),
    ],
    ids=["open", "to be aborted", "an earlier one", "to be committed", "hanging beside one to be committed"],
)
def test_what_the_coordinator_has_decided_is_carried_out(
    replicas: ReplicaManager, status: int, named: TopicPartition, kind: ControlRecordType
) -> None:
    write(replicas, DATA, 7, b"a", epoch=4)
    say(replicas, 7, ONGOING, DATA, epoch=4)
    say(replicas, 7, status, named, epoch=5)
    ended = end(replicas)
    assert markers(replicas, DATA) == [(7, 5, kind)], "the epoch is the one that was given out for the marker"
    assert (ended.committed, ended.aborted) == (
        (("t-0",), ()) if kind is ControlRecordType.COMMIT else ((), ("t-0",))
    )
    assert replicas.partition(DATA).log.last_stable_offset == 2


def test_a_log_without_open_transactions_is_left_as_it_is(replicas: ReplicaManager) -> None:
    write(replicas, DATA, 7, b"a")
    end(replicas)
    replicas.append_locally(DATA, batch(b"later"))
    before = replicas.partition(DATA).log.log_end_offset
    assert end(replicas) == EndedTransactions()
    assert replicas.partition(DATA).log.log_end_offset == before


def test_nothing_is_ended_while_a_part_of_the_coordinators_log_is_offline(replicas: ReplicaManager) -> None:
    write(replicas, DATA, 7, b"a")
    offline = TopicPartition(STATES.topic, 0)
    replicas.set_offline(offline, "its disk is gone")
    ended = end_open_transactions(replicas, [offline, STATES], SYSTEM_TIME, LogContext())
    assert ended == EndedTransactions(failed=("t-0",))
    assert markers(replicas, DATA) == []


def test_records_of_the_coordinators_log_that_cannot_be_read_are_passed_over(
    replicas: ReplicaManager,
) -> None:
    write(replicas, DATA, 7, b"a")
    say(replicas, 7, PREPARE_COMMIT, DATA)
    builder = MemoryRecordsBuilder()
    for key, value in ((b"", b""), (b"\0\0\0", None), (b"\0\1new", b"x"), (b"\0\0\0\1x", b"\0\x63")):
        builder.append(1, key, value)
    assert replicas.append_locally(STATES, builder.close()).error is None
    assert end(replicas).committed == ("t-0",)


def test_a_transactional_id_that_was_forgotten_decides_nothing(replicas: ReplicaManager) -> None:
    write(replicas, DATA, 7, b"a")
    say(replicas, 7, PREPARE_COMMIT, DATA)
    builder = MemoryRecordsBuilder()
    builder.append(1, struct.pack(">h", 0) + encode(TransactionLogKey(transactional_id="id-7"), 0), None)
    assert replicas.append_locally(STATES, builder.close()).error is None
    assert end(replicas).aborted == ("t-0",)
