"""Record batches against what Java's client writes and reads."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from harness.golden import golden_lines
from kclient._accel import BatchBuilder, BatchResult, RecordReader
from kclient.compress import CompressionType, compress
from kclient.consumer.types import ConsumerRecord
from kclient.errors import KafkaError
from kclient.record import (
    LegacyBatch,
    MemoryRecordsBuilder,
    Record,
    RecordBatch,
    TimestampType,
    batch_headers,
    iter_batches,
)
from kclient.record.control import EndTransactionMarker, parse_type_id

pytestmark = pytest.mark.golden

LINES = list(golden_lines("record_batches"))
VALID = [line for line in LINES if line["kind"] == "valid"]
MALFORMED = [line for line in LINES if line["kind"] == "malformed"]


def name(line: dict[str, Any]) -> str:
    return f"{line['id']}-{line['case']}"


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def data(value: str | None) -> bytes | None:
    return None if value is None else base64.b64decode(value)


def record_facts(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "sequence": record.sequence,
        "sizeInBytes": record.size_in_bytes,
        "key": text(record.key),
        "value": text(record.value),
        "headers": [[key, text(value)] for key, value in record.headers],
    }


def batch_facts(batch: RecordBatch | LegacyBatch) -> dict[str, Any]:
    facts = {
        "magic": batch.magic,
        "sizeInBytes": batch.size_in_bytes,
        "isValid": batch.is_valid,
        "checksum": batch.checksum,
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "nextOffset": batch.next_offset,
        "codec": batch.compression_type.label,
        "timestampType": batch.timestamp_type.label,
        "maxTimestamp": batch.max_timestamp_ms,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "isTransactional": batch.is_transactional,
        "isControlBatch": batch.is_control,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "deleteHorizonMs": batch.delete_horizon_ms,
        "count": batch.count,
    }
    if isinstance(batch, RecordBatch):
        facts["baseTimestamp"] = batch.base_timestamp_ms
        facts["attributes"] = batch.attributes
        facts["lastOffsetDelta"] = batch.last_offset_delta
    return facts


def read(buf: bytes, check_crcs: bool) -> tuple[list[dict[str, Any]], KafkaError | None]:
    """The records read, in the form of the golden file, and what ended the reading."""
    batches: list[dict[str, Any]] = []
    try:
        for batch in iter_batches(buf):
            if check_crcs:
                batch.ensure_valid()
            facts = batch_facts(batch)
            facts["records"] = []
            batches.append(facts)
            for record in batch.records():
                facts["records"].append(record_facts(record))
    except KafkaError as error:
        return batches, error
    return batches, None


def encode(given: dict[str, Any]) -> bytes:
    builder = MemoryRecordsBuilder(
        magic=given["magic"],
        compression=CompressionType.for_name(given["codec"]),
        timestamp_type=TimestampType.for_name(given["timestampType"]),
        base_offset=given["baseOffset"],
        log_append_time_ms=given["logAppendTime"],
        producer_id=given["producerId"],
        producer_epoch=given["producerEpoch"],
        base_sequence=given["baseSequence"],
        is_transactional=given["isTransactional"],
        is_control=given["isControlBatch"],
        partition_leader_epoch=given["partitionLeaderEpoch"],
        delete_horizon_ms=given["deleteHorizonMs"],
    )
    for record in given["records"]:
        builder.append(
            record["timestamp"],
            data(record["key"]),
            data(record["value"]),
            [(key, data(value)) for key, value in record["headers"]],
            offset=record["offset"],
        )
    if not given["records"]:
        return builder.empty_batch(given["lastOffset"], -1)
    return builder.close(given["lastOffset"])


@pytest.mark.parametrize("line", VALID, ids=name)
def test_a_good_batch_reads_as_in_java(line: dict[str, Any]) -> None:
    for check_crcs in (True, False):
        batches, error = read(bytes.fromhex(line["hex"]), check_crcs)
        assert error is None
        assert batches == line["batches"]


@pytest.mark.parametrize("line", VALID, ids=name)
def test_a_batch_is_written_as_java_writes_it(line: dict[str, Any]) -> None:
    encoded = b"".join(encode(given) for given in line["inputs"])
    if line["encode_exact"]:
        assert encoded.hex() == line["hex"]
    batches, error = read(encoded, True)
    assert error is None
    # The size and checksum of compressed records depend on the version of the library.
    varying = () if line["encode_exact"] else ("sizeInBytes", "checksum")
    assert [without(batch, *varying) for batch in batches] == [
        without(batch, *varying) for batch in line["batches"]
    ]


def without(facts: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key not in names}


def writable_by_producers(given: dict[str, Any]) -> bool:
    """True for a batch that a producer would send: consecutive records, and nothing only brokers set."""
    return (
        given["magic"] == 2
        and bool(given["records"])
        and [record["offset"] - given["baseOffset"] for record in given["records"]]
        == list(range(len(given["records"])))
        and given["timestampType"] == "CreateTime"
        and given["deleteHorizonMs"] is None
        and given["lastOffset"] is None
    )


@pytest.mark.parametrize("line", VALID, ids=name)
def test_a_producers_batch_is_what_java_writes(line: dict[str, Any]) -> None:
    for given, expected in zip(line["inputs"], line["batches"], strict=False):
        if not writable_by_producers(given):
            continue
        builder = BatchBuilder("t", 0, 1 << 30, BatchResult("t", 0), 0)
        for record in given["records"]:
            headers = [(key, data(value)) for key, value in record["headers"]]
            assert builder.append(record["timestamp"], data(record["key"]), data(record["value"]), headers)
        codec = CompressionType.for_name(given["codec"])
        compressed = None if codec is CompressionType.NONE else compress(codec, builder.freeze())
        attributes = codec | given["isTransactional"] << 4 | given["isControlBatch"] << 5
        builder.close(
            given["producerId"], given["producerEpoch"], given["baseSequence"], attributes, compressed
        )
        encoded = bytearray(b"".join(builder.views()))
        assert len(encoded) == builder.size
        batch = RecordBatch(memoryview(encoded))
        batch.set_base_offset(given["baseOffset"])
        batch.set_partition_leader_epoch(given["partitionLeaderEpoch"])
        [facts], error = read(bytes(encoded), True)
        assert error is None
        varying = () if codec is CompressionType.NONE else ("sizeInBytes", "checksum")
        assert without(facts, *varying) == without(expected, *varying)


@pytest.mark.parametrize("check_crcs", [True, False], ids=["check_crcs", "no_check"])
@pytest.mark.parametrize("line", MALFORMED, ids=name)
def test_a_broken_batch_fails_where_java_fails(line: dict[str, Any], check_crcs: bool) -> None:
    expected = line["check_crcs" if check_crcs else "no_check"]
    batches, error = read(bytes.fromhex(line["hex"]), check_crcs)
    assert (error is not None) == (expected["exception"] is not None), error
    # A batch whose very header is broken may be refused at the header or, as in Java, at the first record.
    read_batches = [batch for batch in batches if batch["records"]]
    assert read_batches == [batch for batch in expected["batches"] if batch["records"]]
    if error is None:
        assert batches == expected["batches"]


def application_facts(line: dict[str, Any], answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The records that an application sees of what Java read."""
    return [
        (
            record["offset"],
            record["timestamp"],
            {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}[batch["timestampType"]],
            data(record["key"]),
            data(record["value"]),
            tuple((key, data(value)) for key, value in record["headers"]),
            None if batch["partitionLeaderEpoch"] < 0 else batch["partitionLeaderEpoch"],
        )
        for batch in answer["batches"]
        if not batch["isControlBatch"]
        for record in batch["records"]
    ]


