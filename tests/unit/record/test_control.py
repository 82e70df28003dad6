"""Markers that end transactions."""

from __future__ import annotations

import attrs
import pytest

from kclient.errors import InvalidRecordError
from kclient.record import ControlRecordType, EndTransactionMarker, RecordBatch
from kclient.record.control import parse_type, parse_type_id


@pytest.mark.parametrize("kind", [ControlRecordType.ABORT, ControlRecordType.COMMIT])
def test_a_marker_comes_back_from_its_batch(kind: ControlRecordType) -> None:
    marker = EndTransactionMarker(kind, 12)
    batch = RecordBatch(memoryview(marker.batch(40, 1000, 3, 77, 5)))
    batch.ensure_valid()
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (
        40,
        77,
        5,
        -1,
    )
    assert batch.partition_leader_epoch == 3
    [record] = batch.records()
    assert EndTransactionMarker.parse(record) == marker
    assert record.timestamp_ms == 1000


def test_a_type_that_is_newer_keeps_its_number() -> None:
    key = bytes.fromhex("00000063")
    assert parse_type(key) is ControlRecordType.UNKNOWN
    assert parse_type_id(key) == 99


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\1"])
def test_a_key_without_type_is_refused(key: bytes | None) -> None:
    with pytest.raises(InvalidRecordError):
        parse_type(key)


def test_what_ends_no_transaction_is_no_marker() -> None:
    batch = RecordBatch(memoryview(EndTransactionMarker(ControlRecordType.COMMIT, 12).batch(0, 0, 0, 0, 0)))
    [record] = batch.records()
    for changed in ({"key": b"\0\0\0\2"}, {"value": None}, {"value": b"\0"}, {"value": b"\xff\xff\0\0\0\0"}):
        with pytest.raises(InvalidRecordError):
            EndTransactionMarker.parse(attrs.evolve(record, **changed))
