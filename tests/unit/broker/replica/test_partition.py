"""Partition: its leader epoch, the bytes it counts, and what clients are told of epochs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from harness.broker.logs import LogHarness
from kclient.broker.log.config import LogConfig
from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.replica.partition import NO_EPOCH, Partition
from kclient.common.uuid import Uuid
from kclient.errors import (
    CorruptRecordError,
    FencedLeaderEpochError,
    NotEnoughReplicasError,
    OffsetOutOfRangeError,
    UnknownLeaderEpochError,
)

CLIENT = AppendOrigin.CLIENT


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogHarness]:
    root = tmp_path / "data"
    root.mkdir()
    made = LogHarness(root)
    yield made
    made.close()


def led(logs: LogHarness, leader_epoch: int = 0, **settings: object) -> Partition:
    """Lead the partition anew, as a start of the broker does."""
    log = logs.open(attrs.evolve(LogConfig(), **settings), clean=True)
    return Partition(log, Uuid.random(), leader_epoch)


def led_again(logs: LogHarness, partition: Partition, epochs: int = 1) -> Partition:
    """The partition after some starts, in the last of which it is led."""
    partition.log.close()
    return led(logs, partition.leader_epoch + epochs)


def test_batches_have_the_epoch_in_which_they_were_written(logs: LogHarness) -> None:
    partition = led(logs, 3)
    partition.append(logs.batch(), CLIENT, -1)
    partition.leader_epoch = 5
    partition.append(logs.batch(), CLIENT, -1)
    assert partition.log.latest_epoch == 5
    assert partition.end_offset_for_epoch(3) == (3, 1)


def test_bytes_are_counted_as_they_are_appended_and_not_for_a_duplicate(logs: LogHarness) -> None:
    partition = led(logs)
    first, second = logs.batch(pid=7, seq=0), logs.batch([b"longer"], pid=7, seq=1)
    partition.append(first, CLIENT, -1)
    assert partition.appended_bytes == len(first)
    partition.append(second, CLIENT, -1)
    assert partition.append(second, CLIENT, -1).is_duplicate
    assert partition.appended_bytes == len(first) + len(second)


def test_what_is_refused_does_not_count(logs: LogHarness) -> None:
    partition = led(logs)
    with pytest.raises(CorruptRecordError):
        partition.append(logs.batch()[:-1] + b"\xff", CLIENT, -1)
    assert (partition.appended_bytes, partition.log.log_end_offset) == (0, 0)


def test_only_who_waits_for_all_replicas_is_refused_for_those_that_are_missing(logs: LogHarness) -> None:
    partition = led(logs, min_insync_replicas=2)
    with pytest.raises(NotEnoughReplicasError, match=r"min\.insync\.replicas 2"):
        partition.append(logs.batch(), CLIENT, -1)
    assert (partition.appended_bytes, partition.log.log_end_offset) == (0, 0)
    for acks in (0, 1):
        partition.append(logs.batch(), CLIENT, acks)
    assert partition.log.log_end_offset == 2


def test_a_client_that_knows_another_epoch_is_told_on_which_side_it_is(logs: LogHarness) -> None:
    partition = led(logs)
    partition.append(logs.batch(), CLIENT, -1)
    partition = led_again(logs, partition)
    for epoch in (NO_EPOCH, 1):
        partition.check_leader_epoch(epoch)
    with pytest.raises(FencedLeaderEpochError, match="in epoch 1; the request knows only 0"):
        partition.check_leader_epoch(0)
    with pytest.raises(FencedLeaderEpochError):
        partition.check_leader_epoch(-2)
    with pytest.raises(UnknownLeaderEpochError, match="in epoch 1; the request speaks of 2"):
        partition.check_leader_epoch(2)


def test_the_end_of_the_present_epoch_is_that_of_the_log_even_before_its_first_record(
    logs: LogHarness,
) -> None:
    partition = led(logs)
    assert partition.end_offset_for_epoch(0) == (0, 0)
    partition.append(logs.batch([b"a", b"b"]), CLIENT, -1)
    partition = led_again(logs, partition)
    assert partition.end_offset_for_epoch(1) == (1, 2)
    assert partition.end_offset_for_epoch(0) == (0, 2)
    partition.append(logs.batch(), CLIENT, -1)
    assert [partition.end_offset_for_epoch(epoch) for epoch in (0, 1)] == [(0, 2), (1, 3)]


def test_an_epoch_in_which_nothing_was_written_ended_where_the_next_one_began(logs: LogHarness) -> None:
    partition = led(logs)
    partition = led_again(logs, partition, 3)
    assert [partition.end_offset_for_epoch(epoch) for epoch in (0, 2, 3)] == [(0, 0), (2, 0), (3, 0)]
    partition.append(logs.batch([b"a", b"b"]), CLIENT, -1)
    assert [partition.end_offset_for_epoch(epoch) for epoch in (0, 2, 3)] == [(0, 0), (2, 0), (3, 2)]
    partition = led_again(logs, partition, 3)
    assert [partition.end_offset_for_epoch(epoch) for epoch in (3, 4, 5, 6)] == [
        (3, 2),
        (3, 2),
        (3, 2),
        (6, 2),
    ]
    partition.append(logs.batch(), CLIENT, -1)
    assert [partition.end_offset_for_epoch(epoch) for epoch in (3, 4, 5, 6)] == [
        (3, 2),
        (3, 2),
        (3, 2),
        (6, 3),
    ]


def test_the_end_of_an_epoch_that_never_was_is_not_known(logs: LogHarness) -> None:
    partition = led(logs)
    partition.append(logs.batch(), CLIENT, -1)
    assert [partition.end_offset_for_epoch(epoch) for epoch in (-1, 5)] == [(-1, -1)] * 2


def test_deleting_records_can_go_up_to_the_high_watermark(logs: LogHarness) -> None:
    partition = led(logs)
    partition.append(logs.batch([b"a", b"b", b"c"]), CLIENT, -1)
    assert partition.delete_records(2) == 2
    assert partition.delete_records(1) == 2, "the start never goes back"
    for offset in (4, -2):
        with pytest.raises(OffsetOutOfRangeError):
            partition.delete_records(offset)
    assert partition.delete_records(-1) == 3
    assert partition.log.log_start_offset == 3
