"""Batches that no producer of kclient sends: the embedded broker answers as a real Kafka does."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from harness.broker.requests import fetch, try_produce
from harness.broker.wire import Wire, batch
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic
from kclient.broker.embedded import EmbeddedKafka
from kclient.record import ControlRecordType, EndTransactionMarker, RecordBatch, iter_batches

ATTRIBUTES, LAST_DELTA, MAX_TIMESTAMP, COUNT = (21, ">h"), (23, ">i"), (35, ">q"), (57, ">i")
IDEMPOTENT = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}


def changed(records: bytes, field: tuple[int, str], value: int) -> bytes:
    made = bytearray(records)
    struct.pack_into(field[1], made, field[0], value)
    RecordBatch(memoryview(made)).update_checksum()
    return bytes(made)


def damaged(records: bytes) -> bytes:
    """A value that is longer than its record."""
    return changed(records, (records.index(b"value") - 1, ">B"), 90)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(batch(b"a", **IDEMPOTENT, is_transactional=True), id="transactional"),
        pytest.param(EndTransactionMarker(ControlRecordType.COMMIT, 0).batch(0, 0, 0, 7, 0), id="marker"),
        pytest.param(changed(batch(b"a"), ATTRIBUTES, 0x20), id="control"),
        pytest.param(changed(batch(b"a", b"b", first_ms=1000), MAX_TIMESTAMP, 5), id="small maximum"),
        pytest.param(changed(batch(b"a", b"b", first_ms=1000), MAX_TIMESTAMP, 2**62), id="large maximum"),
        pytest.param(changed(batch(b"a", first_ms=2**61), MAX_TIMESTAMP, 5), id="hidden future"),
        pytest.param(changed(batch(b"a", b"b"), COUNT, 3), id="count"),
        pytest.param(changed(changed(batch(b"a"), COUNT, 2), LAST_DELTA, 1), id="too few"),
        pytest.param(damaged(batch(b"value")), id="damaged record"),
        pytest.param(batch(b"a", **{**IDEMPOTENT, "base_sequence": -2}), id="negative sequence"),
    ],
)
def test_a_batch_is_judged_as_kafka_judges_it(kafka: RealKafka, ours: EmbeddedKafka, records: bytes) -> None:
    def judged(servers: str) -> Any:
        topic = new_topic(servers, 1)
        with Wire(servers) as wire:
            answer = try_produce(wire, topic, records)
            data = fetch(wire, topic)
            kept = [
                (found.max_timestamp_ms, found.is_valid, found.count) for found in iter_batches(data.records)
            ]
            return answer.error_code, [each.batch_index for each in answer.record_errors], kept

    assert judged(ours.bootstrap_servers) == judged(kafka.bootstrap_servers)


@pytest.fixture(scope="module")
def ours() -> Any:
    with EmbeddedKafka() as running:
        yield running
