"""Records and what holds them."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener, ConsumerRecord, ConsumerRecords

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


def record(tp: TopicPartition, offset: int, value: Any = b"v") -> ConsumerRecord[Any, Any]:
    return ConsumerRecord(tp.topic, tp.partition, offset, 1, 0, None, value, (), None, -1, 1)


def test_a_record_is_truthy_whatever_its_value() -> None:
    assert all(record(A, 0, value) for value in (None, b"", 0))


def test_a_record_cannot_be_changed_and_pickles() -> None:
    made = record(A, 3)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.offset = 4
    assert pickle.loads(pickle.dumps(made)) == made
    assert made.topic_partition == A


def test_records_come_in_order_per_partition() -> None:
    records = ConsumerRecords({A: [record(A, 1), record(A, 2)], B: [record(B, 7)]}, {A: 3, B: 9})
    assert [r.offset for r in records] == [1, 2, 7]
    assert (len(records), records.count, bool(records)) == (3, 3, True)
    assert records.partitions() == {A, B}
    assert [r.offset for r in records.by_partition()[A]] == [1, 2]
    assert [r.offset for r in records.records("b")] == [7]
    assert records.records(TopicPartition("c", 0)) == []
    assert records.next_offsets() == {A: 3, B: 9}


def test_no_records_are_falsy() -> None:
    assert not ConsumerRecords({})


def test_lost_partitions_count_as_revoked_for_a_listener_that_does_not_care() -> None:
    told = []

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, partitions: Any) -> None:
            told.append(partitions)

    Listener().on_partitions_lost([A])
    assert told == [[A]]
