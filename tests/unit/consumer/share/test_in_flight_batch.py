"""Records in hand and what is said of them, beside a plain model: one entry for each offset."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.uuid import Uuid
from kclient.consumer import AcknowledgeType, ConsumerRecord
from kclient.consumer.internals.share.acknowledgements import Acknowledgements, Run, merged
from kclient.consumer.internals.share.in_flight_batch import InFlightBatch
from kclient.errors import KafkaError
from kclient.protocol.messages import share_acknowledge, share_fetch

TIP = TopicIdPartition(Uuid(b"t" * 16), "t", 0)


def record(offset: int) -> ConsumerRecord[Any, Any]:
    return ConsumerRecord("t", 0, offset, 0, 0, None, b"", (), None, -1, 0)


def said(acknowledgements: Acknowledgements | None) -> dict[int, int]:
    """Each offset with its type, as a broker reads the batches of a request."""
    found: dict[int, int] = {}
    for run in () if acknowledgements is None else acknowledgements.runs:
        batch: Any = run.on_wire(share_fetch.AcknowledgementBatch)
        count = batch.last_offset - batch.first_offset + 1
        types = (
            batch.acknowledge_types * count if len(batch.acknowledge_types) == 1 else batch.acknowledge_types
        )
        assert len(types) == count
        found |= dict(zip(range(batch.first_offset, batch.last_offset + 1), types, strict=True))
    return found


@given(
    ranges=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 6)), min_size=1, max_size=5),
    missing=st.sets(st.integers(0, 40)),
    words=st.lists(st.tuples(st.integers(0, 40), st.sampled_from(list(AcknowledgeType)))),
    most=st.integers(1, 12),
)
def test_what_is_said_is_told_once_and_renewed_records_come_back(
    ranges: list[tuple[int, int]], missing: set[int], words: list[tuple[int, AcknowledgeType]], most: int
) -> None:
    locked, at = [], 0
    for gap, length in ranges:
        at += gap
        locked.append((at, at + length - 1))
        at += length
    offsets = [offset for first, last in locked for offset in range(first, last + 1)]
    records = [record(offset) for offset in offsets if offset not in missing]
    batch = InFlightBatch.of(1, TIP, locked, records, None)
    handed = batch.hand_out(most)
    assert handed == records[:most]
    expected = {offset: 0 for offset in offsets if offset in missing}
    in_hand = {each.offset for each in handed}
    for offset, type_ in words:
        assert batch.covers(offset) == (offset in in_hand)
        if offset in in_hand:
            batch.acknowledge(offset, type_)
            expected[offset] = type_
    assert batch.unacknowledged == bool(in_hand - expected.keys())
    taken = batch.take_acknowledged()
    assert said(taken) == expected
    assert batch.take_acknowledged() is None
    renewed = sorted(offset for offset, type_ in expected.items() if type_ == AcknowledgeType.RENEW)
    assert batch.renewing == bool(renewed)
    if taken is not None:
        assert taken.renewed_offsets() == renewed
        assert taken.offsets() == expected.keys()
        batch.renewed(taken)
    batch.bring_back_renewed()
    assert not batch.renewing
    waiting = renewed + [each.offset for each in records[most:]]
    assert [each.offset for each in batch.hand_out(100)] == sorted(waiting)
    batch.accept_all()
    left = {*waiting, *(in_hand - expected.keys())}
    assert said(batch.take_acknowledged()) == dict.fromkeys(left, 1)
    assert batch.done


def test_a_renewal_that_failed_loses_the_record() -> None:
    batch = InFlightBatch.of(1, TIP, [(0, 1)], [record(0), record(1)], None)
    batch.hand_out(2)
    batch.acknowledge(0, AcknowledgeType.RENEW)
    taken = batch.take_acknowledged()
    assert taken is not None
    taken.error = KafkaError("no")
    batch.renewed(taken)
    batch.bring_back_renewed()
    assert batch.hand_out(2) == []
    assert not batch.covers(0)
    assert batch.covers(1)


@pytest.mark.parametrize(
    "batch_type", [share_fetch.AcknowledgementBatch, share_acknowledge.AcknowledgementBatch]
)
def test_one_type_stands_for_a_run_of_the_same(batch_type: Any) -> None:
    alike = Run(5, b"\x01" * 2000).on_wire(batch_type)
    assert (alike.first_offset, alike.last_offset, alike.acknowledge_types) == (5, 2004, [1])
    assert Run(5, b"\x01\x02").on_wire(batch_type).acknowledge_types == [1, 2]


def test_acknowledgements_that_overlap_go_by_different_requests() -> None:
    first, second, third = (Acknowledgements(1, TIP, (Run(offset, b"\x01" * 3),)) for offset in (5, 7, 0))
    runs, later = merged([first, second, third])
    assert [run.first for run in runs[TIP]] == [0, 5]
    assert later == [second]