def consume(buf: bytes, check_crcs: bool, at_once: int) -> tuple[list[tuple[Any, ...]], Exception | None]:
    # Offsets that go back are left out by a reader on purpose; the golden ones are compared as they stand.
    reader = RecordReader(buf, 0, len(buf), "t", 0, -(1 << 63), check_crcs, ConsumerRecord)
    found: list[tuple[Any, ...]] = []
    while True:
        try:
            records = reader.read(at_once)
        except KafkaError as error:
            with pytest.raises(type(error)):
                reader.read(at_once)
            return found, error
        if not records:
            return found, None
        assert all(type(record) is ConsumerRecord for record in records)
        found += [
            (r.offset, r.timestamp_ms, r.timestamp_type, r.key, r.value, r.headers, r.leader_epoch)
            for r in records
        ]


@pytest.mark.parametrize("at_once", [1, 1000])
@pytest.mark.parametrize("line", VALID, ids=name)
def test_an_application_sees_the_records_of_good_batches(line: dict[str, Any], at_once: int) -> None:
    found, error = consume(bytes.fromhex(line["hex"]), True, at_once)
    assert error is None
    assert found == application_facts(line, line)


@pytest.mark.parametrize("check_crcs", [True, False], ids=["check_crcs", "no_check"])
@pytest.mark.parametrize("line", MALFORMED, ids=name)
def test_an_application_sees_the_records_before_the_damage(line: dict[str, Any], check_crcs: bool) -> None:
    expected = line["check_crcs" if check_crcs else "no_check"]
    in_control = any(batch["isControlBatch"] for batch in expected["batches"])
    ordered = application_facts(line, expected)
    rising = [
        record for i, record in enumerate(ordered) if all(record[0] > before[0] for before in ordered[:i])
    ]
    for at_once in (1, 1000):
        found, error = consume(bytes.fromhex(line["hex"]), check_crcs, at_once)
        assert found == rising
        if not in_control:
            assert (error is not None) == (expected["exception"] is not None), error


@pytest.mark.parametrize("line", [line for line in VALID if line["case"] == "control"], ids=name)
def test_control_records_say_what_java_says(line: dict[str, Any]) -> None:
    [batch] = iter_batches(bytes.fromhex(line["hex"]))
    [record] = batch.records()
    control = line["control"]
    assert parse_type_id(record.key) == control["typeId"]
    if control["type"] in ("ABORT", "COMMIT"):
        marker = EndTransactionMarker.parse(record)
        assert (marker.type.name, marker.coordinator_epoch) == (control["type"], control["coordinatorEpoch"])
        written = marker.batch(
            batch.base_offset,
            record.timestamp_ms,
            batch.partition_leader_epoch,
            batch.producer_id,
            batch.producer_epoch,
        )
        assert written.hex() == line["hex"]


@pytest.mark.parametrize("line", VALID, ids=name)
def test_headers_alone_say_what_batches_say(line: dict[str, Any]) -> None:
    headers = list(batch_headers(bytes.fromhex(line["hex"])))
    assert [
        (h.magic, h.size_in_bytes, h.last_offset, h.next_offset, h.max_timestamp_ms) for h in headers
    ] == [
        (b["magic"], b["sizeInBytes"], b["lastOffset"], b["nextOffset"], b["maxTimestamp"])
        for b in line["batches"]
    ]
