"""Metadata records in their frames: numbers and versions that are not known are named."""

from __future__ import annotations

import json

import pytest

from harness.golden import SCHEMAS, message_classes
from kclient.broker.metadata.record_serde import decode_record, encode_record
from kclient.common.uuid import Uuid
from kclient.errors import SchemaError, UnsupportedVersionError
from kclient.protocol.messages.metadata_records import (
    RECORD_TYPES,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionRecord,
)


def test_every_declared_record_has_the_number_of_its_schema() -> None:
    declared = {cls for cls in message_classes().values() if cls.KIND == "metadata"}
    assert set(RECORD_TYPES.values()) == declared
    for number, record in RECORD_TYPES.items():
        schema = json.loads((SCHEMAS / "records" / f"{record.__name__}.json").read_text())
        assert schema["apiKey"] == number


@pytest.mark.parametrize("record", RECORD_TYPES.values())
def test_every_record_comes_back_from_its_frame(record: type) -> None:
    assert decode_record(encode_record(record())) == record()


def test_the_frame_says_its_version_the_record_and_the_records_version() -> None:
    assert encode_record(FeatureLevelRecord(name="f", feature_level=2)) == b"\x01\x0c\x00\x02f\x00\x02\x00"
    partition = PartitionRecord(replicas=[1], isr=[1], directories=[Uuid.random()])
    assert encode_record(partition)[:3] == b"\x01\x03\x01"
    assert decode_record(encode_record(partition)) == partition


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (b"\x02\x14\x00\x00", "frame version 2 is not known"),
        (b"\x01\x63\x00\x00", "type 99 is not known"),
        (b"\x01\x14\x07\x00", "NoOpRecord of version 7 is not known"),
    ],
)
def test_what_is_newer_is_named(value: bytes, complaint: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=complaint):
        decode_record(value)


@pytest.mark.parametrize("value", [None, b"", b"\x01", b"\x01\x14", b"\x01\x0c\x00\x09f", b"\xff" * 9])
def test_what_is_no_record_is_an_error(value: bytes | None) -> None:
    with pytest.raises((SchemaError, UnsupportedVersionError)):
        decode_record(value)


def test_bytes_behind_a_record_are_an_error() -> None:
    with pytest.raises(SchemaError, match="followed by 1 more"):
        decode_record(encode_record(NoOpRecord()) + b"x")


@pytest.mark.parametrize("number", [10, 21, 26])
def test_records_of_kafkas_that_mean_nothing_here_are_passed_over(number: int) -> None:
    """Delegation tokens, and the migration from ZooKeeper with which every old cluster's log begins."""
    assert decode_record(bytes([1, number, 0, 0xFF])) == NoOpRecord()
